// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// rawRates is how fast the raw clocks of one scale run, less its reference's rate.
type rawRates struct {
	clocks, agree int
	median        float64
}

// decides reports whether more than half of at least three clocks agree on a rate.
func (r rawRates) decides() bool { return r.clocks >= 3 && 2*r.agree > r.clocks }

// rawRates goes through all raw clocks that are trusted.
func (t *Timeline) rawRates(ids []string) map[*scale]rawRates {
	all := map[*scale][]float64{}
	for part := range slices.Chunk(ids, chunk) {
		t.mu.RLock()
		for _, id := range part {
			if tr := t.tracks[id]; tr != nil && tr.name.raw && tr.agrees() {
				all[tr.last().scale] = append(all[tr.last().scale], -tr.last().last().drift)
			}
		}
		t.mu.RUnlock()
	}
	out := make(map[*scale]rawRates, len(all))
	for s, rates := range all {
		slices.Sort(rates)
		r := rawRates{clocks: len(rates), median: stats.MedianLow(rates)}
		for _, rate := range rates {
			if math.Abs(rate-r.median) <= t.opt.Drift {
				r.agree++
			}
		}
		out[s] = r
	}
	return out
}
