// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// steppedInTurn makes n clocks of which one is stepped by 100 ms, either way, every 250 to
// 750 ms, each in its turn.
func steppedInTurn(seed uint64, n int, until int64) *hosts {
	h := newHosts(seed, n, bend{})
	var order []int
	for at := second; at < until; at += int64((0.25 + 0.5*h.rng.Float64()) * float64(second)) {
		if len(order) == 0 {
			order = h.rng.Perm(n)
		}
		c := &h.clocks[order[0]]
		order = order[1:]
		c.bends = append(c.bends, bend{at: at, rate: c.bends[0].rate, step: int64(1-2*h.rng.IntN(2)) * second / 10})
	}
	return h
}

// stalls are up to three times of a window in which a host sends nothing.
func (h *hosts) stalls(from, until int64) (out []span) {
	for range h.rng.IntN(4) {
		at := from + h.rng.Int64N(until-from)
		out = append(out, span{at, at + 10e6 + h.rng.Int64N(300e6)})
	}
	return out
}

func afterStalls(stalls []span, at int64) int64 {
	for range stalls {
		for _, s := range stalls {
			if s.from <= at && at < s.until {
				at = s.until
			}
		}
	}
	return at
}

// busy is a window of hosts that stall now and then; what they receive meanwhile they answer
// late.
func (h *hosts) busy(t *testing.T, rate float64, from, until int64) *Solution {
	t.Helper()
	stalled := make([][]span, len(h.clocks))
	for i := range stalled {
		stalled[i] = h.stalls(from, until)
	}
	for i := range h.clocks {
		for j := i + 1; j < len(h.clocks); j++ {
			h.exchange(t, [2]int{i, j}, stalled, float64(second)/rate, from, until)
		}
	}
	return h.solver.Solve()
}

func (h *hosts) exchange(t *testing.T, p [2]int, stalled [][]span, gap float64, from, until int64) {
	t.Helper()
	e, src, dst := h.pairs[p], &h.clocks[p[0]], &h.clocks[p[1]]
	last := int64(0)
	for k := 0.0; ; k++ {
		at := from + int64((k+h.rng.Float64()/5)*gap)
		if at >= until {
			break
		}
		if at = afterStalls(stalled[p[0]], at); at < last+1000 || at >= until {
			continue
		}
		last = at
		there := at + h.delay()
		back := afterStalls(stalled[p[1]], there+20_000)
		home := back + h.delay()
		if home >= until {
			continue
		}
		e.Upper(src.read(at), dst.read(there), 0)
		e.Lower(src.read(home), dst.read(back), 0)
	}
	for _, est := range e.Close(src.read(until + h.rng.Int64N(20e6))) {
		require.NoError(t, h.solver.Add(est.Edge(hostName(p[0]), hostName(p[1]), model.EdgeProbe, model.StampKernel)))
	}
}

// Of a clock that hangs on one that was stepped since, nothing is said: where stalls leave few
// packets between steps, edges of one moment lead over them.
func TestNothingHangsOverAStep(t *testing.T) {
	seeds := []uint64{22, 55, 69, 230, 442, 465}
	for _, seed := range seeds[:tier.N(t, 3, len(seeds))] {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := steppedInTurn(seed, 8, 28*second)
			all, beyond, accused := 0, 0, []string{}
			for w := range int64(14) {
				sol := h.busy(t, 100, 2*w*second, (2*w+2)*second)
				accused = slices.Concat(accused, untrustedOf(sol))
				if w < 2 {
					continue // no estimate comes before those of the first, so that none tells of a step
				}
				checked, missed := h.check(sol, (2*w+2)*second)
				all, beyond = all+checked, beyond+missed
			}
			assert.Empty(t, accused)
			assert.Zero(t, beyond, "placements beyond their bound")
			assert.Greater(t, all, 100, "placements")
		})
	}
}
