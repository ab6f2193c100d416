// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Words are laid out by hand as docs/format/ring.md says: 'a' is 0x61, the first byte the lowest.
func TestResume(t *testing.T) {
	full := Record{
		1: 11 | 1<<8 | 0xf<<16, 2: 41, 3: 40, 4: 99, 5: 77 | 3<<32,
		6: 0x0706050403020100, 7: 0x0f0e0d0c0b0a0908,
		8: 0x6161616161616161, 9: 0x6161616161616161, 10: 0x6161616161616161, 11: 0x6261616161616161, // 32 bytes, no 0
		12: 0x7064, // "dp"
	}
	assert.Equal(t, Resume{
		Step: 41, OptimizerStep: 40, HasOptimizer: true, HasRNG: true,
		RNG:        [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		DataCursor: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", Replica: "dp", At: 99, TID: 77, Number: 3,
	}, full.Resume())
	assert.Equal(t, []any{KindResume, "resume", LevelSummary, uint64(99)}, []any{full.Kind(), full.Kind().String(), full.Level(), full.LastSeen()})

	bare := full
	bare[1] &^= 0xf << 16
	assert.Equal(t, Resume{Step: 41, At: 99, TID: 77, Number: 3}, bare.Resume(), "what no flag vouches for is not there")
	assert.Equal(t, "resumes", DropName(26))
}

func TestFingerprint(t *testing.T) {
	r := Record{1: 12 | 1<<8, 2: 300, 3: 0xfedc, 4: 99, 5: 77 | 8<<32, 6: 1000, 7: 5000, 8: 0x7064}
	assert.Equal(t, Fingerprint{Step: 300, Hash: 0xfedc, At: 99, TID: 77, Replicas: 8, Start: 1000, Total: 5000, Group: "dp"}, r.Fingerprint())
	assert.Equal(t, []any{KindFingerprint, "fingerprint", uint64(99)}, []any{r.Kind(), r.Kind().String(), r.LastSeen()})
}

func TestTextsOfResumesAreNotPutRight(t *testing.T) {
	for name, word := range map[string]uint64{"no UTF-8": 0xff61, "a terminal's": 0x1b61, "empty": 0} {
		r := Record{1: 11 | 1<<8 | 0xc<<16, 8: word, 12: word}
		assert.Equal(t, Resume{}, r.Resume(), name)
	}
}
