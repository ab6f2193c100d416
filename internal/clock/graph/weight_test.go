// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// beside is many meshes with a liar, the first clock, and how far off the others are without it.
type beside struct {
	meshes []lyingMesh
	rest   float64 // root mean square error of all others, without the liar's edges
}

type lyingMesh struct {
	world *world
	edges []model.ClockEdge // before the liar lies
	last  int               // how many of them are the liar's
}

const meshLiar = 0

func (m *lyingMesh) isLiars(e *model.ClockEdge) bool {
	liar := m.world.names[meshLiar]
	return e.Src == liar || e.Dst == liar
}

func (m *lyingMesh) solver() *Solver { return New(Options{Prefer: []string{m.world.names[1]}}) }

// meshesBeside makes meshes of n clocks with k neighbours each. Sigmas say belief of the noise
// there is.
func meshesBeside(t *testing.T, n, k int, half, belief float64) *beside {
	t.Helper()
	const noise = 100.0
	out := &beside{}
	var rest []float64
	// A ratio of errors within a tenth takes the errors of 320 clocks.
	for seed := range uint64(tier.N(t, 320/n, 40)) {
		m := lyingMesh{world: newWorld(seed, n)}
		w, honest := m.world, m.solver()
		for _, p := range w.choices(n, k) {
			e := w.edge(p[0], p[1], 1e9, max(-half, min(half, w.rng.NormFloat64()*noise)), half)
			e.Sigma = noise * belief
			m.edges = append(m.edges, e)
			if m.isLiars(&e) {
				m.last++
			} else {
				mustAdd(t, honest, e)
			}
		}
		rest = append(rest, w.others(t, honest.Solve(), w.names[meshLiar]))
		out.meshes = append(out.meshes, m)
	}
	out.rest = rms(rest)
	return out
}

// with is the error of all others where the first clock tells its peers times that lie makes
// of their turn, -1 to 1, and in how many meshes it is marked.
func (b *beside) with(t *testing.T, lie func(turn float64) float64) (others float64, marked int) {
	t.Helper()
	var all []float64
	for i := range b.meshes {
		m := &b.meshes[i]
		s, turn := m.solver(), 0
		for _, e := range m.edges {
			if m.isLiars(&e) {
				e = m.world.lied(e, meshLiar, lie(float64(2*turn-m.last+1)/float64(m.last-1)))
				turn++
			}
			mustAdd(t, s, e)
		}
		sol := s.Solve()
		for _, name := range untrustedOf(sol) {
			require.Equal(t, m.world.names[meshLiar], name)
			marked++
		}
		all = append(all, m.world.others(t, sol, m.world.names[meshLiar]))
	}
	return rms(all), marked
}

// lies are what a clock can tell its peers, from -1 to 1.
var lies = map[string]func(turn float64) float64{
	"each another time": func(turn float64) float64 { return turn },
	"a third of them late": func(turn float64) float64 {
		if turn < -1./3 {
			return 1
		}
		return 0
	},
	"half of them late": func(turn float64) float64 { return math.Copysign(1, turn) },
}

// A lie that no bound proves still is no reason to believe the liar: the others' error
// grows by less than a tenth, however small the lie and whatever sigmas say.
func TestSmallLiesMoveNobody(t *testing.T) {
	for _, mesh := range [][2]int{{8, 7}, {64, 5}} {
		for _, belief := range []float64{1, 0.2, 10} {
			others := meshesBeside(t, mesh[0], mesh[1], 20e3, belief)
			for name, lie := range lies {
				t.Run(fmt.Sprintf("%d_of_%d/%s/%v", mesh[1], mesh[0], name, belief), func(t *testing.T) {
					for _, size := range []float64{0, 100, 200, 400, 800, 2000, 5000} {
						with, marked := others.with(t, func(turn float64) float64 { return size * lie(turn) })
						without := others.rest
						t.Logf("lie %5.0f ns: others %.1f ns, %.1f without the liar: %.2f", size, with, without, with/without)
						assert.Less(t, with, 1.1*without, "lie %v", size)
						assert.Zero(t, marked, "no bound proves so small a lie")
					}
				})
			}
		}
	}
}

// A lie that is larger than the bounds of the liar's own edges, and too small to be proved,
// must not narrow the bounds of others to what is not true.
func TestUnprovedLiesBoundNobody(t *testing.T) {
	const half = 1000.0
	for _, mesh := range [][2]int{{8, 7}, {64, 5}} {
		others := meshesBeside(t, mesh[0], mesh[1], half, 1)
		for name, lie := range lies {
			t.Run(fmt.Sprintf("%d_of_%d/%s", mesh[1], mesh[0], name), func(t *testing.T) {
				for _, size := range []float64{0.5, 1, 1.5, 2, 3, 4, 6, 10, 30} {
					with, marked := others.with(t, func(turn float64) float64 { return size * half * lie(turn) })
					without := others.rest
					t.Logf("lie %4.1f half widths: marked in %2d of %d meshes; others %.1f ns, %.1f without the liar: %.2f", size, marked, len(others.meshes), with, without, with/without)
					assert.Less(t, with, 1.1*without, "lie %v", size)
				}
			})
		}
	}
}
