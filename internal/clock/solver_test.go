// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// randomMeetings are meetings of some of several clocks, of which members may share one.
func randomMeetings(rng *rand.Rand, clocks, members int) (out []Meeting) {
	for range 1 + rng.IntN(8) {
		m := Meeting{Name: "all_reduce", Bytes: rng.Int64N(1 << 20), Root: -1, Synchronising: rng.IntN(4) > 0, EndsCoincide: rng.IntN(4) > 0}
		for range 1 + rng.IntN(members) {
			enter := 1e9 + rng.Int64N(1e6)
			m.Arrivals = append(m.Arrivals, Arrival{
				Clock: fmt.Sprint("c", rng.IntN(clocks)), Enter: enter, Exit: enter + rng.Int64N(1e6), ExitUnknown: rng.IntN(8) == 0,
			})
		}
		if !m.Synchronising {
			m.Root = rng.IntN(len(m.Arrivals))
		}
		out = append(out, m)
	}
	return out
}

// Constraints of the members of a clock are taken together. None is lost by that, and
// none is sharper than what two members tell.
func TestClocksAreBoundAsTheirMembersAre(t *testing.T) {
	const res = 2000.0
	rng := rand.New(rand.NewPCG(3, 1))
	for range 300 {
		var p problem
		meetings := randomMeetings(rng, 5, 12)
		p.read(meetings, nil, Options{})
		want := map[[2]int]float64{}
		for _, m := range meetings {
			for i, a := range m.Arrivals {
				for j, b := range m.Arrivals {
					key := [2]int{p.index[a.Clock], p.index[b.Clock]}
					if a.Clock == b.Clock || a.ExitUnknown || !m.holds(i, j) {
						continue
					}
					bound := float64(a.Exit-b.Enter) + res
					if old, ok := want[key]; !ok || bound < old {
						want[key] = bound
					}
				}
			}
		}
		got := map[[2]int]float64{}
		for a := range p.names {
			for b := range p.names {
				if up, ok := p.hard.bound(a, b); ok && !math.IsInf(up, 1) {
					got[[2]int{a, b}] = up
				}
			}
		}
		require.Equal(t, want, got)
	}
}

// What a solver solved before leaves no trace, however many clocks there were.
func TestSolverForgets(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 2))
	var s Solver
	for range 200 {
		clocks := 2 + rng.IntN(6)
		if rng.IntN(20) == 0 {
			clocks = 2 * maxDense
		}
		meetings := randomMeetings(rng, clocks, 2*clocks)
		messages := []Message{{SendClock: "c0", RecvClock: fmt.Sprint("c", rng.IntN(clocks)), SendStart: 1e9, RecvEnd: 1e9 + rng.Int64N(1e6)}}
		got, want := s.Solve(meetings, messages, Options{}), Solve(meetings, messages, Options{})
		assert.Equal(t, want.offsets, got.offsets)
		assert.Equal(t, want.groups, got.groups)
	}
}
