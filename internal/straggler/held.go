// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// longerHeld returns what pauses cost per step, s: how much longer the steps with pauses
// are than the typical one without, but no more than was paused in them. Nothing needs to
// be known of what a pause delays, and what else makes steps long is in both. It is false
// where no step has one, or too few are without, and where only communication was
// recorded: a pause after the last of a step's lengthens the next.
func (c *candidate) longerHeld() (cost float64, ok bool) {
	if c.in.someDark() {
		return 0, false
	}
	took := c.in.took()
	var without []float64
	for n, rec := range c.in {
		if c.Held[rec.step] == 0 {
			without = append(without, took[n])
		}
	}
	if len(without) < minTrials || len(without) == len(c.in) {
		return 0, false
	}
	slices.Sort(without)
	usual := stats.Median(without)
	for n, rec := range c.in {
		if held := c.Held[rec.step]; held > 0 {
			cost += min(held, took[n]-usual) / float64(len(c.in))
		}
	}
	return max(0, cost), true
}

// steadily reports whether the rank is behind its peers by as much as half a pause in most
// steps: then those that have none of the pauses that were counted are no shorter.
func (c *candidate) steadily() bool {
	held := slices.Sorted(maps.Values(c.Held))
	if len(held) == 0 {
		return false
	}
	limit, n := stats.Median(held)/2, 0
	for _, rec := range c.in {
		if i, ok := rec.index[c.Rank]; ok && seconds(beyondPeers(&rec.ranks[i])) >= limit {
			n++
		}
	}
	return 2*n > len(c.in)
}

// took returns how long each step took, s, from the end of the one before: where nobody
// marks steps, one begins only when its first operation does.
func (in stretch) took() []float64 {
	out := make([]float64, len(in))
	for n, rec := range in {
		from := rec.start
		if n > 0 && in[n-1].step == rec.step-1 {
			from = in[n-1].end
		}
		out[n] = float64(rec.end-from) / 1e9
	}
	return out
}
