// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkSample is the cost of one sample at 1,000 exchanges a second, with its
// share of the windows that are closed.
func BenchmarkSample(b *testing.B) {
	for _, bb := range []struct {
		name string
		rate int64
	}{{"1000_per_s", 1000}, {"10_per_s", 10}, {"1_per_s", 1}} {
		b.Run(bb.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			var delays [4096]int64
			for i := range delays {
				delays[i] = veth(r)
			}
			const base = int64(3_700_000)
			e := New(Config{})
			t, closing, n := int64(0), 2*second, 0
			b.ReportAllocs()
			for b.Loop() {
				if n++; n&1 == 0 {
					e.Upper(t, t+base+t/50_000+delays[n&4095], 0)
				} else {
					e.Lower(t, t+base+t/50_000-delays[n&4095], 0)
				}
				if t += second / 2 / bb.rate; t >= closing {
					e.Close(closing)
					closing += 2 * second
				}
			}
		})
	}
}
