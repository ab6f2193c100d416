// SPDX-License-Identifier: Apache-2.0

package resume

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// long is a text of 4,000 bytes that no other is.
func long(i int) string { return strconv.Itoa(i) + padding }

var padding = strings.Repeat("x", 4000)

// hostile is a valid resume of another job, with new texts.
func hostile(i int, change func(*model.Resume)) *model.Resume {
	v := told(int64(i), 3, 7)
	v.Rank.JobID, v.Rank.Incarnation, v.Rank.HostName, v.Rank.HWID, v.Life = "hostile", "h", long(i), long(i), long(i)
	change(v)
	return v
}

// Whatever ranks report on other jobs, the watch keeps to its bytes and reports a job's disagreement.
func TestWatch_Flood_StaysWithinBytesAndTellsOfOthers(t *testing.T) {
	const limit = 1 << 20
	for name, change := range map[string]func(i int, v *model.Resume){
		"new ranks":        func(int, *model.Resume) {},
		"new processes":    func(i int, v *model.Resume) { v.Rank.Rank = int64(i / 8) },
		"new incarnations": func(i int, v *model.Resume) { v.Rank.Incarnation = long(i) },
		"new jobs": func(i int, v *model.Resume) {
			v.Rank.JobID, v.Rank.Incarnation, v.Rank.JobName = long(i), long(i), long(i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			cfg := NewDefaultConfig()
			cfg.Incarnations, cfg.Ranks, cfg.Bytes = 64, 4096, limit
			r := &rig{NewWatch(cfg), began}
			for range 4 {
				r.tell(told(0, 3, 7), told(1, 3, 7), told(2, 3, 7))
			}
			for i := range tier.N(t, 600, 20_000) {
				r.tell(hostile(i, func(v *model.Resume) { change(i, v) }))
				require.LessOrEqual(t, r.Stats().Bytes, limit)
				if i%50 == 0 {
					r.tell(told(0, 3, 7), told(1, 3, 7), told(2, 3, 7))
				}
			}
			ranks, bytes := 0, 0
			for k, in := range r.engine.held {
				ranks += len(in.ranks)
				bytes += incarnationBytes + len(k.Job) + len(k.Incarnation) + len(in.name)
				for _, of := range in.ranks {
					bytes += of.size()
				}
			}
			assert.Equal(t, []int{ranks, bytes}, []int{r.Stats().Ranks, r.Stats().Bytes})
			assert.Less(t, heap()-before, int64(2*limit+1<<20))
			r.tell(told(1, 3, 9, number(2)), told(0, 3, 7, number(2)), told(2, 3, 7, number(2)))
			assert.Contains(t, r.said(), "first 1 false [1]")
			runtime.KeepAlive(r)
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A life with too many ranks finds no room itself, once others have left that hold less.
func TestEngine_TooManyRanksOfOneLife_LeaveOthers(t *testing.T) {
	e := New(Config{Ranks: 8})
	e.Observe(told(0, 2, 7))
	e.Observe(told(1, 2, 7))
	for i := range 100 {
		e.Observe(hostile(i, func(*model.Resume) {}))
	}
	assert.True(t, e.Has(Key{"job", "first"}))
	assert.Equal(t, 8, e.Stats().Ranks)
	assert.Equal(t, int64(94), e.Stats().Overflowed)
	e.Observe(told(2, 3, 7))
	assert.False(t, e.Has(Key{"hostile", "h"}), "it holds most, and makes room")
	assert.Equal(t, 3, e.Stats().Ranks)
}

// The life leaves that has most ranks, and not one that holds more bytes.
func TestEngine_RanksAreShort_LifeWithMostRanksLeaves(t *testing.T) {
	e := New(Config{Ranks: 8})
	wordy := told(0, 1, 7)
	wordy.Rank.JobID, wordy.Rank.HostName, wordy.Rank.HWID, wordy.Life = "wordy", long(0), long(0), long(0)
	e.Observe(wordy)
	for i := range int64(7) {
		v := told(i, 7, 7)
		v.Rank.JobID = "hostile"
		e.Observe(v)
	}
	require.Greater(t, e.held[Key{"wordy", "first"}].share.Bytes(), e.held[Key{"hostile", "first"}].share.Bytes())
	e.Observe(told(0, 1, 7))
	assert.Equal(t, []Key{{"job", "first"}, {"wordy", "first"}}, e.Keys())
	assert.Zero(t, e.Stats().Overflowed)
}

// A job that starts again takes the room of its former life, whatever is short, and not that of others.
func TestEngine_RestartedJob_FormerLifeLeavesFirst(t *testing.T) {
	for name, cfg := range map[string]Config{
		"lives": {Incarnations: 3}, "ranks": {Ranks: 5}, "bytes": {Bytes: 5 * (incarnationBytes + rankBytes + int(unsafe.Sizeof(life{})))},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(cfg)
			of := func(job, life string, rank int64) *model.Resume {
				v := told(rank, 2, 7)
				v.Rank.JobID, v.Rank.Incarnation, v.Life = job, life, ""
				return v
			}
			e.Observe(of("a", "first", 0))
			e.Observe(of("job", "first", 0))
			e.Observe(of("job", "first", 1))
			e.Observe(of("b", "first", 0))
			for _, other := range []string{"a", "b", "job"} { // whichever was heard last
				e.Observe(of(other, "first", 0))
			}
			for rank := range int64(2) {
				e.Observe(of("job", "second", rank))
				if cfg.Incarnations == 0 {
					e.Observe(of("job", "second", rank+2))
				}
			}
			assert.Equal(t, []Key{{"a", "first"}, {"b", "first"}, {"job", "second"}}, e.Keys())
			assert.EqualValues(t, 1, e.Stats().Left)
		})
	}
}

// Two jobs of one name that are both heard of push out neither: the later one finds no room.
func TestEngine_TwoJobsOfOneName_LaterOneFindsNoRoom(t *testing.T) {
	e := New(Config{Ranks: 3})
	later := func(rank int64) *model.Resume {
		v := told(rank, 2, 7)
		v.Rank.Incarnation = "other"
		return v
	}
	e.Observe(told(0, 2, 7))
	e.Observe(later(0))
	e.Observe(told(1, 2, 7))
	e.Observe(later(1))
	assert.Equal(t, []Key{{"job", "first"}, {"job", "other"}}, e.Keys())
	assert.EqualValues(t, 1, e.Stats().Overflowed)
}

// Lives without the name of a job may be of any: the later one does not take the room of the other.
func TestEngine_LivesWithoutName_AreNoFormerLives(t *testing.T) {
	e := New(Config{Ranks: 3})
	nameless := func(life string, rank int64) *model.Resume {
		v := told(rank, 2, 7)
		v.Rank.JobID, v.Rank.Incarnation = "", life
		return v
	}
	e.Observe(nameless("first", 0))
	e.Observe(nameless("first", 1))
	e.Observe(nameless("other", 0))
	e.Observe(nameless("other", 1))
	assert.Equal(t, []Key{{"", "first"}, {"", "other"}}, e.Keys())
	assert.EqualValues(t, 1, e.Stats().Overflowed)
}
