// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// bucketedStep simulates data-parallel training whose gradients are reduced in
// buckets while the device still computes those of lower layers. Only the
// collectives are recorded. Times in ms; device and host are factors and delays of
// each rank. It returns when the step ends.
func bucketedStep(w *world, step int64, begin float64, device, hostDelay []float64) (end float64) {
	return bucketedStepAhead(w, step, begin, 0, device, hostDelay)
}

// bucketedStepAhead has hosts that launch a step so long before it begins.
func bucketedStepAhead(w *world, step int64, begin, ahead float64, device, hostDelay []float64) (end float64) {
	const transfer = 2.0
	buckets := []float64{20, 8, 6} // compute up to each bucket
	ranks := len(device)
	ready, commFree := make([]float64, ranks), make([]float64, ranks)
	ops := make([][]model.Op, ranks)
	for r := range ranks {
		ready[r] = begin + hostDelay[r]
	}
	for b, work := range buckets {
		last := 0.0
		starts := make([]float64, ranks)
		for r := range ranks {
			ready[r] += work * device[r]
			starts[r] = max(ready[r], commFree[r])
			last = max(last, starts[r])
		}
		for r := range ranks {
			commFree[r] = last + transfer
			ops[r] = append(ops[r], model.Op{
				Kind: model.KindCollective, Name: model.AllReduce, Seq: int64(b), Step: model.Some(step), Stream: model.Some[int64](1),
				Start: ns(starts[r]), End: ns(last + transfer), Launch: model.Some(ns(max(0, begin-ahead) + hostDelay[r] + 0.1)),
				Comm:       model.Comm{ID: "world", Size: model.Some(int64(ranks))},
				Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(step*int64(len(buckets)) + int64(b)), SeqScope: model.ScopeCommFunc},
			})
		}
		end = last + transfer
	}
	for r := range ranks {
		ops[r] = append(ops[r], model.Op{
			Kind: model.KindStep, Name: "step", Step: model.Some(step), Start: ns(max(0, begin-ahead)), End: ns(end),
			StepOps: model.Some(int64(len(buckets))),
		})
		w.e.Add(w.rank(int64(r)), ops[r])
	}
	return end
}

func ns(ms float64) int64 { return time.Unix(1000, 0).UnixNano() + int64(ms*1e6) }

// What the others compute while they wait for a slow rank is not seen. Its cost
// must not hold that work, too: mended, the step is as long as a healthy one.
func TestWorkThatWaitsHideIsNotTheSlowRanks(t *testing.T) {
	same, none := []float64{1, 1, 1, 1}, []float64{0, 0, 0, 0}
	healthy := bucketedStep(liveWorld(t, 4), 0, 0, same, none)
	for name, tc := range map[string]struct {
		device, host []float64
		class        string
	}{
		"device":                      {[]float64{1, 1, 1.6, 1}, none, model.ClassCompute},
		"host":                        {same, []float64{0, 0, 15, 0}, model.ClassHost},
		"host, by less than a bucket": {same, []float64{0, 0, 5, 0}, model.ClassHost},
	} {
		t.Run(name, func(t *testing.T) {
			w := liveWorld(t, 4)
			at := 0.0
			for n := range int64(10) {
				at = bucketedStep(w, n, at, tc.device, tc.host)
			}
			found := w.e.Verdicts()
			require.Len(t, found, 1)
			f := found[0].Finding
			assert.Equal(t, int64(2), f.Rank.V)
			assert.Equal(t, tc.class, f.Class)
			truth := (at/10 - healthy) / 1e3
			assert.InEpsilon(t, truth, f.CostSeconds.V, 0.10, "of what the step is longer than a healthy one")
		})
	}
}

// Whether work goes on beside communication is not known: an excess is what both
// readings grant, and nothing where they disagree of its sign.
func TestAnExcessIsWhatBothReadingsGrant(t *testing.T) {
	for _, tc := range []struct {
		name                  string
		stay, compute, excess int64 // of the member; its peers stayed 100 and computed 50
		want                  int64
		censored              bool
	}{
		{"both, the gap less", 130, 70, 20, 20, false},
		{"both, from arrival to arrival less", 60, 95, 45, 5, true},
		{"only its gap is long", 20, 90, 40, 0, true},
		{"only its stay is long", 180, 40, -10, 0, false},
		{"faster in both", 90, 45, -5, -5, false},
		{"faster, the gap more so", 120, 20, -30, -10, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			peer := memberRecord{known: true, overlapped: true, inSegment: &inSegment{stay: 100, own: own{compute: 50}}}
			m := memberRecord{known: true, overlapped: true, excess: own{compute: tc.excess}, inSegment: &inSegment{stay: tc.stay, own: own{compute: tc.compute}}}
			var c cohort
			for _, x := range []memberRecord{m, peer, peer, peer} {
				c.add(&x)
			}
			c.sort()
			m.weighOverlap(&c)
			assert.Equal(t, tc.want, m.excess.compute)
			assert.Equal(t, tc.censored, m.censored)
			if tc.censored {
				assert.Equal(t, tc.excess, m.limit)
			}
		})
	}
}

// A host that runs a step ahead launches the first bucket while the last of the step
// before still runs. The forward pass between the two waits for that all the same.
func TestASlowDeviceIsToldWhereHostsRunAhead(t *testing.T) {
	for _, ahead := range []float64{0, 20} {
		for _, slow := range []float64{1.2, 1.6, 2.5} {
			w := liveWorld(t, 4)
			at := 0.0
			for n := range int64(40) {
				at = bucketedStepAhead(w, n, at, ahead, []float64{1, 1, slow, 1}, []float64{0, 0, 0, 0})
			}
			verdicts := w.e.Verdicts()
			require.Len(t, verdicts, 1, "ahead %v, slow %v", ahead, slow)
			assert.Equal(t, model.Some(int64(2)), verdicts[0].Finding.Rank)
			assert.Equal(t, "compute", verdicts[0].Finding.Class)
		}
	}
}
