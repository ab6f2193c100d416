// SPDX-License-Identifier: Apache-2.0

package evidence

import "testing"

// Whatever arrives is kept as it is, and read by every kind without panic; what a kind reads, it writes
// and reads again.
func FuzzDecode(f *testing.F) {
	for _, tc := range wire {
		f.Add(tc.text)
	}
	f.Add("free text")
	f.Add(`{"version":2,"held":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		if got := Encode(Text(text)); got != text {
			t.Fatalf("encode %q: got %q", text, got)
		}
		for name, decode := range decoders {
			first, ok := decode(Text(text))
			if !ok {
				continue
			}
			once := Encode(first)
			second, ok := decode(Text(once))
			if !ok {
				t.Fatalf("%s does not read what it wrote: %s", name, once)
			}
			if twice := Encode(second); twice != once {
				t.Fatalf("%s wrote %s, then %s", name, once, twice)
			}
			Bytes(first)
		}
	})
}
