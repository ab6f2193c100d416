// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

var began = time.Unix(1_000_000, 0)

const slices100 = 10 // of 100 elements, and a fingerprint each 100 steps

// printed is what one of so many replicas tells after a step.
func printed(rank, of, step int64, hash uint64, change ...func(*model.Fingerprint)) *model.Fingerprint {
	v := &model.Fingerprint{
		Rank: model.Rank{
			JobID: "job", JobName: "llama", Incarnation: "first", Rank: rank, HostName: fmt.Sprint("node", rank/2), HWID: fmt.Sprint("GPU-", rank),
		},
		Time: 1000 + step, Life: fmt.Sprint("process ", rank), Step: step, Hash: hash,
		Start: step / 100 % slices100 * 100, Total: 1000, Group: "dp", Replicas: of,
	}
	for _, c := range change {
		c(v)
	}
	return v
}

type rig struct {
	*Watch
	now time.Time
}

func newRig(c Config) *rig { return &rig{NewWatch(c), began} }

func (r *rig) tell(of ...*model.Fingerprint) *rig {
	for _, v := range of {
		r.Observe(v, r.now)
	}
	return r
}

// all has replicas tell hashes after a step.
func (r *rig) all(step int64, hashes ...uint64) *rig {
	for rank, h := range hashes {
		r.tell(printed(int64(rank), int64(len(hashes)), step, h))
	}
	return r
}

// said is what the next look says.
func (r *rig) said() (out []string) {
	r.now = r.now.Add(time.Second)
	for _, f := range r.Tick(r.now) {
		ev := evidenceOf(f)
		out = append(out, fmt.Sprintf("%s revision %d over %t step %d from %d minority %v", f.Incarnation, f.Revision, f.Status == model.StatusClosed, ev.Step, ev.Start, f.Ranks))
	}
	return out
}

func evidenceOf(f model.Finding) *evidence.Replica {
	ev, _ := evidence.As[evidence.Replica](f.Evidence)
	return ev
}

func TestAMinorityIsNamedWithItsGPU(t *testing.T) {
	r := newRig(Config{})
	assert.Empty(t, r.all(100, 7, 7, 7).said())
	assert.Equal(t, []string{"first revision 1 over false step 200 from 200 minority [1]"}, r.all(200, 8, 9, 8).said())
	f := r.Standing(r.now)[0]
	ev := evidenceOf(f)
	assert.Equal(t, []any{"llama", "node0", []string{"GPU-1"}, model.Some(int64(1)), 3, 3, true, 1},
		[]any{f.JobName, f.Host, ev.GPUs, f.RanksCount, ev.Told, ev.Replicas, ev.Decided, ev.Slices})
	assert.Equal(t, []evidence.ValueHeld{{Value: "0000000000000008", Ranks: []int64{0, 2}, Count: 2}, {Value: "0000000000000009", Ranks: []int64{1}, Count: 1}}, ev.Held)
	assert.Equal(t, map[string]int{"job": 1}, r.Mixed())
	assert.Empty(t, r.all(200, 8, 9, 8).said(), "what is told again is no news")
	assert.Empty(t, r.all(300, 3, 3, 3).all(1100, 3, 3, 3).said(), "that other slices agree, or have, ends nothing")
	assert.Equal(t, []string{"first revision 2 over true step 200 from 200 minority [1]"}, r.all(1200, 5, 5, 5).said())
	assert.Equal(t, map[string]int{"job": 0}, r.Mixed())
	assert.Equal(t, []int64{18, 1, 1, 3}, []int64{r.Stats().Fingerprints, r.Stats().Opened, r.Stats().Closed, int64(r.Stats().Ranks)})
}

func TestNobodyIsNamedWhereNothingDecides(t *testing.T) {
	for name, told := range map[string][]*model.Fingerprint{
		"one to one":                        {printed(0, 2, 100, 7), printed(1, 2, 100, 8)},
		"two to two":                        {printed(0, 4, 100, 7), printed(1, 4, 100, 7), printed(2, 4, 100, 8), printed(3, 4, 100, 8)},
		"the silent may be of the minority": {printed(0, 5, 100, 7), printed(1, 5, 100, 7), printed(2, 5, 100, 8)},
		"nobody says how many there are":    {printed(0, 0, 100, 7), printed(1, 0, 100, 7), printed(2, 0, 100, 8)},
	} {
		r := newRig(Config{}).tell(told...)
		assert.Equal(t, []string{"first revision 1 over false step 100 from 100 minority []"}, r.said(), name)
	}
}

func TestWhatConfirmsNothing(t *testing.T) {
	anew := func(v *model.Fingerprint) { v.Life, v.Time = "new", 5000 }
	group := func(v *model.Fingerprint) { v.Group = "other" }
	for name, told := range map[string][]*model.Fingerprint{
		"one replica":                 {printed(0, 2, 100, 7)},
		"of two steps":                {printed(0, 2, 100, 7), printed(1, 2, 200, 8)},
		"of two groups":               {printed(0, 2, 100, 7), printed(1, 2, 100, 8, group)},
		"one that contradicts itself": {printed(0, 2, 100, 7), printed(1, 2, 100, 7), printed(1, 2, 100, 8)},
		"one that was started anew":   {printed(0, 2, 100, 7), printed(1, 2, 0, 3), printed(1, 2, 100, 8, anew)},
	} {
		assert.Empty(t, newRig(Config{}).tell(told...).said(), name)
	}
	r := newRig(Config{}).tell(printed(0, 2, 100, 7), printed(1, 2, 0, 3), printed(1, 2, 100, 8, anew), printed(0, 2, 100, 8, anew))
	assert.Empty(t, r.said(), "all were, and agree")
	assert.Empty(t, r.tell(printed(1, 2, 100, 3)).said())
	assert.Equal(t, int64(1), r.Stats().Late, "of the life before")
}

// Ranks that have told of different slices, as the stages of a pipeline do, are no replicas.
func TestWhoIsNoReplica(t *testing.T) {
	for name, change := range map[string]func(*model.Fingerprint){
		"another size":  func(v *model.Fingerprint) { v.Total++ },
		"another slice": func(v *model.Fingerprint) { v.Start++ },
	} {
		for _, order := range [][]int64{{0, 1, 2}, {2, 1, 0}} {
			r := newRig(Config{})
			for _, rank := range order {
				v := printed(rank, 3, 100, uint64(rank))
				if rank == 2 {
					change(v)
				}
				r.tell(v)
			}
			assert.Empty(t, r.said(), name)
		}
	}
}

func TestADoubtStaysUntilTheSliceAgrees(t *testing.T) {
	r := newRig(Config{})
	r.all(200, 8, 9, 8).said()
	assert.Empty(t, r.tell(printed(0, 3, 1200, 5), printed(1, 3, 1200, 5)).said(), "two of three are not all")
	assert.Equal(t, []string{"first revision 2 over true step 200 from 200 minority [1]"}, r.tell(printed(2, 3, 1200, 5)).said())

	r = newRig(Config{})
	r.all(200, 8, 9, 8).said()
	assert.Equal(t, []string{"first revision 2 over false step 1200 from 200 minority [1]"}, r.all(1200, 5, 6, 5).said())
	assert.Equal(t, []string{"first revision 3 over false step 1300 from 300 minority [2]"}, r.all(1300, 5, 5, 6).said())
	assert.Equal(t, 2, evidenceOf(r.Standing(r.now)[0]).Slices)
}

// A burst between two looks is longer than what is compared at once.
func TestStepsThatLeaveAreJudged(t *testing.T) {
	r := newRig(Config{})
	r.all(100, 7, 8, 7)
	for n := int64(2); n < 9; n++ {
		r.all(100*n, 7, 7, 7)
	}
	assert.Equal(t, []string{"first revision 1 over false step 100 from 100 minority [1]"}, r.said())
	r.all(200, 7, 9, 7)
	assert.Equal(t, int64(3), r.Stats().Late)
}

func TestANewerLifeEndsIt(t *testing.T) {
	second := func(v *model.Fingerprint) { v.Rank.Incarnation = "second" }
	r := newRig(Config{})
	r.all(200, 8, 9, 8).said()
	assert.Equal(t, []string{"first revision 2 over true step 200 from 200 minority [1]"}, r.tell(printed(0, 3, 100, 7, second)).said())

	r = newRig(Config{})
	r.all(200, 8, 9, 8).tell(printed(0, 3, 100, 7, second)).said()
	assert.Empty(t, r.said(), "both go on")
	r.now = r.now.Add(NewDefaultConfig().Silent)
	assert.Equal(t, []string{"first revision 2 over true step 200 from 200 minority [1]"}, r.said())
	assert.Equal(t, []int64{2, 0}, []int64{r.Stats().Silent, int64(r.Stats().Ranks)})
}

// A group that begins after another one of its life was last seen says nothing of the other's replicas.
func TestWatch_YoungerGroupOfOneLife_FindingStaysOpen(t *testing.T) {
	r := newRig(Config{})
	r.all(200, 8, 9, 8).said()
	other := func(v *model.Fingerprint) { v.Group = "other" }
	assert.Empty(t, r.tell(printed(0, 3, 100, 7, other)).said())
	assert.Len(t, r.Standing(r.now), 1)
}

func TestRoomIsBounded(t *testing.T) {
	r := newRig(Config{Groups: 2, Ranks: 4, MaxEpisodes: 1})
	for i := range 10 {
		r.tell(printed(0, 2, 100, 7, func(v *model.Fingerprint) { v.Group = fmt.Sprint(i) }))
	}
	assert.Equal(t, 2, r.held)
	r.all(100, 1, 2, 3, 4, 5, 6)
	assert.Equal(t, []int64{4, 2}, []int64{int64(r.Stats().Ranks), r.Stats().Overflowed})
	assert.Len(t, r.said(), 1)
	for step := int64(0); step < 100_000; step += 100 {
		for rank, h := range []uint64{1, 2, 3} {
			r.tell(printed(int64(rank), 3, step, h, func(v *model.Fingerprint) { v.Start, v.Total = v.Step, 100_000 }))
		}
	}
	g := r.group(Key{"job", "first", "dp"})
	assert.Equal(t, []int{maxSteps, maxSlices}, []int{len(g.steps), len(g.doubt)})

	r = newRig(Config{MaxEpisodes: 1})
	r.all(100, 1, 2).tell(printed(0, 2, 100, 1, func(v *model.Fingerprint) { v.Group = "x" }), printed(1, 2, 100, 2, func(v *model.Fingerprint) { v.Group = "x" }))
	assert.Len(t, r.said(), 1)
	assert.Equal(t, int64(1), r.Stats().Withheld)
}

// TestOrderDuplicatesAndLoss: of replicas that hold what they hold, whatever part of it is heard in
// whatever order, a group differs only where they do, and who is named is of a minority of all.
func TestOrderDuplicatesAndLoss(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 85))
	mixed, named, cases := 0, 0, tier.N(t, 5_000, 100_000)
	for range cases {
		n := 1 + r.IntN(6)
		truth, count := make([]uint64, n), map[uint64]int{}
		for i := range truth {
			if r.IntN(5) == 0 {
				truth[i] = 1 + uint64(r.IntN(2))
			}
			count[truth[i]]++
		}
		var told []*model.Fingerprint
		seen := map[uint64]bool{}
		for range r.IntN(3 * n) {
			i := r.IntN(n)
			seen[truth[i]] = true
			told = append(told, printed(int64(i), int64(n), 100, truth[i]))
		}
		one := newRig(Config{}).tell(told...)
		r.Shuffle(len(told), func(i, j int) { told[i], told[j] = told[j], told[i] })
		two := newRig(Config{}).tell(told...).tell(told[:r.IntN(len(told)+1)]...)
		one.Tick(began)
		two.Tick(began)
		require.Equal(t, one.Standing(began), two.Standing(began))
		require.Equal(t, len(seen) > 1, len(one.Standing(began)) == 1, "%v, seen %v", truth, seen)
		for _, e := range one.Standing(began) {
			mixed++
			for _, i := range e.Ranks {
				named++
				require.Less(t, 2*count[truth[i]], n, "rank %d of %v", i, truth)
			}
		}
	}
	require.Greater(t, mixed, cases/10)
	require.Greater(t, named, cases/10)
}
