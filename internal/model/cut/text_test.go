// SPDX-License-Identifier: Apache-2.0

package cut

import (
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

func TestText_FittingText_IsUnchanged(t *testing.T) {
	for _, s := range []string{"", "all_reduce", strings.Repeat("x", 32), strings.Repeat("é", 16), "�"} {
		assert.Equal(t, s, Text(s, 32))
		assert.Equal(t, s, Part(s, 32))
	}
}

// The digests are SHA-256's first eight bytes, as sha256sum prints them.
func TestText_LongText_IsPrefixAndDigest(t *testing.T) {
	assert.Equal(t, "xxxxxxxxxxxxxxx~11ba55a3a7c1ee0f", Text(strings.Repeat("x", 33), 32))
	assert.Equal(t, "ééééééé~b9d7a28694bca220", Text(strings.Repeat("é", 17), 32), "no character is split")
	assert.Equal(t, "a�b~01ce0241d2a0e71a", Text("a\xffb", 32), "what is no UTF-8 is replaced")
	assert.Equal(t, "7c1ee0f", Text(strings.Repeat("x", 33), 7), "less room than the digest needs")
	assert.Empty(t, Text("x", 0))
}

func TestText_LongTextsThatDifferAtTheEnd_StayDifferent(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	assert.NotEqual(t, Text(long+"a", MaxLabel), Text(long+"b", MaxLabel))
	assert.NotEqual(t, Text("a\xff", MaxLabel), Text("a\xfe", MaxLabel))
	assert.Len(t, Text(long, MaxLabel), MaxLabel)
}

// A part that is kept must not keep the text that it is a part of.
func TestPart_OwnsItsMemory(t *testing.T) {
	whole := strings.Repeat("x", 1000)
	assert.NotSame(t, unsafe.StringData(whole), unsafe.StringData(Part(whole[:10], 32)))
	assert.Same(t, unsafe.StringData(whole), unsafe.StringData(Text(whole[:10], 32)))
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "all_reduce", strings.Repeat("x", 300), "a\xffb", strings.Repeat("é", 17)} {
		f.Add(s, 32)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit &= 0xffff
		got := Text(s, limit)
		if len(got) > limit || !utf8.ValidString(got) {
			t.Fatalf("cut to %d bytes: got %d bytes of %q; want valid text within the limit", limit, len(got), got)
		}
		if again := Text(got, limit); again != got {
			t.Fatalf("cut twice: got %q; want %q", again, got)
		}
		if Part(s, limit) != got {
			t.Fatalf("cut a part: got %q; want %q", Part(s, limit), got)
		}
	})
}

func BenchmarkText(b *testing.B) {
	for _, s := range []string{"ncclDevKernel_AllReduce_Sum_bf16_RING_LL", strings.Repeat("x", 100_000)} {
		b.Run(s[:8], func(b *testing.B) {
			for b.Loop() {
				Text(s, MaxName)
			}
		})
	}
}
