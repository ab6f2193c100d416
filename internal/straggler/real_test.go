// SPDX-License-Identifier: Apache-2.0

package straggler_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/straggler"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// run analyses the traces of a folder; prepare may change each rank's
// operations, or drop the rank by returning nil.
func run(t *testing.T, dir string, prepare func(rank int64, ops []model.Op) []model.Op) (*straggler.Engine, []*straggler.StepReport) {
	t.Helper()
	opt := kineto.DefaultOptions()
	files, problems := kineto.Discover([]string{dir}, opt)
	require.Empty(t, problems)
	e := straggler.New(straggler.NewDefaultConfig(), time.Now)
	var reports []*straggler.StepReport
	for _, f := range files {
		tr, err := kineto.ParseFile(t.Context(), f.Path, opt)
		require.NoError(t, err)
		var ops []model.Op
		for op := range tr.Ops() {
			ops = append(ops, op)
		}
		rank := tr.Rank()
		rank.WorldSize = model.Some(int64(len(files)))
		if prepare != nil {
			ops = prepare(rank.Rank, ops)
		}
		if ops != nil {
			reports = append(reports, e.Add(rank, ops)...)
		}
	}
	return e, append(reports, e.Flush()...)
}

// The folder's README states what is known of this step by inspection.
func assertDLRM(t *testing.T, f model.Finding) {
	t.Helper()
	assert.Equal(t, model.Some(int64(7)), f.Rank)
	assert.Equal(t, model.ClassHost, f.Class)
	assert.True(t, f.BeforeWindow)
	// 35,552 of 46,843 µs.
	assert.InDelta(t, 0.035552, f.WaitCaused.V, 20e-6)
	assert.InDelta(t, 0.76, f.WaitCausedShare.V, 0.02)
	// In the five collectives the second-last rank came 505, 509, 162, 124 and 9
	// µs earlier: 1,309 µs in all.
	assert.InDelta(t, 0.001309, f.CostSeconds.V, 20e-6)
	assert.Less(t, f.Confidence, 0.7)
	ev, ok := evidence.As[evidence.Straggler](f.Evidence)
	require.True(t, ok)
	assert.Equal(t, 5, ev.LastArrivals)
	assert.Equal(t, 8, ev.Meetings)
	assert.Equal(t, []int64{2, 6}, ev.NextRanks)
	assert.InDelta(t, 505e-6, ev.Decisive.Gap, 10e-6)
	assert.Contains(t, ev.LoweredBy, "the cause precedes the recording")
}

func TestDLRM(t *testing.T) {
	e, _ := run(t, testdata.Shared(t, "dlrm-8xV100"), nil)
	vs := e.Verdicts()
	require.Len(t, vs, 1)
	assertDLRM(t, vs[0].Finding)
}

func TestDLRMWithClockOffsets(t *testing.T) {
	dir := testdata.Shared(t, "dlrm-8xV100")
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 0))
		truth := map[int64]int64{}
		for r := range int64(8) {
			truth[r] = rng.Int64N(20e6) - 10e6
		}
		e, reports := run(t, dir, func(rank int64, ops []model.Op) []model.Op {
			for i := range ops {
				ops[i].Start -= truth[rank]
				ops[i].End -= truth[rank]
				if ops[i].Launch.OK {
					ops[i].Launch.V -= truth[rank]
				}
			}
			return ops
		})
		vs := e.Verdicts()
		require.Len(t, vs, 1, "seed %d", seed)
		assertDLRM(t, vs[0].Finding)
		worst := 0.0
		for _, r := range reports[0].Ranks {
			// The reference is rank 0, whose offset is zero by definition.
			want := time.Duration(truth[r.Rank.Rank] - truth[0])
			worst = max(worst, math.Abs((r.Offset.Estimate - want).Seconds()))
			assert.Equal(t, r.Offset.Estimate, r.Offset.Value, "an offset of milliseconds is applied")
		}
		assert.LessOrEqual(t, worst, 10e-6, "seed %d", seed)
		t.Logf("seed %d: worst error of a recovered offset %.1f µs", seed, worst*1e6)
	}
}

func TestDLRMWithMissingRank(t *testing.T) {
	dir := testdata.Shared(t, "dlrm-8xV100")
	for missing := range int64(8) {
		e, reports := run(t, dir, func(rank int64, ops []model.Op) []model.Op {
			if rank == missing {
				return nil
			}
			return ops
		})
		require.Len(t, reports, 1)
		assert.Equal(t, []int64{missing}, reports[0].Missing)
		for _, v := range e.Verdicts() {
			assert.Equal(t, int64(7), v.Finding.Rank.V, "without rank %d", missing)
			assert.NotEqual(t, int64(7), missing, "who is not there is not accused, nor is anybody in its stead")
			assert.Contains(t, evidence.Encode(v.Finding.Evidence), `"missing_ranks":[`)
		}
	}
}

func TestRecordings(t *testing.T) {
	for _, name := range []string{"slow", "healthy"} {
		t.Run(name, func(t *testing.T) {
			dir := testdata.Recording(t, name)
			text, err := os.ReadFile(dir + ".expected.json")
			require.NoError(t, err)
			var want struct {
				SlowRank *int64  `json:"slow_rank"`
				Place    string  `json:"place"`
				Class    string  `json:"class"`
				SlowMs   float64 `json:"slow_ms"`
			}
			require.NoError(t, json.Unmarshal(text, &want))
			e, _ := run(t, dir, nil)
			vs := e.Verdicts()
			if want.SlowRank == nil {
				assert.Empty(t, vs)
				return
			}
			require.Len(t, vs, 1)
			f := vs[0].Finding
			assert.Equal(t, *want.SlowRank, f.Rank.V)
			assert.Equal(t, want.Class, f.Class)
			assert.Equal(t, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", f.Op)
			if want.Place == "data" {
				assert.Equal(t, model.CauseDataLoader, f.Cause)
			}
			assert.False(t, f.BeforeWindow)
			// Mending it saves nearly all of the sleep, never more than that and
			// the noise of its own work.
			assert.InDelta(t, want.SlowMs/1e3, f.CostSeconds.V, 0.25*want.SlowMs/1e3)
		})
	}
}

func TestSplitSumsToTheStepOnEveryFixture(t *testing.T) {
	check := func(t *testing.T, dir string) {
		t.Helper()
		_, reports := run(t, dir, nil)
		require.NotEmpty(t, reports)
		for _, rep := range reports {
			for _, r := range rep.Ranks {
				assert.InDelta(t, r.End-r.Start, int64(r.Split.Sum()), 1000, "step %d rank %d", rep.Step, r.Rank.Rank)
			}
		}
	}
	for _, name := range []string{"slow", "healthy"} {
		t.Run(name, func(t *testing.T) { check(t, testdata.Recording(t, name)) })
	}
	t.Run("dlrm-8xV100", func(t *testing.T) { check(t, testdata.Shared(t, "dlrm-8xV100")) })
	t.Run("kineto-single", func(t *testing.T) {
		dir := testdata.Shared(t, "kineto-single")
		files, err := filepath.Glob(filepath.Join(dir, "*.json.gz"))
		require.NoError(t, err)
		for _, f := range files {
			t.Run(filepath.Base(f), func(t *testing.T) { check(t, f) })
		}
	})
}
