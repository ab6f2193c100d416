package graph

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// othersBeside is the error of all clocks but the first, over many meshes: with the
// edges of the first, which tells its peers times that lie makes of their turn, -1 to 1,
// and without them. Sigmas say belief of the noise there is.
func othersBeside(t *testing.T, n, k int, half, belief float64, lie func(turn float64) float64) (with, without float64, marked int) {
	t.Helper()
	const noise, liar = 100.0, 0
	var all, rest []float64
	for seed := range uint64(40) {
		w := newWorld(seed, n)
		a, b := New(Options{Prefer: []string{w.names[1]}}), New(Options{Prefer: []string{w.names[1]}})
		pairs, turn := w.choices(n, k), 0
		last := 0
		for _, p := range pairs {
			if p[0] == liar || p[1] == liar {
				last++
			}
		}
		for _, p := range pairs {
			e := w.edge(p[0], p[1], 1e9, max(-half, min(half, w.rng.NormFloat64()*noise)), half)
			e.Sigma = noise * belief
			if p[0] == liar || p[1] == liar {
				e = w.lied(e, liar, lie(float64(2*turn-last+1)/float64(last-1)))
				turn++
			} else {
				mustAdd(t, b, e)
			}
			mustAdd(t, a, e)
		}
		sol := a.Solve()
		for _, name := range untrustedOf(sol) {
			require.Equal(t, w.names[liar], name)
			marked++
		}
		all = append(all, w.others(t, sol, w.names[liar]))
		rest = append(rest, w.others(t, b.Solve()))
	}
	return rms(all), rms(rest), marked
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
		for name, lie := range lies {
			for _, belief := range []float64{1, 0.2, 10} {
				t.Run(fmt.Sprintf("%d_of_%d/%s/%v", mesh[1], mesh[0], name, belief), func(t *testing.T) {
					for _, size := range []float64{0, 100, 200, 400, 800, 2000, 5000} {
						with, without, marked := othersBeside(t, mesh[0], mesh[1], 20e3, belief, func(turn float64) float64 { return size * lie(turn) })
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
		for name, lie := range lies {
			t.Run(fmt.Sprintf("%d_of_%d/%s", mesh[1], mesh[0], name), func(t *testing.T) {
				for _, size := range []float64{0.5, 1, 1.5, 2, 3, 4, 6, 10, 30} {
					with, without, marked := othersBeside(t, mesh[0], mesh[1], half, 1, func(turn float64) float64 { return size * half * lie(turn) })
					t.Logf("lie %4.1f half widths: marked in %2d of 40 meshes; others %.1f ns, %.1f without the liar: %.2f", size, marked, with, without, with/without)
					assert.Less(t, with, 1.1*without, "lie %v", size)
				}
			})
		}
	}
}
