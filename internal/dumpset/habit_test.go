// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

const ms = time.Millisecond

// about is a time that varies, by its mean.
func about(r *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(r.ExpFloat64() * float64(mean))
}

// lateAt is a job of which one rank computes for longer than the others before one call.
func lateAt(rank, op int, late, others time.Duration) func(*rand.Rand, int, int, int) time.Duration {
	return func(r *rand.Rand, of, _, at int) time.Duration {
		switch {
		case at == op && of == rank:
			return late
		case at == op:
			return others
		}
		return about(r, ms/5)
	}
}

// uneven are jobs that run, in which one rank or another is late in most steps.
func uneven() map[string]*simulated {
	return map[string]*simulated{
		"one is late":              {ranks: 4, steps: 40, compute: lateAt(1, 0, 300*ms, 0)},
		"one is a little late":     {ranks: 4, steps: 40, compute: lateAt(1, 0, 60*ms, 50*ms)},
		"in another place":         {ranks: 6, steps: 40, compute: lateAt(4, 2, 90*ms, 10*ms)},
		"before all":               {ranks: 8, steps: 40, only: []int{3}, compute: lateAt(5, 3, 60*ms, 20*ms)},
		"its buffer wrapped":       {ranks: 4, steps: 120, buffer: 40, compute: lateAt(2, 2, 30*ms, 0)},
		"its clock hides it":       {ranks: 4, steps: 40, skew: map[int]time.Duration{1: -300 * ms}, compute: lateAt(1, 0, 300*ms, 0)},
		"no two clocks are alike":  {ranks: 4, steps: 40, skew: map[int]time.Duration{1: -20 * ms, 2: 70 * ms, 3: 5 * ms}, compute: lateAt(1, 0, 300*ms, 0)},
		"clocks are seconds apart": {ranks: 6, steps: 40, skew: map[int]time.Duration{0: -2 * time.Second, 3: 5 * time.Second}, compute: lateAt(3, 0, 100*ms, 0)},
		"another one in every step": {ranks: 8, steps: 60, compute: func(r *rand.Rand, rank, step, op int) time.Duration {
			if op == 0 && step*5%8 == rank {
				return 100 * ms
			}
			return about(r, ms/5)
		}},
	}
}

// moment is a time in a job at which it may have been asked for its dumps.
func moment(calls [][]simCall, seed uint64) int64 {
	last := end(calls)
	return last/2 + rand.New(rand.NewPCG(seed, 9)).Int64N(last/2)
}

func listed(h *Hang) (named, candidates []int64) {
	for i := range h.Roots {
		named = append(named, h.Roots[i].Finding.Ranks...)
		candidates = append(candidates, h.Roots[i].Finding.Candidates...)
	}
	return named, candidates
}

// A job that runs, of which the files have lost their times, accuses nobody, whether somebody says
// that it hung or not: what it shows it showed for most of its time.
func TestUnevenJobsThatRun(t *testing.T) {
	for name, j := range uneven() {
		j.stuckRank = -1
		for seed := range uint64(2) {
			calls := j.play(seed)
			dumps := j.dump(calls, moment(calls, seed))
			for _, hung := range []bool{false, true} {
				h := readLost(t, dumps, hung)
				named, candidates := listed(h)
				assert.Empty(t, named, "%s %d %v", name, seed, hung)
				assert.Empty(t, candidates, "%s %d %v", name, seed, hung)
				assert.NotEqual(t, desync.Hang, h.Verdict, name)
				assert.Equal(t, h.Verdict == desync.Undecided, h.MayRun != "", name)
			}
		}
	}
}

// Of a job whose ranks are late by chance one is accused in the moments in which all others wait for
// it: seldom, and for a quarter at most where somebody says that it hung.
func TestJobsThatRunByChance(t *testing.T) {
	some := func(mean time.Duration) func(*rand.Rand, int, int, int) time.Duration {
		return func(r *rand.Rand, _, _, _ int) time.Duration { return about(r, mean) }
	}
	all, accusedOf := 0, map[bool]int{}
	for name, j := range map[string]*simulated{
		"eight":          {ranks: 8, steps: 60, compute: some(5 * ms)},
		"four":           {ranks: 4, steps: 60, compute: some(5 * ms)},
		"busy":           {ranks: 4, steps: 60, compute: some(ms / 10)},
		"wrapped":        {ranks: 4, steps: 90, buffer: 60, compute: some(2 * ms)},
		"a slow network": {ranks: 6, steps: 60, network: 3 * ms, compute: some(ms)},
	} {
		j.stuckRank = -1
		for seed := range uint64(4) {
			calls := j.play(seed)
			dumps := j.dump(calls, moment(calls, seed))
			all++
			for _, hung := range []bool{false, true} {
				h := readLost(t, dumps, hung)
				named, candidates := listed(h)
				if len(named) > 0 {
					accusedOf[hung]++
					assert.LessOrEqual(t, h.Roots[0].Finding.Confidence, 0.6)
				} else {
					assert.Empty(t, candidates, "%s %d", name, seed)
				}
			}
		}
	}
	assert.LessOrEqual(t, 20*accusedOf[false], all)
	assert.LessOrEqual(t, 4*accusedOf[true], all)
}

// A rank that stops where the others seldom waited for it is named, whoever else is late while
// the job runs.
func TestJobsThatHang(t *testing.T) {
	jobs := uneven()
	delete(jobs, "another one in every step") // in which it says nothing that all wait for one
	usual := map[string]int{
		"one is late": 1, "one is a little late": 1, "in another place": 4, "before all": 5, "its buffer wrapped": 2,
		"its clock hides it": 1, "no two clocks are alike": 1, "clocks are seconds apart": 3,
	}
	for name, j := range jobs {
		require.Contains(t, usual, name)
		for _, who := range []int{0, 1, j.ranks - 1} {
			if who == usual[name] {
				continue
			}
			j.stuckRank, j.stuckStep, j.stuckOp = who, j.steps*2/3, 0
			if j.only != nil {
				j.stuckOp = j.only[0]
			}
			h := readLost(t, j.dump(j.play(uint64(who)), 0), true)
			named, _ := listed(h)
			assert.Equal(t, []int64{int64(who)}, named, "%s: %s", name, h.MayRun)
			require.NotEmpty(t, h.Roots, name)
			f := &h.Roots[0].Finding
			assert.Equal(t, model.ClassNotScheduled, f.Class, name)
			assert.LessOrEqual(t, f.Confidence, 0.75, name)
			assert.Contains(t, evidence.Encode(f.Evidence), "of the time", "how often it was so")
		}
	}
}

// Where who is always late stops, its dumps look as always: nobody is accused, and the report says
// what would decide.
func TestWhoIsAlwaysLateStops(t *testing.T) {
	j := uneven()["one is late"]
	j.stuckRank, j.stuckStep, j.stuckOp = 1, 30, 0
	h := readLost(t, j.dump(j.play(1), 0), true)
	assert.Equal(t, desync.Undecided, h.Verdict)
	assert.Empty(t, h.Roots)
	assert.Contains(t, h.MayRun, "a job that runs looks like this")
	assert.Contains(t, h.MayRun, "the Python stack of rank 1")
}

// Of a job that has just begun too little is recorded: nobody is accused, unless somebody says that
// it hung, and then with little confidence.
func TestShortHistories(t *testing.T) {
	for _, steps := range []int{1, 2, 3} {
		j := &simulated{ranks: 4, steps: 9, stuckRank: 2, stuckStep: steps, stuckOp: 0, compute: lateAt(0, 2, 5*ms, 0)}
		dumps := j.dump(j.play(3), 0)
		h := readLost(t, dumps, false)
		named, candidates := listed(h)
		assert.Empty(t, named)
		assert.Empty(t, candidates)
		assert.Contains(t, h.MayRun, "too little to tell")
		assert.Contains(t, h.MayRun, "--hung")
		h = readLost(t, dumps, true)
		named, _ = listed(h)
		assert.Equal(t, []int64{2}, named)
		assert.Less(t, h.Roots[0].Finding.Confidence, 0.5)
		assert.Contains(t, evidence.Encode(h.Roots[0].Finding.Evidence), "too little to tell")
	}
}

// saving is a job of NCCL of which rank 0 saves behind every eighth call for so long, while the others
// wait. Its dumps are of the middle of a save.
func saving(saves int, each time.Duration) []*frwrite.Dump {
	const every, ranks = 8, 6
	var dumps []*frwrite.Dump
	for r := range ranks {
		d := &frwrite.Dump{Groups: []frwrite.Group{{Name: "0", Desc: "default_pg", Ranks: []int64{0, 1, 2, 3, 4, 5}}}}
		calls := every * saves
		if r > 0 {
			calls++ // in which they wait for rank 0
		}
		for seq := 1; seq <= calls; seq++ {
			saved := (seq - 1) / every // before this call
			at := simStart + int64(seq)*int64(10*ms) + int64(saved)*int64(each) + int64(r)*1000
			if r > 0 && saved > 0 && (seq-1)%every == 0 {
				at -= int64(each)
			}
			size := int64(4)
			if seq%every == 0 {
				size = 1 // the loss, behind which rank 0 saves
			}
			e := frwrite.Entry{
				RecordID: int64(seq - 1), Group: "0", Desc: "default_pg", CollectiveSeq: int64(seq), OpID: int64(seq), Name: "nccl:all_reduce",
				Created: at, In: [][]int64{{size}}, Out: [][]int64{{size}}, InTypes: []string{"Float"}, OutTypes: []string{"Float"}, State: frwrite.Scheduled, TimeoutMS: 600_000,
			}
			if seq <= every*saves {
				over := simStart + int64(seq)*int64(10*ms) + int64(saved)*int64(each) + int64(ranks*1000) + int64(ms)
				e.State, e.Completed, e.Retired = frwrite.Completed, over, true
			}
			d.Entries = append(d.Entries, e)
		}
		d.Status = []frwrite.Status{{Enqueued: int64(calls), Started: -1, Completed: int64(every * saves)}}
		dumps = append(dumps, d)
	}
	return dumps
}

// Where the others waited for a rank in each of the few repetitions of a place that are recorded, that
// is what the job shows there, and few are enough.
func TestFewRepetitionsOfWhichAllAreAlike(t *testing.T) {
	for _, saves := range []int{2, 3, 4} {
		h := readLost(t, saving(saves, time.Second), false)
		named, candidates := listed(h)
		assert.Empty(t, named, saves)
		assert.Empty(t, candidates, saves)
		assert.Equal(t, desync.Undecided, h.Verdict, saves)
		assert.Contains(t, h.MayRun, "a job that runs looks like this", saves)
		h = readLost(t, saving(saves, time.Second), true)
		named, _ = listed(h)
		assert.Equal(t, []int64{0}, named, "its watchdog wrote them")
		assert.LessOrEqual(t, h.Roots[0].Finding.Confidence, 0.5, saves)
	}
	first := readLost(t, saving(1, time.Second), false)
	named, _ := listed(first)
	assert.Equal(t, []int64{0}, named, "nothing of this place is recorded")
}

// Where the times of files show how long ranks have waited, no longer than they did while the job ran is no hang;
// longer is one.
func TestNoLongerThanBefore(t *testing.T) {
	read := func(saves int, after time.Duration) *Hang {
		dumps := saving(saves, 10*time.Second)
		paths := write(t, filepath.Join(t.TempDir(), "job"), "rank_", dumps)
		newest := dumps[1].Entries[len(dumps[1].Entries)-1].Created
		for _, p := range paths {
			at := time.Unix(0, newest).Add(after)
			require.NoError(t, os.Chtimes(p, at, at))
		}
		r := Read(t.Context(), paths, Options{})
		require.Len(t, r.Hangs, 1)
		return &r.Hangs[0]
	}
	// The saves take ten seconds, of which the dumps are taken at some moment.
	for _, saves := range []int{2, 3, 6} {
		for _, after := range []time.Duration{time.Second, 5 * time.Second, 9 * time.Second} {
			h := read(saves, after)
			named, candidates := listed(h)
			assert.Empty(t, named, "%d %v", saves, after)
			assert.Empty(t, candidates, "%d %v", saves, after)
		}
		for _, after := range []time.Duration{25 * time.Second, time.Minute, 5 * time.Minute} {
			named, _ := listed(read(saves, after))
			assert.Equal(t, []int64{0}, named, "%d %v", saves, after)
		}
	}
}

// A clock that nothing compares with the others is no secret.
func TestWhatClocksLeaveOpen(t *testing.T) {
	j := uneven()["before all"]
	j.stuckRank, j.stuckStep, j.stuckOp = 0, 30, 3
	named := readLost(t, j.dump(j.play(2), 0), true)
	require.NotEmpty(t, named.Roots)
	assert.Contains(t, evidence.Encode(named.Roots[0].Finding.Evidence), "which the dumps do not exclude")

	j = uneven()["no two clocks are alike"]
	j.stuckRank = -1
	calls := j.play(2)
	usual := readLost(t, j.dump(calls, calls[1][100].enter-int64(50*ms)), true)
	assert.Contains(t, usual.MayRun, "which is taken into account")

	dumps := world(8, 0) // of NCCL, whose ends are recorded, but not here
	for _, d := range dumps {
		for i := range d.Entries {
			d.Entries[i].Completed = 0
		}
	}
	alone := readLost(t, dumps, true)
	require.NotEmpty(t, alone.Roots)
	assert.Contains(t, evidence.Encode(alone.Roots[0].Finding.Evidence), "nothing recorded compares the clocks")
}

// Offsets follow from pairs that have a collective in common, by way of others, too.
func TestCompareClocks(t *testing.T) {
	j := uneven()["no two clocks are alike"]
	j.stuckRank = -1
	var all []*past
	known := names{}
	for _, d := range j.dump(j.play(7), 0) {
		read, err := flightrecorder.Decode(frwrite.Pickle(d), flightrecorder.Options{})
		require.NoError(t, err)
		all = append(all, pastOf(read, known))
	}
	c := compareClocks(all)
	require.True(t, c.known)
	for i, want := range []time.Duration{-20 * ms, 70 * ms, 5 * ms} {
		assert.InDelta(t, want, c.offsets[i], float64(ms))
	}
	assert.InDelta(t, 70*ms, c.proven, float64(ms))
	assert.Less(t, time.Duration(c.earlier+c.later), ms)

	all[2].calls[50].out = all[2].calls[50].at - int64(time.Second) // a host that does not wait in its calls
	c = compareClocks(all)
	assert.False(t, c.known)
	assert.Equal(t, make([]int64, 3), c.offsets)
}

// Hosts that do not wait for their devices are ahead of one another while a job runs, too: only by
// more calls than usual do they show that one stopped.
func TestHostsThatRunAhead(t *testing.T) {
	read := func(ahead int, hung bool) *Hang {
		var dumps []*frwrite.Dump
		for r := range 4 {
			d := &frwrite.Dump{Groups: []frwrite.Group{{Name: "0", Desc: "default_pg", Ranks: []int64{0, 1, 2, 3}}}}
			last := 60
			if r != 2 {
				last += ahead
			}
			for seq := 1; seq <= last; seq++ {
				at := simStart + int64(seq)*int64(10*ms) + int64(r)
				if r == 2 {
					at += int64(25 * ms) // two calls behind
				}
				e := frwrite.Entry{
					RecordID: int64(seq - 1), Group: "0", Desc: "default_pg", CollectiveSeq: int64(seq), OpID: int64(seq), Name: "nccl:all_reduce",
					Created: at, In: [][]int64{{4}}, Out: [][]int64{{4}}, InTypes: []string{"Float"}, OutTypes: []string{"Float"}, State: frwrite.Scheduled, TimeoutMS: 600_000,
				}
				if seq <= 60 {
					e.State, e.Completed, e.Retired = frwrite.Completed, at+int64(60*ms), true
				}
				d.Entries = append(d.Entries, e)
			}
			d.Status = []frwrite.Status{{Enqueued: int64(last), Started: -1, Completed: 60}}
			dumps = append(dumps, d)
		}
		return readLost(t, dumps, hung)
	}
	for _, ahead := range []int{1, 2} {
		named, _ := listed(read(ahead, false))
		assert.Empty(t, named, "ahead by %d", ahead)
		// The watchdog of NCCL wrote them, and a person says that the job hung.
		h := read(ahead, true)
		named, _ = listed(h)
		assert.Equal(t, []int64{2}, named, "ahead by %d: %s", ahead, h.MayRun)
		assert.LessOrEqual(t, h.Roots[0].Finding.Confidence, 0.5)
		assert.Contains(t, evidence.Encode(h.Roots[0].Finding.Evidence), "does not clear it")
	}
	for _, ahead := range []int{5, 40} {
		h := read(ahead, true)
		named, _ := listed(h)
		assert.Equal(t, []int64{2}, named, "ahead by %d: %s", ahead, h.MayRun)
	}
}

// Where a rank waits for one of which the history is not looked at, it says nothing; where all do,
// nothing is known.
func TestWhatIsNotSeenSaysNothing(t *testing.T) {
	at := func(group int32, last int64) *past {
		p := &past{last: map[int32]int64{}, waits: true}
		for seq := range last {
			p.calls = append(p.calls, call{callKey: callKey{group, seq + 1}, at: seq + 1})
		}
		p.index()
		return p
	}
	late, near, far := at(1, 5), at(1, 6), at(2, 6)
	late.waits = false
	assert.Equal(t, []*past{late, near}, visible([]*past{late, near, far}))
	assert.Empty(t, visible([]*past{late, far}))
	idle := at(3, 3)
	idle.waits = false
	assert.Equal(t, []*past{late, near, idle}, visible([]*past{late, near, idle}))
}

// Of many ranks some are looked at, and of many that do not come some.
func TestHabitsAreBounded(t *testing.T) {
	assert.Equal(t, []int64{0, 3, 6}, spread([]int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 3))
	h := &habits{byRank: map[int64]*item{}, known: map[int64]desync.Habit{}}
	var waiting []int64
	for r := range int64(100) {
		h.byRank[r] = &item{rank: r}
		if r > 0 && r < 60 {
			waiting = append(waiting, r)
		}
	}
	seen := h.observed(0, waiting)
	assert.Len(t, seen, maxObserved)
	assert.Equal(t, int64(0), seen[0])
	assert.True(t, seen[maxWaiting] < 60 && seen[maxWaiting+1] >= 60, "%v", seen)
	for r := range int64(maxHabits + 3) {
		h.known[r] = desync.Habit{State: desync.HabitRare}
	}
	assert.Equal(t, desync.HabitUnknown, h.of(50, nil).State)
	assert.Equal(t, 1, strings.Count(times(1), "1"))
}
