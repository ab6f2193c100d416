// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// experts makes the first two collectives of each step all_to_all's: what is computed
// between them is what peers sent. bytes are what a rank gives into the second.
func (w *world) experts(bytes func(rank int64) int64) {
	w.change = func(r int64, op *model.Op) {
		if op.Kind == model.KindCompute {
			op.WorkGrid = "64,8,1"
		}
		if op.Kind != model.KindCollective || op.Seq > 1 {
			return
		}
		op.Name, op.Collective.Name = model.AllToAll, model.AllToAll
		if op.Seq == 1 && bytes != nil {
			op.Collective.Bytes = model.Some(bytes(r))
		}
	}
}

const expertProgram = "c10 * c16:grouped c4:act * c10 *"

func TestASheetTellsWhatRanBetweenExchanges(t *testing.T) {
	w := newWorld(t, 2)
	w.experts(func(r int64) int64 { return 1000 + r })
	sheets := sheetsOf(w)
	w.step(0, expertProgram, "c10 * c16:grouped x9/2 * c10 *")
	s := &(*sheets)[0]
	for row := range 2 {
		grouped := s.mustCell(t, row, judge.Compute, "grouped", "")
		assert.Equal(t, uint32(1), grouped.Between)
		assert.InDelta(t, 1000+row, grouped.Sent, 1e-9)
	}
	gemm := s.mustCell(t, 0, judge.Compute, "gemm", "")
	assert.Equal(t, uint32(2), gemm.N)
	assert.Zero(t, gemm.Between, "it ran before the first and after the last")
	beside := s.mustCell(t, 1, judge.Overlapped, "gemm", "")
	assert.Zero(t, beside.Between, "it ran beside the last")
}

func TestTokensAreKnownBetweenExchanges(t *testing.T) {
	w := newWorld(t, 2)
	w.experts(nil)
	change := w.change
	w.change = func(r int64, op *model.Op) {
		change(r, op)
		if op.Name == "grouped" {
			op.WorkTokens = model.Some[int64](512)
		}
	}
	sheets := sheetsOf(w)
	w.step(0, expertProgram, expertProgram)
	s := &(*sheets)[0]
	assert.Zero(t, s.mustCell(t, 0, judge.Compute, "grouped", "").Between)
	assert.Equal(t, uint32(1), s.mustCell(t, 0, judge.Compute, "act", "").Between)
}

func TestMoreWorkFromPeersOrASlowDevice(t *testing.T) {
	for name, tc := range map[string]struct {
		odd    program
		bytes  func(rank int64) int64
		class  string
		accuse bool
	}{
		"nobody says how much":    {odd: "c10 * c32:grouped c8:act * c10 *"},
		"its device is slow":      {odd: "c12 * c20:grouped c5:act * c12 *", class: model.ClassCompute, accuse: true},
		"it is slow elsewhere":    {odd: "c20 * c16:grouped c4:act * c10 *", class: model.ClassCompute, accuse: true},
		"its host is slow":        {odd: "h20:data c10 * c16:grouped c4:act * c10 *", class: model.ClassHost, accuse: true},
		"bytes say it had more":   {odd: "c10 * c32:grouped c8:act * c10 *", class: model.ClassWorkImbalance, bytes: func(r int64) int64 { return 1000 + r/2%2*1000 }},
		"bytes say another had":   {odd: "c10 * c32:grouped c8:act * c10 *", class: model.ClassCompute, accuse: true, bytes: func(r int64) int64 { return 1000 + r%2*100 }},
		"all were sent as many":   {odd: "c10 * c32:grouped c8:act * c10 *", bytes: func(int64) int64 { return 1000 }},
		"bytes are known of some": {odd: "c10 * c32:grouped c8:act * c10 *", bytes: func(r int64) int64 { return r % 3 * 1000 }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 6)
			w.experts(tc.bytes)
			for n := range int64(8) {
				w.step(n, each(6, expertProgram, map[int]program{2: tc.odd})...)
			}
			vs := w.e.Verdicts()
			if tc.class == "" {
				assert.Empty(t, vs)
				a := w.e.Jobs()[0].Abstained
				require.NotNil(t, a)
				assert.Equal(t, "work_unknown", a.Gate)
				assert.Equal(t, int64(2), a.Rank)
				return
			}
			require.NotEmpty(t, vs)
			assert.Equal(t, tc.class, vs[0].Finding.Class)
			accused := accusations(vs)
			if !tc.accuse {
				assert.Empty(t, accused)
			} else if assert.Len(t, accused, 1) {
				assert.Equal(t, model.Some(int64(2)), vs[0].Finding.Rank)
			}
		})
	}
}

// Of a simulated job with a hot expert nobody is accused, whatever was recorded; a slow
// device of such a job is.
func TestHotExpertsOfASimulatedJob(t *testing.T) {
	layout := training.Layout{DP: 8, EP: 8, Layers: 3, PerNode: 2}
	told := func(witness training.Witness, work bool, f training.Fault, seed uint64) (*Engine, []int64) {
		e := engineOf(t, training.Spec{
			Name: "experts", Layout: layout, Noise: training.DefaultNoise(), Steps: 16, Witness: witness, Work: work,
			Faults: []training.Fault{f},
		}, seed)
		var out []int64
		for _, v := range accusations(e.Verdicts()) {
			out = append(out, v.Finding.Rank.Or(-1))
		}
		return e, out
	}
	for _, family := range []string{training.HotExpert, training.HotExpertBlind} {
		for _, work := range []bool{false, true} {
			for _, severity := range []float64{1.3, 2, 3} {
				_, got := told("", work, training.Fault{Family: family, Severity: severity}, 3)
				assert.Empty(t, got, "%s by %v, tokens known: %v", family, severity, work)
			}
		}
	}
	for _, severity := range []float64{1.15, 1.5} {
		_, got := told("", false, training.Fault{Family: training.GPUClock, Severity: severity}, 3)
		assert.Len(t, got, 1, "clock %v", severity)
	}
}
