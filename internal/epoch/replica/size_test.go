// SPDX-License-Identifier: Apache-2.0

package replica

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

// Whatever ranks report on other jobs, the watch keeps to its bytes and reports a job's wrong replica.
func TestWatch_Flood_StaysWithinBytesAndTellsOfOthers(t *testing.T) {
	const limit = 1 << 20
	for name, change := range map[string]func(i int, v *model.Fingerprint){
		"new ranks":  func(i int, v *model.Fingerprint) { v.Rank.Rank = int64(i) },
		"new groups": func(i int, v *model.Fingerprint) { v.Group = long(i) },
		"new slices in doubt": func(i int, v *model.Fingerprint) {
			v.Step, v.Start, v.Rank.Rank, v.Hash = int64(i/100), int64(i/100), int64(i%100), uint64(i)
		},
		"new jobs": func(i int, v *model.Fingerprint) { v.Rank.JobID, v.Rank.Incarnation = long(i), long(i) },
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			r := newRig(Config{Groups: 64, Ranks: 4096, Bytes: limit})
			for step := int64(100); step <= 400; step += 100 {
				assert.Empty(t, r.all(step, 7, 7, 7).said())
			}
			for i := range tier.N(t, 600, 20_000) {
				v := printed(0, 3, 100, 7)
				v.Rank.JobID, v.Rank.Incarnation, v.Rank.HostName, v.Rank.HWID, v.Life = "hostile", "h", long(i), long(i), long(i%100)
				change(i, v)
				r.tell(v)
				require.LessOrEqual(t, r.Stats().Bytes, limit)
				if i%100 == 0 {
					r.all(400, 7, 7, 7).said()
				}
			}
			bytes, ranks, ofJobs := 0, 0, 0
			for _, h := range r.jobs {
				bytes += holderBytes + len(h.job)
				ofJobs += h.ranks
			}
			for g := range r.groups {
				bytes += g.size()
				ranks += len(g.ranks)
				doubts := 0
				for _, j := range g.doubt {
					doubts += j.size()
				}
				assert.Equal(t, doubts, g.doubts)
			}
			assert.Equal(t, []int{bytes, ranks, ranks}, []int{r.Stats().Bytes, r.Stats().Ranks, ofJobs})
			assert.Less(t, heap()-before, int64(2*limit+1<<20))
			assert.Contains(t, r.all(500, 7, 8, 7).said(), "first revision 1 over false step 500 from 500 minority [1]")
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

// Groups of new jobs replace one another: that of a job that was heard often stays, though it holds more.
func TestWatch_GroupsOfManyNewJobs_KeepThoseOfASettledJob(t *testing.T) {
	r := newRig(Config{Groups: 64})
	for step := int64(100); step <= 400; step += 100 {
		r.all(step, 7, 7, 7)
	}
	for i := range 200 {
		r.tell(printed(0, 3, 100, 7, func(v *model.Fingerprint) { v.Rank.JobID = "new " + strconv.Itoa(i) }))
	}
	assert.Equal(t, 64, r.held)
	assert.NotNil(t, r.group(Key{"job", "first", "dp"}))
}

// Many jobs with one small group each are what a watch takes most memory for, by what it counts. Beside what
// is counted, the heap has the owners' places in the room, and unused ends of its blocks.
func TestWatch_OneGroupOfEachJob_HeapIsCounted(t *testing.T) {
	jobs := tier.N(t, 2000, 16_384)
	before := heap()
	w := NewWatch(Config{})
	for i := range jobs {
		w.Observe(of("job "+strconv.Itoa(i), "dp", 0), began)
	}
	held := heap() - before
	assert.Equal(t, jobs, w.held)
	assert.Less(t, 4*held, 5*int64(w.Stats().Bytes), "a quarter above what is counted")
	t.Logf("a group takes %d bytes of the heap and counts %d", held/int64(jobs), w.Stats().Bytes/jobs)
	runtime.KeepAlive(w)
}

// A group that is heard again is no longer the one that leaves first.
func TestWatch_OldestGroupIsHeardAgain_NextOneLeaves(t *testing.T) {
	r := newRig(Config{Groups: 2})
	r.tell(of("job", "a", 0), of("job", "b", 0), of("job", "a", 0), of("job", "c", 0))
	assert.NotNil(t, r.group(Key{"job", "first", "a"}))
	assert.Nil(t, r.group(Key{"job", "first", "b"}))
	assert.NotNil(t, r.group(Key{"job", "first", "c"}))
}

// Of a job's groups those are forgotten that fell silent, and not those that were heard since.
func TestWatch_OldestGroupIsHeardAgain_OtherIsForgotten(t *testing.T) {
	r := newRig(Config{})
	r.tell(of("job", "a", 0), of("job", "b", 0))
	r.now = r.now.Add(r.cfg.Silent / 2)
	r.tell(of("job", "a", 0))
	r.now = r.now.Add(r.cfg.Silent / 2)
	assert.Empty(t, r.Tick(r.now))
	assert.NotNil(t, r.group(Key{"job", "first", "a"}))
	assert.Nil(t, r.group(Key{"job", "first", "b"}))
	assert.EqualValues(t, 1, r.Stats().Silent)
}

// of is the fingerprint of a rank of another job.
func of(job, group string, rank int64) *model.Fingerprint {
	return printed(rank, 3, 100, 7, func(v *model.Fingerprint) { v.Rank.JobID, v.Group = job, group })
}

// A group leaves of the job that holds most ranks, and not of one that holds more bytes.
func TestWatch_RanksAreShort_JobWithMostRanksMakesRoom(t *testing.T) {
	r := newRig(Config{Ranks: 8})
	wordy := of("wordy", "dp", 0)
	wordy.Rank.HostName, wordy.Rank.HWID, wordy.Life = long(0), long(0), long(0)
	r.tell(wordy)
	for rank := range int64(7) {
		r.tell(of("hostile", []string{"dp", "tp"}[(rank+1)/4], rank))
	}
	require.Greater(t, r.jobs["wordy"].share.Bytes(), r.jobs["hostile"].share.Bytes())
	r.tell(of("new", "dp", 0))
	assert.NotNil(t, r.jobs["wordy"])
	assert.Nil(t, r.group(Key{"hostile", "first", "dp"}), "it was not heard of for longest")
	assert.Equal(t, 3, r.held)
	assert.Equal(t, []int{4, 1, 1, 6}, []int{r.jobs["hostile"].ranks, r.jobs["wordy"].ranks, r.jobs["new"].ranks, r.Stats().Ranks})
	for rank := range int64(3) {
		r.tell(of("new", "dp", rank+1))
	}
	assert.Equal(t, []int{4, 3}, []int{r.jobs["hostile"].ranks, r.jobs["new"].ranks}, "it would hold as many itself")
	assert.EqualValues(t, 1, r.Stats().Overflowed)
}

// A job that has many groups makes room for one of another, however often it is heard.
func TestWatch_GroupsAreShort_CrowdMakesRoom(t *testing.T) {
	r := newRig(Config{Groups: 8})
	r.tell(of("quiet", "dp", 0))
	for i := range 20 {
		r.tell(of("hostile", strconv.Itoa(i), 0))
	}
	assert.NotNil(t, r.group(Key{"quiet", "first", "dp"}))
	r.tell(of("new", "dp", 0))
	assert.Equal(t, 8, r.held)
	assert.NotNil(t, r.group(Key{"quiet", "first", "dp"}))
	assert.Nil(t, r.group(Key{"hostile", "first", "13"}))
	assert.NotNil(t, r.group(Key{"hostile", "first", "14"}))
}

// Where counts are more than what is there, the watch gives up what there is, and goes on.
func TestWatch_CountsThatAreWrong_EndTick(t *testing.T) {
	r := newRig(Config{Ranks: 8})
	r.tell(of("job", "dp", 0))
	r.room.Enter(newHolder("")).Add(2 * r.cfg.Bytes)
	r.stats.Ranks += 8
	r.Tick(r.now)
	assert.Equal(t, 1, r.held)
	r.tell(of("job", "dp", 1))
	assert.EqualValues(t, 1, r.Stats().Overflowed)
}
