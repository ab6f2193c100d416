// SPDX-License-Identifier: Apache-2.0

package resume

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

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

// lifeOf is what a rank of a life of a job has loaded.
func lifeOf(job, incarnation string, rank int64) *model.Resume {
	v := told(rank, 2, 7)
	v.Rank.JobID, v.Rank.Incarnation = job, incarnation
	return v
}

// Two jobs may go by one name: a later life that would hold most finds no room, and the one at work stays.
func TestEngine_LaterLifeOfOneName_FindsNoRoomItself(t *testing.T) {
	e := New(Config{Ranks: 8})
	for rank := range int64(3) {
		e.Observe(lifeOf("train", "team a", rank))
	}
	for rank := range int64(8) {
		e.Observe(lifeOf("train", "team b", rank))
	}
	assert.Equal(t, []Key{{"train", "team a"}, {"train", "team b"}}, e.Keys())
	assert.EqualValues(t, 3, e.Stats().Overflowed)
}

// One message under the name of a job takes no place of its life at work.
func TestEngine_OneMessageUnderAName_LifeAtWorkStays(t *testing.T) {
	e := New(Config{Incarnations: 4})
	for range 21 {
		e.Observe(lifeOf("train", "team a", 0))
	}
	for _, job := range []string{"b", "c", "d"} {
		e.Observe(lifeOf(job, "first", 0))
	}
	e.Observe(lifeOf("train", "forged", 0))
	assert.Equal(t, []Key{{"c", "first"}, {"d", "first"}, {"train", "forged"}, {"train", "team a"}}, e.Keys())
}
