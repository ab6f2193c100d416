// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPollReadsEachRecordOnce(t *testing.T) {
	m := newImage(3, 8)
	r := m.open(t)
	m.emit(1, 0, 5, LevelSummary)
	m.emit(2, 0, 2, LevelSummary)
	read, c := numbers(r, LevelAll)
	assert.Equal(t, [][]uint64{nil, {0, 1, 2, 3, 4}, {0, 1}}, read)
	assert.Equal(t, Counts{Read: 7}, c)
	m.emit(1, 5, 11, LevelSummary)
	read, c = numbers(r, LevelAll)
	assert.Equal(t, [][]uint64{nil, {5, 6, 7, 8, 9, 10}, nil}, read)
	assert.Equal(t, Counts{Read: 6}, c)
	_, c = numbers(r, LevelAll)
	assert.Zero(t, c)
}

func TestPollCountsWhatWasOverwritten(t *testing.T) {
	m := newImage(2, 8)
	r := m.open(t)
	m.emit(1, 0, 21, LevelSummary)
	read, c := numbers(r, LevelAll)
	assert.Equal(t, []uint64{13, 14, 15, 16, 17, 18, 19, 20}, read[1])
	assert.Equal(t, Counts{Read: 8, Lost: 13}, c)
	lanes := r.Lanes(nil)
	assert.Equal(t, uint64(21), lanes[1].Head)
	assert.Equal(t, Counts{Read: 8, Lost: 13}, lanes[1].Counts)
}

// The writer is between its first and its last store of number 9, where 1 was.
func TestPollPassesOverARecordBeingOverwritten(t *testing.T) {
	m := newImage(2, 8)
	r := m.open(t)
	m.emit(1, 0, 9, LevelSummary)
	m.set(m.word(1, 9, 0), 0)
	m.set(m.word(1, 9, 3), 9)
	read, c := numbers(r, LevelAll)
	assert.Equal(t, []uint64{2, 3, 4, 5, 6, 7, 8}, read[1])
	assert.Equal(t, Counts{Read: 7, Lost: 2}, c)
}

func TestPollLeavesDetailToSnapshot(t *testing.T) {
	m := newImage(2, 8)
	r := m.open(t)
	m.emit(1, 0, 2, LevelSummary)
	m.emit(1, 2, 4, LevelAll)
	m.emit(1, 4, 5, LevelCollectives)
	read, c := numbers(r, LevelCollectives)
	assert.Equal(t, []uint64{0, 1, 4}, read[1])
	assert.Equal(t, Counts{Read: 3, Skipped: 2}, c)
	var all []uint64
	c = r.Snapshot(func(_ int, rec *Record) { all = append(all, rec.Number()) })
	assert.Equal(t, []uint64{0, 1, 2, 3, 4}, all)
	assert.Equal(t, Counts{Read: 5}, c)
	assert.Equal(t, Stats{Counts: Counts{Read: 3, Skipped: 2}}, r.Stats(), "a snapshot leaves no trace")
	_, c = numbers(r, LevelAll)
	assert.Zero(t, c, "skipped is skipped")
}

// pendingImage has numbers 0 to 3 in the shared lane, 1 of them unfinished.
func pendingImage() *image {
	m := newImage(1, 8)
	m.emit(0, 0, 4, LevelSummary)
	m.set(m.word(0, 1, 0), writing|1)
	return m
}

func TestSharedLaneOfADeadWriter(t *testing.T) {
	read, c := numbers(pendingImage().open(t), LevelAll)
	assert.Equal(t, []uint64{0, 2, 3}, read[0], "nobody holds the lock, so nobody will finish it")
	assert.Equal(t, Counts{Read: 3, Lost: 1}, c)
}

func TestSharedLaneSkipsWhatAStandingWriterBlocks(t *testing.T) {
	m := newImage(1, 8)
	r := m.open(t)
	m.emit(0, 0, 12, LevelSummary)
	m.set(m.word(0, 9, 0), writing|1) // of the lap before; 9 was given up
	m.set(m.word(0, 10, 0), 2+1)      // it ended since: 10 was given up too
	read, c := numbers(r, LevelAll)
	assert.Equal(t, []uint64{4, 5, 6, 7, 8, 11}, read[0])
	assert.Equal(t, Counts{Read: 6, Lost: 6}, c)
}

func TestCorruptHeads(t *testing.T) {
	t.Run("impossible", func(t *testing.T) {
		m := newImage(2, 8)
		r := m.open(t)
		for _, head := range []uint64{maxHead + 1, 1 << 63, math.MaxUint64} {
			m.head(1, head)
			_, c := numbers(r, LevelAll)
			assert.Equal(t, Counts{Corrupt: 1}, c)
			assert.Equal(t, Counts{Corrupt: 1}, r.Snapshot(ignore))
		}
		m.emit(1, 0, 3, LevelSummary)
		_, c := numbers(r, LevelAll)
		assert.Equal(t, Counts{Read: 3}, c, "the lane goes on where it was")
	})
	t.Run("outruns its records", func(t *testing.T) {
		m := newImage(2, 8)
		r := m.open(t)
		m.emit(1, 0, 8, LevelSummary)
		m.head(1, 1<<40)
		_, c := numbers(r, LevelAll)
		assert.Equal(t, Counts{Corrupt: 1}, c, "2^40 losses would be a lie")
		m.head(1, 8)
		_, c = numbers(r, LevelAll)
		assert.Equal(t, Counts{Read: 8}, c)
		m.head(1, 12)
		_, c = numbers(r, LevelAll)
		assert.Equal(t, Counts{Lost: 4, Corrupt: 4}, c)
	})
	t.Run("goes backwards", func(t *testing.T) {
		m := newImage(2, 8)
		r := m.open(t)
		m.emit(1, 0, 8, LevelSummary)
		_, _ = numbers(r, LevelAll)
		m.head(1, 2)
		_, c := numbers(r, LevelAll)
		assert.Equal(t, Counts{Corrupt: 1}, c)
		m.emit(1, 2, 4, LevelSummary)
		read, _ := numbers(r, LevelAll)
		assert.Equal(t, []uint64{2, 3}, read[1])
	})
	t.Run("record of another slot", func(t *testing.T) {
		m := newImage(2, 8)
		r := m.open(t)
		m.emit(1, 0, 3, LevelSummary)
		m.set(m.word(1, 1, 0), 1+1+3)
		_, c := numbers(r, LevelAll)
		assert.Equal(t, Counts{Read: 2, Lost: 1, Corrupt: 1}, c)
	})
}

// However far a head runs ahead while it is read, a poll ends.
func TestPollIsBounded(t *testing.T) {
	m := newImage(2, 8)
	r := m.open(t)
	m.emit(1, 0, 8, LevelSummary)
	next := uint64(8)
	c := r.Poll(LevelAll, func(int, *Record) {
		m.emit(1, next, next+1, LevelSummary)
		next++
	})
	assert.LessOrEqual(t, c.Read, uint64(8))
	assert.Equal(t, uint64(8), c.Read+c.Lost)
}

func TestPollAllocatesNothing(t *testing.T) {
	m := newImage(2, 64)
	m.emit(1, 0, 64, LevelSummary)
	m.set(m.offset[sSlots], 1<<8|uint64(SlotEnqueued))
	r := m.open(t)
	read := uint64(0)
	count := func(int, *Record) { read++ }
	slots := make([]Slot, 0, 8)
	const runs = 100 // AllocsPerRun does one more
	allocs := testing.AllocsPerRun(runs, func() {
		r.lanes[1].cursor = 0
		r.Poll(LevelAll, count)
		r.Snapshot(count)
		slots = r.InFlight(slots[:0])
	})
	assert.Zero(t, allocs)
	assert.Equal(t, uint64((runs+1)*2*64), read)
	assert.Len(t, slots, 1)
}

func TestTruncatedWhileMapped(t *testing.T) {
	uses := map[string]func(r *Ring){
		"poll":      func(r *Ring) { r.Poll(LevelAll, ignore) },
		"snapshot":  func(r *Ring) { r.Snapshot(ignore) },
		"in flight": func(r *Ring) { r.InFlight(nil) },
		"frontiers": func(r *Ring) { r.Frontiers(nil) },
		"comms":     func(r *Ring) { r.Comms(nil) },
		"gpus":      func(r *Ring) { r.GPUs(nil) },
		"string":    func(r *Ring) { _ = r.String(1) },
		"drops":     func(r *Ring) { r.Drops() },
		"clock":     func(r *Ring) { r.ClockPairs(nil) },
		"lanes":     func(r *Ring) { r.Lanes(nil) },
		"heartbeat": func(r *Ring) { r.Heartbeat() },
		"step":      func(r *Ring) { r.Step() },
		"alive":     func(r *Ring) { _, _, _ = r.Alive() },
		"level":     func(r *Ring) { _ = r.SetLevel(LevelAll) },
	}
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			m := newImage(2, 8)
			m.emit(1, 0, 3, LevelSummary)
			path := m.save(t)
			r := openRing(t, path)
			require.NoError(t, os.Truncate(path, 0))
			use(r)
			var refused *Error
			require.ErrorAs(t, r.Err(), &refused)
			assert.Contains(t, refused.Error(), "truncated while mapped")
			assert.Equal(t, uint64(1), r.Stats().Faults)
			for _, again := range uses {
				again(r)
			}
			assert.Equal(t, uint64(1), r.Stats().Faults)
			require.NoError(t, r.Close())
		})
	}
}

func TestTruncatedInMidPoll(t *testing.T) {
	m := newImage(2, 256)
	m.emit(1, 0, 256, LevelSummary)
	path := m.save(t)
	r := openRing(t, path)
	c := r.Poll(LevelAll, func(_ int, rec *Record) {
		if rec.Number() == 3 {
			assert.NoError(t, os.Truncate(path, int64(m.word(1, 64, 0)/page*page)))
		}
	})
	assert.Positive(t, c.Read)
	assert.Less(t, c.Read, uint64(256))
	require.ErrorContains(t, r.Err(), "truncated while mapped")
}

func TestGrownWhileMapped(t *testing.T) {
	m := newImage(2, 8)
	path := m.save(t)
	r := openRing(t, path)
	require.NoError(t, os.Truncate(path, 1<<20))
	m.emit(1, 0, 3, LevelSummary)
	_, c := numbers(r, LevelAll)
	assert.Equal(t, Counts{Read: 3}, c)
}

func TestCallbacksPanicIsItsOwn(t *testing.T) {
	m := newImage(2, 8)
	m.emit(1, 0, 3, LevelSummary)
	r := m.open(t)
	assert.PanicsWithValue(t, "mine", func() { r.Poll(LevelAll, func(int, *Record) { panic("mine") }) })
	nothing := map[int]*Record{}
	assert.Panics(t, func() { r.Poll(LevelAll, func(lane int, rec *Record) { *rec = *nothing[lane] }) }, "a fault, but elsewhere")
	assert.NoError(t, r.Err())
}

func TestCloseTwice(t *testing.T) {
	m := newImage(2, 8)
	m.emit(1, 0, 3, LevelSummary)
	r := m.open(t)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	_, c := numbers(r, LevelAll)
	assert.Zero(t, c)
	assert.Empty(t, r.InFlight(nil))
	assert.False(t, r.Replaced())
	_, _, err := r.Alive()
	require.ErrorIs(t, err, errClosed)
	require.ErrorIs(t, r.SetLevel(LevelAll), errClosed)
}

func TestCloseFromTheCallback(t *testing.T) {
	m := newImage(2, 8)
	m.emit(1, 0, 8, LevelSummary)
	r := m.open(t)
	c := r.Poll(LevelAll, func(int, *Record) { assert.NoError(t, r.Close()) })
	assert.Equal(t, Counts{Read: 1}, c)
}
