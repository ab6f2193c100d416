// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestRecompilingIsTheCauseOfALateHost(t *testing.T) {
	const usual = "h4:data_loading c26 h1:forward * c10 h1:backward * c5 s"
	for name, tc := range map[string]struct {
		slow  program
		all   program
		cause string
		op    string
	}{
		"one recompiles":            {"h4:data_loading h30:compile c26 h1:forward * c10 h1:backward * c5 s", usual, model.CauseCompile, "compile"},
		"it loads longer":           {"h34:data_loading c26 h1:forward * c10 h1:backward * c5 s", usual, model.CauseDataLoader, "data_loading"},
		"all recompile, one longer": {"h44:compile c26 h1:forward * c10 h1:backward * c5 s", "h14:compile c26 h1:forward * c10 h1:backward * c5 s", model.CauseCompile, "compile"},
		"all recompile, one loads longer": {
			"h14:compile h34:data_loading c26 h1:forward * c10 h1:backward * c5 s", "h14:compile h4:data_loading c26 h1:forward * c10 h1:backward * c5 s", model.CauseDataLoader, "data_loading",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := liveWorld(t, 4)
			w.change = func(_ int64, op *model.Op) {
				if op.Kind == model.KindScope && op.Name == "compile" {
					op.Phase = "compile"
				}
			}
			vs, at := firstFinding(w, 10, func(int64) []program { return each(4, tc.all, map[int]program{1: tc.slow}) })
			require.Len(t, vs, 1)
			assert.LessOrEqual(t, at, int64(9))
			f := vs[0].Finding
			assert.Equal(t, model.ClassHost, f.Class)
			assert.Equal(t, int64(1), f.Rank.V)
			assert.Equal(t, tc.cause, f.Cause)
			assert.Equal(t, tc.op, f.Op)
			assert.Equal(t, tc.cause == model.CauseCompile, strings.HasPrefix(f.Action, "rank 1 recompiles"))
		})
	}
}

func TestWhatACompilerCallsIsCompiling(t *testing.T) {
	w := newWorld(t, 1)
	scope := func(name, phase string, from, to float64) model.Op {
		return model.Op{Kind: model.KindScope, Name: name, Phase: phase, Start: nanos(from), End: nanos(to), Step: model.Some(int64(1))}
	}
	w.e.Add(w.rank(0), []model.Op{
		scope("trace", "compile", 1, 8), scope("autotune", "train", 2, 4), scope("load", "train", 8, 9), stepOp(1, 0, 10),
	})
	j := w.e.sorted()[0]
	assert.Equal(t, int64(7e6), j.window[0].ranks[0].idleFor[byCompile])
	assert.Equal(t, int64(2e6), j.window[0].ranks[0].idleBy.of(j.keys.ids[opName{key: "autotune"}]))
}
