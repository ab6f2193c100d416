// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// bucketStep is a step of ranks that run kernel a, reduce its gradients beside kernel b
// in 1 ms, and then b's. durations gives what both take a rank, in ms. It returns when
// the step was over.
func bucketStep(w *world, n int64, at float64, durations func(rank int64) (a, b float64)) float64 {
	lastA, lastB := 0.0, 0.0
	took := make([][2]float64, w.size)
	for r := range took {
		a, b := durations(int64(r))
		took[r] = [2]float64{a, b}
		lastA, lastB = max(lastA, a), max(lastB, a+b)
	}
	end := at + lastB + 1
	for r := range took {
		a, b := took[r][0], took[r][1]
		kernel := func(name string, seq int64, from, to float64) model.Op {
			return model.Op{Kind: model.KindCompute, Name: name, Seq: seq, Start: nanos(from), End: nanos(to), Step: model.Some(n)}
		}
		first, second := collective(n, 0, 8, at+a, at+lastA+1), collective(n, 1, 8, at+a+b, end)
		for _, c := range []*model.Op{&first, &second} {
			c.Comm = model.Comm{ID: "world", Size: model.Some(w.size), Rank: model.Some(int64(r))}
			c.Stream = model.Some(int64(20))
		}
		w.e.Add(w.rank(int64(r)), []model.Op{kernel("a", 0, at, at+a), first, kernel("b", 0, at+a, at+a+b), second, stepOp(n, at, end)})
	}
	return end
}

// Who comes late runs the next kernels beside no wait, and the others run theirs beside
// theirs: that must not make them kernels of two sorts.
func TestASlowRankIsComparedWithThoseThatWaitForIt(t *testing.T) {
	for _, by := range []float64{1.1, 1.15, 1.3} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			w := newWorld(t, 8)
			w.clock = "host"
			rng := rand.New(rand.NewPCG(1, 1))
			at := 0.0
			for n := range int64(40) {
				at = bucketStep(w, n, at, func(rank int64) (a, b float64) {
					a, b = vary(rng, 30), vary(rng, 100)
					if rank == 3 {
						a, b = a*by, b*by
					}
					return a, b
				})
			}
			w.e.Flush()
			w.e.Verdicts()
			verdicts := w.e.Jobs()[0].Verdicts
			require.Len(t, verdicts, 1)
			f := verdicts[0].Finding
			assert.Equal(t, model.ClassCompute, f.Class)
			assert.Equal(t, model.Some(int64(3)), f.Rank)
			assert.Equal(t, "b", f.Op, "it holds most of the excess")
			// Peers' own time is 130 ms: it is slower by that in both kernels.
			assert.InDelta(t, by-1, evidenceOf(t, f).ExcessShare, 0.02)
		})
	}
}
