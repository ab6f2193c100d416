// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

func TestStepsKnowWhatTheyWorkFor(t *testing.T) {
	f := newFakeRing(0, 2)
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	f.link(0, 5, 1)
	f.link(0, 6, 2)
	f.link(0, 5, 3) // again
	f.mark(1, 100)
	for i := range uint64(model.MaxStepLinks + 2) {
		f.link(1, i+1, 110)
	}
	r.Pass(at(120), g.emit(t))
	f.link(0, 9, 130)                                                                       // late
	f.link(-1, 9, 131)                                                                      // of no step
	f.records = append(f.records, ring.Record{1: uint64(ring.KindLink) | 1<<8, 2: 1, 4: 1}) // to no span
	r.Finish(at(200), false, g.emit(t))
	steps := opsOf(g.ops, model.KindStep)
	require.Len(t, steps, 2)
	assert.Equal(t, []model.SpanRef{
		{Trace: model.TraceID{0: 5, 8: 1}, Span: model.SpanID{5}}, {Trace: model.TraceID{0: 6, 8: 1}, Span: model.SpanID{6}},
	}, steps[0].Links)
	assert.Zero(t, steps[0].LinksDropped)
	s := r.Stats()
	assert.Equal(t, []int64{2, 1, 1, 1}, []int64{s.LinksDropped, s.LinksInvalid, s.Late, s.WithoutStep})
	assert.Equal(t, int64(2), steps[1].LinksDropped)
	assert.Zero(t, r.steps.heldLinks)
}

func TestWhereTheHostIs(t *testing.T) {
	loading, saving := "data_loading", "checkpoint_save"
	for _, tc := range []struct {
		name   string
		scopes func(f *fakeRing) []ring.OpenScope
		want   string
		since  float64
	}{
		{"in none", func(*fakeRing) []ring.OpenScope { return nil }, "", 0},
		{"the main thread's, though another is in one longer", func(f *fakeRing) []ring.OpenScope {
			return []ring.OpenScope{
				{TID: 7, Name: uint16(f.code(loading)), Since: at(0)}, {TID: f.header.PID, Name: uint16(f.code(saving)), Since: at(1_000_000)},
			}
		}, saving, 2},
		{"the one that is open longest", func(f *fakeRing) []ring.OpenScope {
			return []ring.OpenScope{
				{TID: 7, Name: uint16(f.code(loading)), Since: at(2_000_000)}, {TID: 8, Name: uint16(f.code(saving)), Since: at(500_000)},
			}
		}, saving, 2.5},
		{"of the future, without a name", func(*fakeRing) []ring.OpenScope {
			return []ring.OpenScope{{TID: 7, Name: 999, Since: at(9_000_000)}}
		}, "scope", 0},
	} {
		f := newFakeRing(0, 2)
		f.scopes = tc.scopes(f)
		r, g := attach(f, DefaultConfig())
		f.open(opSpec{fn: "AllReduce", step: -1, launch: 1, start: 2, end: 3, handle: 5}, ring.SlotEnqueued)
		r.Pass(at(3_000_000), g.emit(t))
		require.Len(t, g.open, 1, tc.name)
		assert.Equal(t, tc.want, g.open[0].Scope, tc.name)
		assert.Equal(t, tc.want != "", g.open[0].ScopeFor.OK, tc.name)
		assert.InDelta(t, tc.since, g.open[0].ScopeFor.V, 1e-9, tc.name)
		r.Finish(at(4_000_000), true, g.emit(t))
		assert.Equal(t, tc.want, g.open[1].Scope, "of who died too")
		f.slots = nil
	}
}

func TestTheEndOfAnOperationSaysNoScope(t *testing.T) {
	f := newFakeRing(0, 2)
	f.scopes = []ring.OpenScope{{TID: 7, Name: uint16(f.code("forward")), Since: at(0)}}
	r, g := attach(f, DefaultConfig())
	f.open(opSpec{fn: "AllReduce", step: -1, launch: 1, start: 2, end: 3, handle: 5}, ring.SlotEnqueued)
	r.Pass(at(3_000_000), g.emit(t))
	f.slots = nil
	r.Pass(at(3_100_000), g.emit(t))
	require.Len(t, g.open, 2)
	assert.Equal(t, model.StatusClosed, g.open[1].Status)
	assert.Empty(t, g.open[1].Scope)
}

// Scopes that overlap without nesting are folded as they are.
func TestScopesThatNestInNothing(t *testing.T) {
	f := newFakeRing(0, 2)
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	f.scope("prefetch", 0, 10, 60, ring.PhaseNone)
	f.scope("forward", 0, 40, 90, ring.PhaseTrain)
	f.records[1][1] |= 2 << 16
	r.Finish(at(100), false, g.emit(t))
	assert.Len(t, opsOf(g.ops, model.KindScope), 2)
	assert.Equal(t, map[string]int64{"prefetch": 1, "forward": 1}, g.hist[0])
	assert.Equal(t, "train", opsOf(g.ops, model.KindStep)[0].Phase)
}
