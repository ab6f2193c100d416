// SPDX-License-Identifier: Apache-2.0

package epoch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func committedBy(by string, kind model.DomainKind, id string, of, save int64) model.EpochObservation {
	return model.EpochObservation{
		JobID: testJob, Generation: "g", Save: save, Domain: model.Domain{Kind: kind, ID: id}, Of: of,
		State: model.DomainCommitted, Epoch: model.Some(save), Observer: by, Revision: 1,
	}
}

// That one kind is counted says nothing of the others.
func TestOneKindIsCounted(t *testing.T) {
	e := New(Config{})
	for _, id := range []string{"rank 0", "rank 1"} {
		observe(e, committedBy(id, model.DomainModel, id, 2, 10), committedBy(id, model.DomainOptimizer, id, 0, 10), committedBy(id, model.DomainModel, id, 2, 20))
	}
	observe(e, committedBy("rank 0", model.DomainOptimizer, "rank 0", 0, 20))
	require.Equal(t, Converging, e.Judge(testJob, "g", 20).Verdict)
	require.Equal(t, model.Some[int64](10), e.Frontier(testJob, "g"))
	observe(e, committedBy("rank 1", model.DomainOptimizer, "rank 1", 0, 20))
	require.Equal(t, Converged, e.Judge(testJob, "g", 20).Verdict)
}

// A pointer is none of the parts of which an observer says how many there are, nor is what is absent.
func TestPartsAreWhatIsThere(t *testing.T) {
	e := New(Config{})
	place := committedBy("n", model.DomainPlace, "", 1, 10)
	place.Parts = 2
	gone := committedBy("n", model.DomainModel, "rank 7", 0, 10)
	gone.State = model.DomainAbsent
	observe(e, place, gone, committedBy("n", model.DomainTracker, "latest", 0, 10))
	require.Equal(t, 3, e.Judge(testJob, "g", 10).MissingCount, "two parts that are there, and one that is not")
	gone.State, gone.Revision = model.DomainWithdrawn, 2
	observe(e, gone, committedBy("n", model.DomainModel, "rank 0", 0, 10))
	require.False(t, e.Frontier(testJob, "g").OK, "the other part was not heard")
	gone.Domain.Kind, gone.Domain.ID, gone.State = model.DomainTracker, "latest", model.DomainAbsent
	gone.Revision = 2
	observe(e, gone)
	require.False(t, e.Frontier(testJob, "g").OK)
	require.Equal(t, Converging, e.Judge(testJob, "g", 10).Verdict, "that a pointer moved on revokes nothing")
	observe(e, committedBy("n", model.DomainModel, "rank 1", 0, 10))
	require.Equal(t, model.Some[int64](10), e.Frontier(testJob, "g"))
	require.Equal(t, Converged, e.Judge(testJob, "g", 10).Verdict)
}

// What one told of who had to leave is expected still, unless it is taken back by who is there.
func TestWhatWasToldByWhoHadToLeave(t *testing.T) {
	e := New(Config{Observers: 3})
	for _, id := range []string{"r0", "r1"} {
		observe(e, committedBy(id, model.DomainModel, id, 2, 10), committedBy(id, model.DomainOptimizer, id, 1, 10))
	}
	observe(e, committedBy("w", model.DomainCommit, "", 1, 10))
	require.Equal(t, Converged, e.Judge(testJob, "g", 10).Verdict)
	e.Forget("r1")
	require.Equal(t, Converging, e.Judge(testJob, "g", 10).Verdict)
	observe(e, committedBy("x", model.DomainCommit, "", 1, 20))
	require.Len(t, e.names, 3, "r1 had to leave")
	want := e.Judge(testJob, "g", 10)
	require.Equal(t, Converging, want.Verdict)
	require.Equal(t, 2, want.MissingCount)

	data, err := e.Snapshot()
	require.NoError(t, err)
	again := New(Config{})
	require.NoError(t, again.Restore(data))
	require.Equal(t, want, again.Judge(testJob, "g", 10))

	back := committedBy("w", model.DomainOptimizer, "r1", 0, 10)
	observe(e, back)
	require.Equal(t, 1, e.Judge(testJob, "g", 10).MissingCount)
	back.State, back.Revision = model.DomainWithdrawn, 2
	observe(e, back)
	require.Equal(t, 1, e.Judge(testJob, "g", 10).MissingCount)
	require.ErrorContains(t, New(Config{}).Restore([]byte(`{"version":1,"generations":[{"job":"j","generation":"g","domains":[["model",""]],"saves":[{"save":1,"told":[1],"registers":[]}]}]}`)),
		`save 1: got domain 1; want one of 1`)
}

// Who doubts a save does not depend on who was heard first of a place, nor on whether that one lives.
func TestDoubtersDoNotDependOnOrder(t *testing.T) {
	obs := []model.EpochObservation{
		committedBy("a", model.DomainPlace, "n1", 2, 10), committedBy("b", model.DomainPlace, "n2", 2, 10),
		committedBy("c", model.DomainPlace, "n2", 2, 10), committedBy("a", model.DomainPlace, "n1", 2, 20),
	}
	for _, order := range [][]int{{0, 1, 2, 3}, {0, 2, 1, 3}, {3, 2, 1, 0}} {
		e := New(Config{})
		for _, i := range order {
			observe(e, obs[i])
		}
		all := func(model.DomainKind) bool { return true }
		require.Equal(t, []string{"b", "c"}, e.Doubters(testJob, "g", 20, all), order)
		e.Forget("b")
		require.Equal(t, []string{"c"}, e.Doubters(testJob, "g", 20, all), order)
		observe(e, committedBy("a", model.DomainPlace, "n1", 2, 5))
		require.Empty(t, e.Doubters(testJob, "g", 5, all), "of a place without older saves nobody knows")
	}
}
