// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// printed is a fingerprint; words as docs/format/ring.md has them.
func printed(step int64, micro uint64) ring.Record {
	return ring.Record{1: 12 | 1<<8, 2: uint64(step), 3: 0xfedc000000000001, 4: at(micro), 5: 77 | 8<<32, 6: 1000, 7: 5000, 8: 0x6162}
}

func TestFingerprints(t *testing.T) {
	f, r, g := resuming(t)
	f.records = append(f.records, printed(300, 5), printed(400, 6))
	r.Pass(at(10), g.emit(t))
	require.Len(t, g.prints, 2)
	assert.Equal(t, model.Fingerprint{
		Rank: r.Identity(), Time: unixAt(5), Life: "boot/101/1000000000000", Step: 300, Hash: 0xfedc000000000001,
		Start: 1000, Total: 5000, Group: "ba", Replicas: 8,
	}, g.prints[0])
	r.Pass(at(20), g.emit(t))
	assert.Len(t, g.prints, 2, "once")

	for range 600 {
		f.records = append(f.records, printed(500, 30))
	}
	r.Pass(at(40), func(b *Batch) {
		assert.LessOrEqual(t, len(b.Fingerprints), maxFingerprints)
		g.prints = append(g.prints, b.Fingerprints...)
	})
	assert.Len(t, g.prints, 602)
	assert.Zero(t, r.Stats().NotMapped)
}

func TestFingerprintsThatSayNothingAreCounted(t *testing.T) {
	f, r, g := resuming(t)
	nameless, beyond, huge := printed(1, 5), printed(1, 5), printed(1, 5)
	nameless[8], beyond[6], huge[7] = 0, 5001, 1<<63
	f.records = append(f.records, printed(-1, 5), nameless, beyond, huge, printed(1, uint64(2*time.Hour/time.Microsecond)))
	r.Pass(at(10), g.emit(t))
	assert.Empty(t, g.prints)
	assert.Equal(t, []int64{4, 1}, []int64{r.Stats().FingerprintsInvalid, r.Stats().BadTimes})
}
