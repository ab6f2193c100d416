// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// disturb sets the clock of one host or of all, or brings a damaged time.
func (p *plant) disturb(rng *rand.Rand) {
	by := time.Duration(rng.Int64N(int64(4*time.Hour))) - 2*time.Hour
	if rng.IntN(2) == 0 {
		by /= 720 // some seconds
	}
	rank := rng.IntN(len(p.ranks))
	switch rng.IntN(4) {
	case 0:
		p.setClock(by)
	case 1:
		p.ranks[rank].clock = by
	case 2:
		p.endsAt(rank, []string{"0xabc", "0xother"}[rng.IntN(2)], p.now.Add(12*by))
	default:
		p.endsAt(rank, "0xabc", time.Unix(0, []int64{0, 1, math.MaxInt64}[rng.IntN(3)]))
	}
}

// However clocks are set and times damaged, a job that works is told nothing of, and of one that
// hangs the rank that holds it up, and no other.
func TestClocksAtRandom(t *testing.T) {
	for seed := range uint64(tier.N(t, 12, 60)) {
		rng := rand.New(rand.NewPCG(seed, 3))
		step := time.Duration(100+rng.IntN(1400)) * time.Millisecond
		p := newPlant(t, 4, step)
		p.run(300 * step)
		for range 20 {
			p.disturb(rng)
			p.run(time.Duration(rng.IntN(40)) * time.Second)
		}
		require.Empty(t, p.findings, "seed %d", seed)

		p.run(time.Minute)
		limit := p.w.Limits()[0].Limit
		require.Less(t, limit, 11*(step+2*clockOff), "seed %d: a clock set by more than that makes no gap", seed)
		bad := rng.IntN(4)
		p.ranks[bad].stuck = true
		for range rng.IntN(4) {
			p.run(time.Duration(rng.IntN(10)) * time.Second)
			p.disturb(rng)
		}
		p.run(limit + 2*time.Minute)
		for _, f := range p.findings {
			require.Equal(t, model.Some(int64(bad)), f.Rank, "seed %d: %+v", seed, f)
		}
		assert.Len(t, p.w.Standing(), 1, "seed %d", seed)
	}
}
