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

// vary returns a length that varies by up to a hundredth either way.
func vary(rng *rand.Rand, ms float64) float64 { return ms * (1 + 0.02*(rng.Float64()-0.5)) }

// standingAtEnd runs a job of so many steps and returns what stands at its end, judged after
// every step.
func standingAtEnd(w *world, steps int64, programs func(n int64) []program) (out []Verdict) {
	w.t.Helper()
	for n := range steps {
		w.step(n, programs(n)...)
		w.e.Verdicts()
	}
	w.e.Flush()
	for _, v := range w.e.Jobs()[0].Verdicts {
		if v.Finding.Status != model.StatusClosed {
			out = append(out, v)
		}
	}
	return out
}

// What is wrong with a job, from its operations to the finding.
func TestEveryClassFromOperationsToFinding(t *testing.T) {
	const ranks = 16
	rng := rand.New(rand.NewPCG(7, 7))
	plain := func(slow func(r int64, n int64) string) func(n int64) []program {
		return func(n int64) []program {
			out := make([]program, ranks)
			for r := range out {
				if out[r] = slow(int64(r), n); out[r] == "" {
					out[r] = fmt.Sprintf("h%.3f:data c%.3f:gemm c%.3f:norm *", vary(rng, 1), vary(rng, 20), vary(rng, 5))
				}
			}
			return out
		}
	}
	type expected struct {
		class, host, op string
		rank            int64 // -1 for none
		ranks           []int64
		cost            float64 // s
	}
	for name, tc := range map[string]struct {
		steps    int64
		world    func(w *world)
		programs func(n int64) []program
		want     []expected
	}{
		"healthy": {steps: 24, programs: plain(func(int64, int64) string { return "" })},
		"a slow device": {
			steps: 24,
			programs: plain(func(r, _ int64) string {
				if r == 9 {
					return fmt.Sprintf("h1:data c%.3f:gemm c%.3f:norm *", vary(rng, 24), vary(rng, 6))
				}
				return ""
			}),
			want: []expected{{class: model.ClassCompute, host: "n2", op: "gemm", rank: 9, ranks: []int64{9}, cost: 0.005}},
		},
		"a slow host and a slow device": {
			steps: 24,
			programs: plain(func(r, _ int64) string {
				switch r {
				case 2:
					return "h9:data c20:gemm c5:norm *"
				case 13:
					return "h1:data c24:gemm c6:norm *"
				}
				return ""
			}),
			want: []expected{
				{class: model.ClassHost, host: "n0", op: "data", rank: 2, ranks: []int64{2}, cost: 0.003},
				{class: model.ClassCompute, host: "n3", op: "gemm", rank: 13, ranks: []int64{13}},
			},
		},
		"a slow machine": {
			steps: 24,
			programs: plain(func(r, _ int64) string {
				if r/4 == 1 {
					return fmt.Sprintf("h1:data c%.3f:gemm c%.3f:norm *", vary(rng, 24), vary(rng, 6))
				}
				return ""
			}),
			want: []expected{{class: model.ClassNode, host: "n1", op: "gemm", rank: -1, ranks: []int64{4, 5, 6, 7}, cost: 0.005}},
		},
		"a stage with more work": {
			steps: 24,
			world: func(w *world) { w.stage = func(r int64) model.Optional[int64] { return model.Some(r / 4) } },
			programs: plain(func(r, _ int64) string {
				if r/4 == 3 {
					return fmt.Sprintf("h1:data c%.3f:gemm c%.3f:norm c%.3f:loss *", vary(rng, 20), vary(rng, 5), vary(rng, 10))
				}
				return ""
			}),
			want: []expected{{class: model.ClassStageImbalance, op: "stage 3", rank: -1, ranks: []int64{12, 13, 14, 15}, cost: 0.010}},
		},
		"another kernel for the same": {
			steps: 24,
			world: func(w *world) {
				w.change = func(r int64, op *model.Op) {
					if op.Kind == model.KindCompute {
						op.Key, op.Name = op.Name, op.Name+"_a"
						if r == 5 && op.Key == "gemm" {
							op.Name = op.Key + "_b"
						}
					}
				}
			},
			programs: plain(func(r, _ int64) string {
				if r == 5 {
					return fmt.Sprintf("h1:data c%.3f:gemm c%.3f:norm *", vary(rng, 25), vary(rng, 5))
				}
				return ""
			}),
			want: []expected{{class: model.ClassKernelChoice, host: "n1", op: "gemm", rank: 5, ranks: []int64{5}, cost: 0.005}},
		},
		"collectors that nobody brings together": {
			steps: 64,
			programs: plain(func(r, n int64) string {
				if (n+5*r)%16 == 0 {
					return fmt.Sprintf("h1:data h%.3f:garbage_collection c20:gemm c5:norm *", vary(rng, 30))
				}
				return ""
			}),
			want: []expected{{class: model.ClassJitter, op: "garbage_collection", rank: -1}},
		},
		"all slower at once": {
			steps: 40,
			programs: plain(func(_, n int64) string {
				if n >= 20 {
					return fmt.Sprintf("h1:data c%.3f:gemm c%.3f:norm *", vary(rng, 25), vary(rng, 6))
				}
				return ""
			}),
			want: []expected{{class: model.ClassJobWide, op: "compute", rank: -1, cost: 0.006}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ranks)
			w.hosts = func(r int64) string { return fmt.Sprint("n", r/4) }
			if tc.world != nil {
				tc.world(w)
			}
			vs := standingAtEnd(w, tc.steps, tc.programs)
			var got []string
			for _, v := range vs {
				got = append(got, fmt.Sprintf("%s %v %s", v.Finding.Class, v.Finding.Ranks, v.Finding.Op))
			}
			require.Len(t, vs, len(tc.want), "%v", got)
			for i, want := range tc.want {
				f := vs[i].Finding
				assert.Equal(t, want.class, f.Class)
				assert.Equal(t, want.op, f.Op)
				assert.Equal(t, want.host, f.Host)
				assert.Equal(t, want.rank, f.Rank.Or(-1))
				if want.ranks != nil {
					assert.Equal(t, want.ranks, f.Ranks)
				}
				if want.cost > 0 {
					assert.InEpsilon(t, want.cost, f.CostSeconds.V, 0.15)
				}
				assert.NotEmpty(t, f.Action)
			}
		})
	}
}
