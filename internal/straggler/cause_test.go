// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestTheCauseOfALateHostIsThatOfItsScopes(t *testing.T) {
	const usual = "h4:data_loading c26 h1:forward * c10 h1:backward * c5 s"
	for name, tc := range map[string]struct {
		slow   program
		phase  string // of scopes named other
		cause  string
		action string
	}{
		"standard loader":    {"h34:data_loading c26 h1:forward * c10 h1:backward * c5 s", "", model.CauseDataLoader, "waits for its data in \"data_loading\""},
		"PyTorch's loader":   {"h4:data_loading h30:enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__ c26 h1:forward * c10 h1:backward * c5 s", "", model.CauseDataLoader, "waits for its data"},
		"Lightning's loader": {"h4:data_loading h30:[pl][profile][_TrainingEpochLoop].train_dataloader_next c26 h1:forward * c10 h1:backward * c5 s", "", model.CauseDataLoader, "waits for its data"},
		"collector":          {"h4:data_loading h30:garbage_collection c26 h1:forward * c10 h1:backward * c5 s", "", model.CauseGC, "collects garbage"},
		"saving":             {"h4:data_loading h30:checkpoint_save c26 h1:forward * c10 h1:backward * c5 s", "", model.CauseCheckpoint, "kept by a checkpoint"},
		"loading":            {"h4:data_loading h30:checkpoint_load c26 h1:forward * c10 h1:backward * c5 s", "", model.CauseCheckpoint, "kept by a checkpoint"},
		"phase checkpoint":   {"h4:data_loading h30:other c26 h1:forward * c10 h1:backward * c5 s", model.PhaseCheckpoint, model.CauseCheckpoint, "in \"other\""},
		"phase train":        {"h4:data_loading h30:other c26 h1:forward * c10 h1:backward * c5 s", model.PhaseTrain, model.CauseUnknown, "look at what the host of rank 2 does in \"other\""},
		"forward":            {"h4:data_loading c26 h31:forward * c10 h1:backward * c5 s", "", model.CauseUnknown, "in \"forward\""},
		"most of it":         {"h4:data_loading h12:garbage_collection h18:checkpoint_save c26 h1:forward * c10 h1:backward * c5 s", "", model.CauseCheckpoint, ""},
		"none is most of it": {"h4:data_loading h14:garbage_collection h14:checkpoint_save h10:other c26 h1:forward * c10 h1:backward * c5 s", "", model.CauseUnknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := liveWorld(t, 4)
			w.change = func(_ int64, op *model.Op) {
				if op.Name == "other" {
					op.Phase = tc.phase
				}
			}
			vs, _ := firstFinding(w, 12, func(int64) []program { return each(4, usual, map[int]program{2: tc.slow}) })
			require.Len(t, vs, 1)
			f := vs[0].Finding
			assert.Equal(t, []any{model.ClassHost, int64(2), tc.cause}, []any{f.Class, f.Rank.V, f.Cause})
			assert.Contains(t, f.Action, tc.action)
		})
	}
}

// A slow device is no checkpoint's fault, though its host takes longer for that, too.
func TestOnlyALateHostHasACauseOfItsScopes(t *testing.T) {
	w := liveWorld(t, 4)
	const usual = "h30:checkpoint_save c26 h1:forward * c10 h1:backward * c5 s"
	vs, _ := firstFinding(w, 12, func(int64) []program {
		return each(4, usual, map[int]program{2: "h36:checkpoint_save c52 h1:forward * c20 h1:backward * c10 s"})
	})
	require.Len(t, vs, 1)
	assert.Equal(t, []string{model.ClassCompute, model.CauseUnknown}, []string{vs[0].Finding.Class, vs[0].Finding.Cause})
}

// idleIn returns how long a host with these scopes, from 0 to 20 ms, was idle for each
// cause and in each scope, in ms.
func idleIn(t *testing.T, scopes ...model.Op) (byCause [causes]float64, byScope map[string]float64) {
	t.Helper()
	w := newWorld(t, 1)
	for i := range scopes {
		scopes[i].Kind, scopes[i].Seq, scopes[i].Step = model.KindScope, int64(i), model.Some(int64(1))
	}
	rank := w.rank(0)
	rank.PID = model.Some(int64(mainThread))
	w.e.Add(rank, append(scopes, stepOp(1, 0, 20)))
	j := w.e.sorted()[0]
	r := &j.window[0].ranks[0]
	sum := 0.0
	for i, ns := range r.idleFor {
		byCause[i] = float64(ns) / 1e6
		sum += byCause[i]
	}
	byScope = map[string]float64{}
	for _, of := range r.idleBy {
		key, ns := of.key, of.ns
		byScope[j.keys.name(key)] += float64(ns) / 1e6
		sum += float64(ns) / 1e6
	}
	assert.InDelta(t, 40, sum, 1e-9, "every instant has one cause and one scope")
	return byCause, byScope
}

// mainThread bears the number of the process.
const mainThread = 100

// What another thread is in does not keep the one that launches. That is the main one,
// or, where that is silent, the only one with a pass.
func TestTheHostIsInTheScopesOfTheThreadThatKeepsIt(t *testing.T) {
	on := func(thread int64, op model.Op) model.Op {
		op.ThreadID = model.Some(mainThread + thread)
		return op
	}
	const loads, trains = 1, 2
	loading := on(loads, scopeOf("data_loading", 0, 20))
	for name, tc := range map[string]struct {
		scopes []model.Op
		want   [causes]float64
	}{
		"the main one":                 {[]model.Op{on(0, scopeOf("forward", 2, 6)), loading}, [causes]float64{byProgram: 4, byContext: 16}},
		"the main one, whatever it is": {[]model.Op{on(0, scopeOf("x", 2, 6)), on(trains, scopeOf("forward", 2, 6))}, [causes]float64{byContext: 20}},
		"one in the background":        {[]model.Op{loading}, [causes]float64{byContext: 20}},
		"one that trains": {
			[]model.Op{on(trains, scopeOf("forward", 2, 6)), on(trains, scopeOf("optimizer", 6, 7)), on(trains, scopeOf("garbage_collection", 8, 11)), loading},
			[causes]float64{byProgram: 5, byGC: 3, byContext: 12},
		},
		"two that train": {[]model.Op{on(trains, scopeOf("forward", 2, 6)), on(trains+1, scopeOf("forward", 2, 6)), loading}, [causes]float64{byContext: 20}},
		"none is told":   {[]model.Op{scopeOf("data_loading", 0, 5), on(0, scopeOf("forward", 6, 9))}, [causes]float64{byDataLoader: 5, byProgram: 3, byContext: 12}},
	} {
		t.Run(name, func(t *testing.T) {
			got, in := idleIn(t, tc.scopes...)
			assert.Equal(t, tc.want, got)
			assert.InDelta(t, tc.want[byDataLoader], in["data_loading"], 1e-9)
		})
	}
}

func scopeOf(name string, from, to float64) model.Op {
	return model.Op{Name: name, Start: nanos(from), End: nanos(to)}
}

func TestNestedScopesHaveOneCause(t *testing.T) {
	for name, tc := range map[string]struct {
		scopes []model.Op
		want   [causes]float64
	}{
		"both end with the instant": {
			[]model.Op{scopeOf("compile", 0, 10), scopeOf("garbage_collection", 4, 10)},
			[causes]float64{byCompile: 10, byContext: 10},
		},
		"a collector inside a loader is a collector": {
			[]model.Op{scopeOf("data_loading", 0, 10), scopeOf("garbage_collection", 4, 7)},
			[causes]float64{byDataLoader: 7, byGC: 3, byContext: 10},
		},
		"what a checkpoint loads is the checkpoint's": {
			[]model.Op{scopeOf("checkpoint_load", 0, 10), scopeOf("data_loading", 4, 7)},
			[causes]float64{byCheckpoint: 10, byContext: 10},
		},
		"a collector that a compiler set off is the compiler's": {
			[]model.Op{scopeOf("compile", 0, 10), scopeOf("garbage_collection", 4, 7), scopeOf("finalizers", 5, 6)},
			[causes]float64{byCompile: 10, byContext: 10},
		},
		"what a collector calls is collecting": {
			[]model.Op{scopeOf("garbage_collection", 0, 10), scopeOf("data_loading", 4, 7), scopeOf("forward", 8, 9)},
			[causes]float64{byGC: 10, byContext: 10},
		},
		"what a loader calls is loading": {
			[]model.Op{scopeOf("data_loading", 0, 10), scopeOf("decode", 4, 7)},
			[causes]float64{byDataLoader: 10, byContext: 10},
		},
		"a pass that a loader's range holds is the program's": {
			[]model.Op{scopeOf("data_loading", 0, 10), scopeOf("forward", 4, 7)},
			[causes]float64{byDataLoader: 7, byProgram: 3, byContext: 10},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := idleIn(t, tc.scopes...)
			assert.Equal(t, tc.want, got)
		})
	}
}

// Ranges that begin in one place and end in another overlap as they like.
func TestScopesThatOverlapWithoutNesting(t *testing.T) {
	for name, tc := range map[string]struct {
		scopes []model.Op
		want   [causes]float64
		in     map[string]float64
	}{
		"the later begun one has the instant": {
			[]model.Op{scopeOf("checkpoint_save", 0, 10), scopeOf("x", 5, 15)},
			[causes]float64{byCheckpoint: 5, byContext: 15},
			map[string]float64{"checkpoint_save": 5, "x": 10, "(other)": 5},
		},
		"what begins after its end is not inside it": {
			[]model.Op{scopeOf("compile", 0, 10), scopeOf("x", 5, 18), scopeOf("y", 12, 14)},
			[causes]float64{byCompile: 5, byContext: 15},
			map[string]float64{"compile": 5, "x": 11, "y": 2, "(other)": 2},
		},
		"one begun before goes on": {
			[]model.Op{scopeOf("x", 0, 16), scopeOf("garbage_collection", 2, 6), scopeOf("y", 4, 12)},
			[causes]float64{byGC: 2, byContext: 18},
			map[string]float64{"x": 6, "garbage_collection": 2, "y": 8, "(other)": 4},
		},
		"it lies in the outer one": {
			[]model.Op{scopeOf("checkpoint_save", 0, 16), scopeOf("x", 2, 6), scopeOf("y", 4, 12)},
			[causes]float64{byCheckpoint: 16, byContext: 4},
			map[string]float64{"checkpoint_save": 6, "x": 2, "y": 8, "(other)": 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			byCause, byScope := idleIn(t, tc.scopes...)
			assert.Equal(t, tc.want, byCause)
			assert.Equal(t, tc.in, byScope)
		})
	}
}
