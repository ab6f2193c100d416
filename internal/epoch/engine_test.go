// SPDX-License-Identifier: Apache-2.0

package epoch

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

const (
	testJob = "job"
	testGen = "2 ranks"
)

// tell makes an observation of a rank's model.
func tell(save int64, rank int, revision int64, s model.DomainState, e ...int64) model.EpochObservation {
	o := seen(model.DomainModel, fmt.Sprint(rank), s, e...)
	o.Save, o.Revision = save, revision
	return o
}

func observe(e *Engine, obs ...model.EpochObservation) {
	for i := range obs {
		e.Observe(&obs[i])
	}
}

func TestASaveConverges(t *testing.T) {
	e := New(Config{})
	c := model.DomainCommitted
	require.Equal(t, Unknown, e.Judge(testJob, testGen, 100).Verdict)
	observe(e, tell(100, 0, 1, model.DomainTentative), tell(100, 1, 1, model.DomainTentative))
	require.Equal(t, Unknown, e.Judge(testJob, testGen, 100).Verdict)
	observe(e, tell(100, 0, 2, c, 100))
	require.Equal(t, Converging, e.Judge(testJob, testGen, 100).Verdict)
	require.False(t, e.Frontier(testJob, testGen).OK)
	observe(e, tell(100, 1, 2, c, 100))
	require.Equal(t, Converged, e.Judge(testJob, testGen, 100).Verdict)
	require.Equal(t, model.Some[int64](100), e.Frontier(testJob, testGen))

	observe(e, tell(200, 0, 3, c, 200))
	j := e.Judge(testJob, testGen, 200)
	require.Equal(t, Converging, j.Verdict, "rank 1 was heard of before, and has said nothing of this save")
	require.Equal(t, 1, j.MissingCount)
	lags, n := e.Lags(testJob, testGen, 10)
	require.Equal(t, 1, n)
	require.Equal(t, Lag{model.Domain{Kind: model.DomainModel, ID: "0"}, 200, 100}, lags[0])
}

func TestRetentionRevokes(t *testing.T) {
	e := New(Config{})
	observe(e, tell(100, 0, 1, model.DomainCommitted, 100), tell(100, 1, 1, model.DomainCommitted, 100))
	observe(e, tell(100, 1, 2, model.DomainAbsent, 100))
	require.Equal(t, Revoked, e.Judge(testJob, testGen, 100).Verdict)
	require.False(t, e.Frontier(testJob, testGen).OK)
	observe(e, tell(100, 1, 3, model.DomainCommitted, 100))
	require.Equal(t, Converged, e.Judge(testJob, testGen, 100).Verdict, "it was saved again")
}

// Who looks at a place is not sure of it any more as soon as a part is gone.
func TestRevokedBeneathAPlace(t *testing.T) {
	place := func(revision int64, s model.DomainState, held ...int64) model.EpochObservation {
		o := tell(100, 0, revision, s, held...)
		o.Domain = model.Domain{Kind: model.DomainPlace}
		return o
	}
	e := New(Config{})
	observe(e, tell(100, 0, 1, model.DomainCommitted, 100), tell(100, 1, 1, model.DomainCommitted, 100), place(2, model.DomainCommitted, 100))
	require.Equal(t, Converged, e.Judge(testJob, testGen, 100).Verdict)
	observe(e, place(3, model.DomainTentative))
	require.Equal(t, Converging, e.Judge(testJob, testGen, 100).Verdict, "nothing is seen to be gone")
	observe(e, tell(100, 1, 3, model.DomainAbsent, 100))
	require.Equal(t, Revoked, e.Judge(testJob, testGen, 100).Verdict)
	observe(e, tell(100, 0, 4, model.DomainTentative))
	require.Equal(t, Unknown, e.Judge(testJob, testGen, 100).Verdict, "the other is being written")
}

func TestWhatWasNeverThereIsNotRevoked(t *testing.T) {
	e := New(Config{})
	observe(e, tell(100, 0, 1, model.DomainCommitted, 100), tell(100, 1, 1, model.DomainAbsent))
	require.Equal(t, Converging, e.Judge(testJob, testGen, 100).Verdict)
}

func TestWhatWasLostOfAnotherEpochIsNotRevoked(t *testing.T) {
	e := New(Config{})
	observe(e, tell(100, 0, 1, model.DomainCommitted, 100), tell(100, 1, 1, model.DomainAbsent, 90))
	require.Equal(t, Converging, e.Judge(testJob, testGen, 100).Verdict)
}

// TestDomainsStayExpected: a rank that is dead is missed at every save, also where those of which
// it spoke have left, and at those before it was first heard.
func TestDomainsStayExpected(t *testing.T) {
	e := New(Config{Saves: 2})
	observe(e, tell(100, 0, 1, model.DomainCommitted, 100), tell(100, 1, 1, model.DomainCommitted, 100))
	for _, n := range []int64{200, 300, 400} {
		observe(e, tell(n, 0, 1, model.DomainCommitted, n))
		require.Equal(t, Converging, e.Judge(testJob, testGen, n).Verdict)
	}
	require.Equal(t, []int64{300, 400}, e.Saves(testJob, testGen))

	data, err := e.Snapshot()
	require.NoError(t, err)
	again := New(Config{})
	require.NoError(t, again.Restore(data))
	require.Equal(t, Converging, again.Judge(testJob, testGen, 400).Verdict, "nor does a restart forget it")
	observe(again, tell(400, 1, 1, model.DomainCommitted, 400))
	require.Equal(t, Converged, again.Judge(testJob, testGen, 400).Verdict)
	observe(again, tell(500, 2, 1, model.DomainCommitted, 500))
	require.Equal(t, Converging, again.Judge(testJob, testGen, 400).Verdict, "a third rank was there all along")
}

func TestRestoreRefuses(t *testing.T) {
	for data, want := range map[string]string{
		`{`:             "restore epochs: ",
		`{"version":2}`: "check version: got 2; want 1",
		`{"version":1,"observers":["a"],"gone":[1]}`: "check gone: got observer 1; want one of 1",
		`{"version":1,"observers":["a"],"generations":[{"domains":[["model","0"]],"saves":[{"save":1,"registers":[[1,0,1,4,1,1]]}]}]}`:    "got domain 1; want one of 1",
		`{"version":1,"observers":["a"],"generations":[{"domains":[["model","0"]],"saves":[{"save":1,"registers":[[0,1,1,4,1,1]]}]}]}`:    "got observer 1; want one of 1",
		`{"version":1,"observers":["a"],"generations":[{"domains":[["model","0"]],"saves":[{"save":1,"registers":[[0,0,1,9,1,1]]}]}]}`:    "got state 9; want 1 to 6",
		`{"version":1,"observers":["a"],"generations":[{"domains":[["model","0"]],"saves":[{"save":1,"registers":[[0,0,1,2,1,1]]}]}]}`:    "got an epoch of a state that has none",
		`{"version":1,"observers":["a"],"generations":[{"domains":[["model","0"]],"saves":[{"save":1,"registers":[[0,0,1,4,0,1]]}]}]}`:    "got epoch 1 with mark 0",
		`{"version":1,"observers":["a"],"generations":[{"domains":[["model","0"]],"saves":[{"save":1,"registers":[[0,0,1,4,1,1,2]]}]}]}`:  "got parts of what is no place",
		`{"version":1,"observers":["a"],"generations":[{"domains":[["place","0"]],"saves":[{"save":1,"registers":[[0,0,1,4,1,1,-2]]}]}]}`: "got -2 parts; want 0 to 2147483647",
		`{"version":1,"generations":[{"domains":[["","0"]]}]}`:                                                                            "got a domain without a kind",
		`{"version":1,"generations":[{"saves":[{"save":1,"of":{"":1}}]}]}`:                                                                "got a count of no kind",
	} {
		e := New(Config{})
		require.ErrorContains(t, e.Restore([]byte(data)), want, data)
		require.Empty(t, e.Jobs(), data)
	}
}

func TestDomainsThatNobodySpokeOfAreMissing(t *testing.T) {
	e := New(Config{})
	o := tell(100, 0, 1, model.DomainCommitted, 100)
	o.Of = 4
	observe(e, o)
	j := e.Judge(testJob, testGen, 100)
	require.Equal(t, Converging, j.Verdict)
	require.Equal(t, 3, j.MissingCount)
	require.Equal(t, 4, j.Domains)
}

// place is what an observer says of all that it tells of a save.
func place(save, revision, of, parts int64) model.EpochObservation {
	o := seen(model.DomainPlace, "", model.DomainCommitted, save)
	o.Save, o.Revision, o.Of, o.Parts = save, revision, of, parts
	return o
}

// TestWhatIsToldOfASaveIsExpectedOfIt: where somebody says how many domains a save has, others that
// earlier saves had are none of it.
func TestWhatIsToldOfASaveIsExpectedOfIt(t *testing.T) {
	e := New(Config{})
	for rank := range 3 {
		observe(e, tell(100, rank, 1, model.DomainCommitted, 100))
	}
	observe(e, place(100, 2, 1, 3))
	for rank := range 2 {
		observe(e, tell(200, rank, 3, model.DomainCommitted, 200))
	}
	require.Equal(t, Converging, e.Judge(testJob, testGen, 200).Verdict, "nobody has said how many there are")
	observe(e, place(200, 4, 1, 2))
	require.Equal(t, Converged, e.Judge(testJob, testGen, 200).Verdict)
	require.Equal(t, Converged, e.Judge(testJob, testGen, 100).Verdict)
}

// TestWhatWasToldAndNotHeard: of what an observer tells of, a part is late or lost.
func TestWhatWasToldAndNotHeard(t *testing.T) {
	e := New(Config{})
	observe(e, tell(100, 0, 1, model.DomainCommitted, 100), place(100, 2, 1, 2))
	require.Equal(t, Converging, e.Judge(testJob, testGen, 100).Verdict)
	theirs := tell(100, 1, 1, model.DomainCommitted, 100)
	theirs.Observer = "b"
	observe(e, theirs)
	require.Equal(t, Converging, e.Judge(testJob, testGen, 100).Verdict, "another tells of it")
	require.Equal(t, model.Optional[int64]{}, e.Frontier(testJob, testGen))
	data, err := e.Snapshot()
	require.NoError(t, err)
	again := New(Config{})
	require.NoError(t, again.Restore(data))
	require.Equal(t, Converging, again.Judge(testJob, testGen, 100).Verdict)
	more := place(100, 2, 1, 1)
	more.Observer = "b"
	observe(e, more)
	theirs.Domain.ID = "0"
	observe(e, theirs)
	require.Equal(t, Converging, e.Judge(testJob, testGen, 100).Verdict, "another was heard to tell of more than it says")
	observe(e, tell(100, 1, 1, model.DomainCommitted, 100))
	require.Equal(t, Converged, e.Judge(testJob, testGen, 100).Verdict)
}

func TestWhatIsWithdrawnIsNotExpected(t *testing.T) {
	e := New(Config{})
	observe(e, tell(100, 0, 1, model.DomainCommitted, 100), tell(100, 1, 1, model.DomainTentative), place(100, 2, 1, 1))
	require.Equal(t, Converging, e.Judge(testJob, testGen, 100).Verdict)
	require.Equal(t, []string{"a"}, e.Doubters(testJob, testGen, 100, func(model.DomainKind) bool { return true }))
	observe(e, tell(100, 1, 3, model.DomainWithdrawn))
	require.Equal(t, Converged, e.Judge(testJob, testGen, 100).Verdict)
	require.Empty(t, e.Doubters(testJob, testGen, 100, func(model.DomainKind) bool { return true }))
	other := tell(100, 0, 1, model.DomainCommitted, 100)
	other.Generation = "b"
	observe(e, other, tell(100, 0, 4, model.DomainWithdrawn))
	gone := place(100, 4, 1, 1)
	gone.State = model.DomainWithdrawn
	observe(e, gone)
	require.Equal(t, Judgement{Verdict: Unknown}, e.Judge(testJob, testGen, 100))
	require.Equal(t, []string{testGen, "b"}, e.Generations(testJob), "the one that has a save comes last")
}

// TestARevisionIsNoChange: that it was looked at again is nothing new.
func TestARevisionIsNoChange(t *testing.T) {
	e := New(Config{})
	for revision, want := range []Change{OfAll, Nothing, Nothing} {
		o := tell(100, 0, int64(revision), model.DomainCommitted, 100)
		require.Equal(t, want, e.Observe(&o))
	}
}

func TestAPointerDoesNotRecover(t *testing.T) {
	e := New(Config{})
	observe(e, tell(100, 0, 1, model.DomainCommitted, 100))
	tracker := seen(model.DomainTracker, "latest", model.DomainTentative)
	observe(e, tracker)
	require.Equal(t, Converging, e.Judge(testJob, testGen, 100).Verdict)
	require.Equal(t, model.Some[int64](100), e.Frontier(testJob, testGen))
}

// TestObserversThatDisagree: of two who look at one domain, and see different things, nobody
// knows which sees an old copy.
func TestObserversThatDisagree(t *testing.T) {
	e := New(Config{})
	mine, theirs := tell(100, 0, 5, model.DomainCommitted, 100), tell(100, 0, 1, model.DomainTentative)
	theirs.Observer = "b"
	observe(e, mine, theirs)
	require.Equal(t, Unknown, e.Judge(testJob, testGen, 100).Verdict)
	e.Forget("b")
	require.Equal(t, Converged, e.Judge(testJob, testGen, 100).Verdict)
	theirs.State, theirs.Epoch, theirs.Revision = model.DomainCommitted, model.Some[int64](99), 2
	observe(e, theirs)
	require.Equal(t, MixedEpoch, e.Judge(testJob, testGen, 100).Verdict)
	e.Forget("a")
	e.Forget("b")
	require.Equal(t, Unknown, e.Judge(testJob, testGen, 100).Verdict, "nobody is heard from")
}

func TestGenerationsAreNotCompared(t *testing.T) {
	e := New(Config{})
	old := tell(100, 0, 1, model.DomainCommitted, 100)
	grown := tell(200, 0, 1, model.DomainCommitted, 200)
	grown.Generation = "1 rank"
	observe(e, old, tell(100, 1, 1, model.DomainCommitted, 100), grown)
	require.Equal(t, Converged, e.Judge(testJob, "1 rank", 200).Verdict)
	require.Equal(t, []string{testGen, "1 rank"}, e.Generations(testJob))
}

func TestLimits(t *testing.T) {
	t.Run("domains taint", func(t *testing.T) {
		e := New(Config{Domains: 1})
		observe(e, tell(100, 0, 1, model.DomainCommitted, 100), tell(100, 1, 1, model.DomainAbsent))
		require.Equal(t, Unknown, e.Judge(testJob, testGen, 100).Verdict)
		require.EqualValues(t, 1, e.Stats().Overflowed)
	})
	t.Run("a save that does not fit leaves whole", func(t *testing.T) {
		e := New(Config{Registers: 1})
		observe(e, tell(100, 0, 1, model.DomainCommitted, 100), tell(100, 1, 1, model.DomainAbsent))
		require.Equal(t, Unknown, e.Judge(testJob, testGen, 100).Verdict)
		require.Zero(t, e.Stats().Registers)
		require.EqualValues(t, 1, e.Stats().SavesLost)
	})
	t.Run("the lowest saves make room for registers", func(t *testing.T) {
		e := New(Config{Registers: 10})
		for n := int64(100); n <= 2000; n += 100 {
			for rank := range 4 {
				observe(e, tell(n, rank, 1, model.DomainCommitted, n))
			}
			require.Equal(t, Converged, e.Judge(testJob, testGen, n).Verdict, "%d", n)
		}
		require.Equal(t, []int64{1900, 2000}, e.Saves(testJob, testGen))
		require.Equal(t, 8, e.Stats().Registers)
		require.Zero(t, e.Stats().Overflowed)
	})
	t.Run("the generation with most makes room", func(t *testing.T) {
		e := New(Config{Registers: 6})
		small := tell(10, 0, 1, model.DomainCommitted, 10)
		small.JobID = "small"
		observe(e, small)
		for n := int64(100); n <= 1000; n += 100 {
			observe(e, tell(n, 0, 1, model.DomainCommitted, n), tell(n, 1, 1, model.DomainCommitted, n))
		}
		require.Equal(t, Converged, e.Judge("small", testGen, 10).Verdict)
		require.Equal(t, Converged, e.Judge(testJob, testGen, 1000).Verdict)
	})
	t.Run("observers that were forgotten leave", func(t *testing.T) {
		e := New(Config{Observers: 2})
		for life := range 10 {
			o := tell(100, 0, 1, model.DomainTentative)
			o.Observer = fmt.Sprint("life ", life)
			observe(e, o)
			o = tell(100, 0, 1, model.DomainCommitted, 100)
			o.Observer = "b"
			observe(e, o)
			e.Forget(fmt.Sprint("life ", life))
		}
		require.Equal(t, Converged, e.Judge(testJob, testGen, 100).Verdict)
		require.Zero(t, e.Stats().Overflowed)
		require.LessOrEqual(t, e.Stats().Registers, 2)
	})
	t.Run("observers taint", func(t *testing.T) {
		e := New(Config{Observers: 1})
		o := tell(100, 0, 9, model.DomainAbsent)
		o.Observer = "b"
		observe(e, tell(100, 0, 1, model.DomainCommitted, 100), o)
		require.Equal(t, Unknown, e.Judge(testJob, testGen, 100).Verdict)
	})
	t.Run("saves leave from below", func(t *testing.T) {
		e := New(Config{Saves: 2})
		for _, n := range []int64{300, 100, 200, 50} {
			observe(e, tell(n, 0, 1, model.DomainCommitted, n))
		}
		require.Equal(t, []int64{200, 300}, e.Saves(testJob, testGen))
		require.EqualValues(t, 2, e.Stats().SavesLost)
		require.Equal(t, 2, e.Stats().Registers)
	})
	t.Run("generations leave by their saves", func(t *testing.T) {
		e := New(Config{Generations: 2})
		for i, g := range []string{"x", "y", "z"} {
			o := tell(int64(100+i), 0, 1, model.DomainCommitted, 100)
			o.Generation = g
			observe(e, o)
		}
		require.Equal(t, []string{"y", "z"}, e.Generations(testJob))
	})
	t.Run("jobs", func(t *testing.T) {
		e := New(Config{Jobs: 1})
		o := tell(100, 0, 1, model.DomainCommitted, 100)
		o.JobID = "another"
		observe(e, tell(100, 0, 1, model.DomainCommitted, 100), o)
		require.Equal(t, []string{"another"}, e.Jobs(), "of the other nothing was heard for longer")
		require.EqualValues(t, 1, e.Stats().JobsLost)
		require.Equal(t, 1, e.Stats().Registers)
	})
	t.Run("what is no observation", func(t *testing.T) {
		e := New(Config{})
		observe(e, tell(100, 0, 1, "done", 100), model.EpochObservation{State: model.DomainCommitted})
		for _, name := range []string{"\xff", strings.Repeat("x", cut.MaxName+1)} {
			o := tell(100, 0, 1, model.DomainCommitted, 100)
			o.Domain.ID = name
			observe(e, o)
		}
		require.EqualValues(t, 4, e.Stats().Refused)
		require.Empty(t, e.Jobs())
	})
}

// TestMergeForgetsNothing: what keeps one engine from confirming keeps the merged one.
func TestMergeForgetsNothing(t *testing.T) {
	tainted := New(Config{Domains: 1})
	observe(tainted, tell(100, 0, 1, model.DomainCommitted, 100), tell(100, 1, 1, model.DomainAbsent))
	merged := New(Config{})
	require.NoError(t, merged.Merge(tainted))
	require.Equal(t, Unknown, merged.Judge(testJob, testGen, 100).Verdict)

	forgetful := New(Config{})
	observe(forgetful, tell(100, 0, 1, model.DomainCommitted, 100))
	forgetful.Forget("a")
	merged = New(Config{})
	require.NoError(t, merged.Merge(forgetful))
	require.Equal(t, Unknown, merged.Judge(testJob, testGen, 100).Verdict)
}

func TestMoreDomainsThanCanBe(t *testing.T) {
	e := New(Config{})
	o := tell(100, 0, 1, model.DomainCommitted, 100)
	o.Of = math.MaxInt64
	other := seen(model.DomainOptimizer, "0", model.DomainCommitted, 100)
	other.Of = math.MaxInt64
	observe(e, o, other)
	require.Equal(t, Unknown, e.Judge(testJob, testGen, 100).Verdict)
	require.EqualValues(t, 2, e.Stats().Overflowed)
}

func BenchmarkEvaluate16384x8(b *testing.B) {
	e := New(Config{})
	kinds := []model.DomainKind{
		model.DomainModel, model.DomainOptimizer, model.DomainScheduler, model.DomainRNG,
		model.DomainDataLoader, model.DomainTracker, model.DomainCommit, "extra",
	}
	o := model.EpochObservation{JobID: testJob, Generation: testGen, Save: 100, Epoch: model.Some[int64](100), State: model.DomainCommitted, Observer: "a", Revision: 1}
	for rank := range 16_384 {
		for _, k := range kinds {
			o.Domain = model.Domain{Kind: k, ID: fmt.Sprintf("rank %d", rank)}
			e.Observe(&o)
		}
	}
	require.Equal(b, Converged, e.Judge(testJob, testGen, 100).Verdict)
	b.Run("judge", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.Judge(testJob, testGen, 100)
		}
	})
	b.Run("observe", func(b *testing.B) {
		for b.Loop() {
			o.Revision++
			e.Observe(&o)
		}
	})
}
