// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPacerKeepsTheRate(t *testing.T) {
	p, err := NewPacer(1000)
	require.NoError(t, err)
	start := time.Now()
	var last uint64
	p.Run(func(n uint64) {
		if last = n; n == 50 {
			p.Stop()
		}
	})
	assert.Equal(t, uint64(50), last)
	assert.GreaterOrEqual(t, time.Since(start), 50*time.Millisecond)
}

// script runs a Pacer of 1 ms on a clock that stalls before some ticks, and
// returns when each tick was.
func script(t *testing.T, ticks int, stalls map[int]int64) (p *Pacer, at map[uint64]int64, order []uint64) {
	t.Helper()
	p, err := NewPacer(1000)
	require.NoError(t, err)
	now, calls := int64(0), 0
	at = map[uint64]int64{}
	p.run(func(n uint64) {
		at[n] = now
		order = append(order, n)
		if len(order) == ticks {
			p.Stop()
		}
	}, func() int64 { return now }, func(until int64) {
		now = max(now, until) + stalls[calls]
		calls++
	})
	return p, at, order
}

func TestPacerCatchesUpWithoutABurst(t *testing.T) {
	p, at, order := script(t, 50, map[int]int64{10: 10 * ms})
	assert.Zero(t, p.Skipped())
	for i := 1; i < len(order); i++ {
		require.Equal(t, order[i-1]+1, order[i])
		require.GreaterOrEqual(t, at[order[i]]-at[order[i-1]], ms/2, "tick %d", order[i])
	}
	assert.Equal(t, 20*ms, at[10])
	assert.Equal(t, 40*ms, at[40], "it is on time again after as many ticks at twice the rate as it was late")
}

func TestPacerSkipsWhatIsTooLate(t *testing.T) {
	p, at, order := script(t, 20, map[int]int64{5: 500 * ms})
	assert.Equal(t, int64(500), p.Skipped())
	assert.Equal(t, uint64(505), order[5])
	assert.Equal(t, 505*ms, at[505])
	assert.Equal(t, 506*ms, at[506])
}

func TestPacerRefusesRates(t *testing.T) {
	for _, rate := range []float64{0, -1, 1e-4, 1e7, math.NaN(), math.Inf(1)} {
		_, err := NewPacer(rate)
		assert.Error(t, err, rate)
	}
}

func TestPacerStopsSoon(t *testing.T) {
	p, err := NewPacer(0.001)
	require.NoError(t, err)
	done := make(chan struct{})
	first := make(chan struct{})
	go func() {
		p.Run(func(n uint64) {
			if n == 0 {
				close(first)
			}
		})
		close(done)
	}()
	<-first
	p.Stop()
	<-done // not after 1000 s
}
