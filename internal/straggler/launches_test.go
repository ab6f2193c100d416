// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// bent gives a simulated job to an engine, with each rank's operations changed.
func bent(t *testing.T, spec training.Spec, bend func(rank int64, ops []model.Op)) *Engine {
	t.Helper()
	job, err := training.New(spec, 5)
	require.NoError(t, err)
	e := New(NewDefaultConfig(), time.Now)
	ranks := job.Ranks()
	for {
		step, ok := job.Next()
		if !ok {
			break
		}
		for i := range ranks {
			if ops := slices.Clone(step.Ops(i)); ops != nil {
				bend(ranks[i].Rank, ops)
				e.Add(ranks[i], ops)
			}
		}
	}
	e.Flush()
	e.Verdicts()
	return e
}

// accusedOf returns the class in which each rank is accused.
func accusedOf(e *Engine) map[int64]string {
	out := map[int64]string{}
	for _, v := range e.Jobs()[0].Verdicts {
		if v.Finding.Rank.OK {
			out[v.Finding.Rank.V] = v.Finding.Class
		}
	}
	return out
}

// Launches of some ranks are stamped 20 ms late, as by another clock. Devices are judged all
// the same, hosts of the others too, and what is wrong is told.
func TestLaunchesAfterTheirOperationsAreLeftOut(t *testing.T) {
	const late = 20e6
	pipeline := training.Layout{DP: 2, PP: 4, Microbatches: 8, Layers: 2, PerNode: 2}
	device := training.Fault{Family: training.GPUClock, Severity: 1.2, Ranks: []int64{3}}
	host := training.Fault{Family: training.HostDataLoader, Severity: 0.03, Ranks: []int64{3}}
	healthy := training.Fault{Family: training.GPUClock, Severity: 1, Ranks: []int64{3}}
	slow, held := map[int64]string{3: model.ClassCompute}, map[int64]string{3: model.ClassHost}
	nobody := map[int64]string{}
	for name, of := range map[string]struct {
		witness training.Witness
		layout  training.Layout
		fault   training.Fault
		wrong   []int64
		want    map[int64]string
	}{
		"a slow device":               {training.Kineto, training.Layout{DP: 8}, device, []int64{3}, slow},
		"another one's":               {training.Kineto, training.Layout{DP: 8}, device, []int64{5}, slow},
		"a slow device, all":          {training.Kineto, training.Layout{DP: 8}, device, []int64{0, 1, 2, 3, 4, 5, 6, 7}, slow},
		"beside a slow host":          {training.Kineto, training.Layout{DP: 8}, host, []int64{5, 6, 7}, held},
		"all but one":                 {training.Kineto, training.Layout{DP: 8}, healthy, []int64{0, 1, 2, 4, 5, 6, 7}, nobody},
		"of communication":            {training.KernelChannels, training.Layout{DP: 8, FSDP: true}, device, []int64{3}, nobody},
		"in a pipeline":               {training.Kineto, pipeline, device, []int64{3}, slow},
		"of a pair":                   {training.Kineto, pipeline, healthy, []int64{1, 2, 5}, nobody},
		"of a pair, communication":    {training.KernelChannels, pipeline, healthy, []int64{1, 2, 5}, nobody},
		"half of them, communication": {training.KernelChannels, pipeline, healthy, []int64{0, 2, 4, 6}, nobody},
	} {
		t.Run(name, func(t *testing.T) {
			spec := training.Spec{
				Name: "x", Layout: of.layout, Noise: training.DefaultNoise(), Steps: 24, Witness: of.witness, Faults: []training.Fault{of.fault},
			}
			e := bent(t, spec, func(rank int64, ops []model.Op) {
				for i := range ops {
					if l := ops[i].Launch; l.OK && slices.Contains(of.wrong, rank) {
						ops[i].Launch = model.Some(l.V + late)
					}
				}
			})
			assert.Equal(t, of.want, accusedOf(e))
			assert.Greater(t, e.Stats().LaunchesContradicted, int64(12*len(of.wrong)))
			problems := e.Jobs()[0].Problems
			require.Len(t, problems, 1)
			assert.Contains(t, problems[0], "operations begin before they were launched")
		})
	}
}

// A launch that cannot be true is unknown, of whatever operation and on either side.
func TestLaunchesThatCannotBeTrueAreUnknown(t *testing.T) {
	day := int64(24 * time.Hour)
	at := nanos(0)
	for name, of := range map[string]struct {
		launch int64
		known  bool
	}{
		"just before":       {at - 1000, true},
		"a day before":      {at - day, true},
		"a day after":       {at + day, true},
		"days before":       {at - day - 1, false},
		"days after":        {at + day + 1, false},
		"since the boot":    {12345, false},
		"negative":          {-at, false},
		"as low as can be":  {math.MinInt64 + 5, false},
		"as high as can be": {math.MaxInt64, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2) // the other does not come, so that the step stays open
			op := model.Op{Kind: model.KindCompute, Name: "a", Start: at, End: at + 1_000_000, Launch: model.Some(of.launch), Step: model.Some(int64(1))}
			comm := collective(1, 1, 8, 0, 3)
			comm.Launch = op.Launch
			w.e.Add(w.rank(0), []model.Op{op, comm, stepOp(1, 0, 5)})
			rs := w.e.sorted()[0].open[1].ranks[0]
			want := int64(0)
			if of.known {
				want = of.launch
			}
			assert.Equal(t, want, rs.acts[0].launch)
			assert.Equal(t, want, rs.comms[0].launch)
			w.e.Flush()
			problems := w.e.Jobs()[0].Problems
			if of.known {
				assert.Empty(t, problems)
				return
			}
			assert.Equal(t, int64(1), w.e.Stats().LaunchesContradicted)
			require.Len(t, problems, 1)
			assert.Contains(t, problems[0], `2 launches were left out, since they are more than 24h0m0s from what they launched, or negative; the first: of "a" of rank 0 in step 1`)
		})
	}
}

// A host that is late is told from a device that waits for something else by launches, or by
// the scope that the host is in. Without either it is less certain, and why is said.
func TestHostsWithoutLaunchesAreLessCertain(t *testing.T) {
	for name, of := range map[string]struct{ launches, scopes, sure bool }{
		"both":     {true, true, true},
		"scopes":   {false, true, true},
		"launches": {true, false, true},
		"neither":  {false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			spec := training.Spec{
				Name: "x", Layout: training.Layout{DP: 8}, Noise: training.DefaultNoise(), Steps: 24,
				Faults: []training.Fault{{Family: training.HostDataLoader, Severity: 0.1, Ranks: []int64{3}}},
			}
			e := bent(t, spec, func(_ int64, ops []model.Op) {
				for i := range ops {
					if !of.launches {
						ops[i].Launch.OK = false
					}
					if !of.scopes && (ops[i].Kind == model.KindScope || ops[i].Kind == model.KindHost) {
						ops[i].Kind = "other"
					}
				}
			})
			assert.Equal(t, map[int64]string{3: model.ClassHost}, accusedOf(e))
			f := e.Jobs()[0].Verdicts[0].Finding
			assert.Equal(t, of.sure, f.Confidence > 0.9, f.Confidence)
			assert.Equal(t, !of.sure, strings.Contains(evidence.Encode(f.Evidence), "no launches say"))
			assert.Equal(t, !of.sure, strings.Contains(f.Action, "No launches are known"))
		})
	}
}

// Of communication alone, without launches, nobody can say whether a host or its device was late.
func TestHostOrDeviceIsOpenWithoutLaunches(t *testing.T) {
	told := func(kinds ...model.OpKind) evidence.Straggler {
		w := newWorld(t, 4)
		w.sink = func(rank int64, ops []model.Op) {
			ops = slices.DeleteFunc(slices.Clone(ops), func(op model.Op) bool { return slices.Contains(kinds, op.Kind) })
			for i := range ops {
				ops[i].Launch = model.Optional[int64]{}
			}
			w.e.Add(w.rank(rank), ops)
		}
		for step := range int64(20) {
			w.step(step, each(4, "c30 * c5 *", map[int]program{2: "c50 * c5 *"})...)
		}
		w.e.Flush()
		vs := w.e.Verdicts()
		require.Len(t, vs, 1)
		assert.Equal(t, int64(2), vs[0].Finding.Rank.V)
		return evidenceOf(t, vs[0].Finding)
	}
	dark := told(model.KindCompute)
	assert.True(t, dark.Undivided)
	assert.Contains(t, dark.LoweredBy, "no launches say whether its host was late, or its device did what was not recorded")
	seen := told()
	assert.False(t, seen.Undivided)
	assert.Empty(t, seen.LoweredBy)
}
