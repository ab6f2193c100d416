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

// resume is what was loaded; flags and words as docs/format/ring.md has them.
func (f *fakeRing) resume(number uint64, step int64, micro uint64) {
	f.records = append(f.records, ring.Record{
		1: 11 | 1<<8 | 0xf<<16, 2: uint64(step), 3: uint64(step) + 1, 4: at(micro), 5: 77 | number<<32,
		6: 0x0100000000000000, 7: 0, 8: 0x37, 12: 0x6162,
	})
}

func resuming(t *testing.T) (*fakeRing, *Rank, *got) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.ResumeInterval = 100 * time.Millisecond
	f := newFakeRing(1, 2)
	r, g := attach(f, cfg)
	return f, r, g
}

func TestResume(t *testing.T) {
	f, r, g := resuming(t)
	r.Pass(at(1), g.emit(t))
	assert.Empty(t, g.resumes, "nothing was said")
	f.resume(1, 1200, 5)
	r.Pass(at(10), g.emit(t))
	require.Len(t, g.resumes, 1)
	assert.Equal(t, model.Resume{
		Rank: r.Identity(), Time: unixAt(5), Life: "boot/101/1000000000000", Number: 1, Step: 1200, OptimizerStep: model.Some[int64](1201),
		DataCursor: "7", RNGDigest: "00000000000000010000000000000000", Replica: "ba",
	}, g.resumes[0])
	assert.Equal(t, int64(1), g.resumes[0].Rank.Rank)
	r.Pass(at(100_009), g.emit(t))
	assert.Len(t, g.resumes, 1)
	r.Pass(at(100_010), g.emit(t))
	require.Len(t, g.resumes, 2, "who compares may be new")
	assert.Equal(t, g.resumes[0], g.resumes[1])

	f.resume(2, 900, 100_020)
	f.resume(1, 1200, 100_021) // it is late
	r.Pass(at(100_030), g.emit(t))
	require.Len(t, g.resumes, 3)
	assert.Equal(t, []int64{2, 900}, []int64{g.resumes[2].Number, g.resumes[2].Step})
	r.Finish(at(100_040), false, g.emit(t))
	assert.Len(t, g.resumes, 3)
	assert.Zero(t, r.Stats().NotMapped)
}

func TestAProcessThatEndsAtOnceIsHeard(t *testing.T) {
	f, r, g := resuming(t)
	f.resume(1, 7, 5)
	r.Finish(at(10), true, g.emit(t))
	require.Len(t, g.resumes, 1)
	assert.Equal(t, int64(7), g.resumes[0].Step)
}

// What is told of nobody can be compared: it waits in the ring until it is known who the rank is.
func TestAResumeWaitsForItsIncarnation(t *testing.T) {
	f, r, g := resuming(t)
	world := f.comms
	f.comms = f.comms[:1]
	f.resume(1, 7, 5)
	r.Pass(at(10), g.emit(t))
	assert.Empty(t, g.resumes)
	f.comms = world
	r.Pass(at(20), g.emit(t))
	require.Len(t, g.resumes, 1)
	assert.Equal(t, model.Incarnation(model.World{CommHash: "0x000000000000feed"}), g.resumes[0].Rank.Incarnation)
}

// A restart within the process is another incarnation, of which nothing was said yet; what is said
// then is its first.
func TestAResumeBelongsToItsIncarnation(t *testing.T) {
	f, r, g := resuming(t)
	f.resume(1, 7, 5)
	f.resume(2, 8, 6)
	r.Pass(at(10), g.emit(t))
	require.Len(t, g.resumes, 1)
	f.comms[1].Ended = true
	f.comms = append(f.comms, ring.Comm{Index: 2, Hash: 0xbeef, Ranks: 2, Rank: 1, ABI: 5, Name: "world"})
	r.Pass(at(500_000), g.emit(t))
	assert.Len(t, g.resumes, 1, "it loaded nothing in this life of the job, as far as is known")
	f.resume(3, 9, 500_001)
	r.Pass(at(500_010), g.emit(t))
	require.Len(t, g.resumes, 2)
	assert.NotEqual(t, g.resumes[0].Rank.Incarnation, g.resumes[1].Rank.Incarnation)
	assert.Equal(t, []int64{1, 9}, []int64{g.resumes[1].Number, g.resumes[1].Step})
}

func TestResumesThatSayNothingAreCounted(t *testing.T) {
	f, r, g := resuming(t)
	f.resume(1, -1, 5)
	f.resume(0, 7, 5)
	f.resume(1, 7, uint64(2*time.Hour/time.Microsecond))
	r.Pass(at(10), g.emit(t))
	assert.Empty(t, g.resumes)
	assert.Equal(t, []int64{2, 1}, []int64{r.Stats().ResumesInvalid, r.Stats().BadTimes})
}

// A reader that is older than a kind of record counts it, and goes on.
func TestAKindThatIsNotKnownIsPassedOver(t *testing.T) {
	f, r, g := resuming(t)
	f.records = append(f.records, ring.Record{1: 250 | 1<<8 | 0xf<<16, 2: 1 << 63})
	f.resume(1, 7, 5)
	r.Pass(at(10), g.emit(t))
	assert.Len(t, g.resumes, 1)
	assert.Equal(t, int64(1), r.Stats().NotMapped)
}
