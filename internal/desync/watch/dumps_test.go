// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

func dumpOf(rank int64) *model.RankState {
	s := still(rank, 0, true)
	s.Source, s.Rank.Incarnation, s.Rank.PID = model.StateFlightRecorder, "", model.Optional[int64]{}
	return s
}

// Dumps that come one by one for long are judged once a minute, and as soon as the last has come.
func TestDumpsThatTrickleIn(t *testing.T) {
	const ranks = 300
	w, now := New(NewDefaultConfig()), time.Unix(1_760_000_000, 0)
	members := make([]int64, ranks)
	for i := range members {
		members[i] = int64(i)
	}
	for rank := range int64(ranks) {
		s := dumpOf(rank)
		s.Rank.WorldSize = model.Some(int64(ranks))
		s.Comms[0].Members = members
		w.AddState(s, now)
		w.Tick(now)
		now = now.Add(time.Second)
	}
	assert.Equal(t, int64(ranks/60), w.Stats().Judged, "of 299 s; the last is of all")
	assert.Zero(t, w.jobs[w.latest["job"]].absences())
	assert.True(t, w.jobs[w.latest["job"]].dumps.judged)
}

// Nor does what they told stay where all of them together do not decide.
func TestWhatFewDumpsToldIsDoubtedLater(t *testing.T) {
	w := newWatch(NewDefaultConfig(), func(ev *Evidence) *desync.Report {
		f := model.Finding{Class: model.ClassStalledOp, Rank: model.Some(int64(1)), Op: "o", CommID: "c", Waiting: []int64{0}}
		if len(ev.States) > 2 {
			f.Class, f.Rank, f.Candidates = model.ClassIncompleteEvidence, model.Optional[int64]{}, []int64{1, 2}
		}
		return &desync.Report{Roots: []desync.Root{{Finding: f}}}
	})
	now := time.Unix(1_760_000_000, 0)
	w.AddState(dumpOf(0), now)
	w.AddState(dumpOf(1), now)
	now = now.Add(w.cfg.DumpWait)
	first := w.Tick(now)
	require.Len(t, first, 1)
	w.AddState(dumpOf(2), now)
	second := w.Tick(now.Add(w.cfg.DumpWait))
	require.Len(t, second, 1)
	assert.Equal(t, []any{first[0].ID, model.StatusUpdated, model.ClassIncompleteEvidence}, []any{second[0].ID, second[0].Status, second[0].Class})
}

// What the first dumps told is taken back where the later ones say otherwise.
func TestWhatFewDumpsToldIsTakenBack(t *testing.T) {
	w := newWatch(NewDefaultConfig(), func(ev *Evidence) *desync.Report {
		blamed := int64(1)
		switch len(ev.States) {
		case 3:
			blamed = 2
		case 4:
			return &desync.Report{}
		}
		return &desync.Report{Roots: []desync.Root{{Finding: model.Finding{Class: model.ClassStalledOp, Rank: model.Some(blamed), CommID: "c", Waiting: []int64{0}}}}}
	})
	now := time.Unix(1_760_000_000, 0)
	come := func(ranks ...int64) []model.Finding {
		for _, rank := range ranks {
			w.AddState(dumpOf(rank), now)
		}
		now = now.Add(w.cfg.DumpWait)
		return w.Tick(now)
	}
	first := come(0, 1)
	require.Len(t, first, 1)
	require.Equal(t, model.StatusOpen, first[0].Status)

	second := come(2)
	require.Len(t, second, 2)
	status := map[int64]string{}
	for _, f := range second {
		status[f.Rank.V] = f.Status
	}
	assert.Equal(t, map[int64]string{1: model.StatusClosed, 2: model.StatusOpen}, status)

	third := come(3)
	require.Len(t, third, 1)
	assert.Equal(t, model.Some(int64(2)), third[0].Rank)
	assert.Equal(t, model.StatusClosed, third[0].Status)
	assert.Empty(t, w.Standing())
}
