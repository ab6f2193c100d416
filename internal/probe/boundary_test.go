// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWindowsEndAtMultiplesOfRealtime(t *testing.T) {
	const second = 1_000_000_000
	b := boundary{window: 2 * second}
	skew := int64(1_700_000_000*second + 300_000_000) // REALTIME less RAW
	var ends []int64
	for raw := int64(10 * second); raw < 20*second; raw += 20_000_000 {
		end := b.next
		if b.passed(raw, raw+skew) {
			assert.Less(t, raw-end, int64(20_000_000))
			ends = append(ends, end+skew)
		}
	}
	first := int64(1_700_000_012 * second)
	assert.Equal(t, []int64{first, first + 2*second, first + 4*second, first + 6*second, first + 8*second}, ends)
}

func TestWindowsGoOnWhenRealtimeIsStepped(t *testing.T) {
	const window = 2_000_000_000
	for _, step := range []int64{-100_000_000, 100_000_000, 1_300_000_000, -40_000_000_000, 999_999_999} {
		b := boundary{window: window}
		realtime := int64(1_700_000_000_000_000_000)
		var ends []int64
		for raw := int64(0); raw < 20*window; raw += 20_000_000 {
			rt := realtime + raw
			if raw >= 7_300_000_000 {
				rt += step
			}
			end := b.next
			if b.passed(raw, rt) {
				ends = append(ends, end)
			}
		}
		for i := 1; i < len(ends); i++ {
			d := ends[i] - ends[i-1]
			assert.GreaterOrEqual(t, d, int64(window/2), "step %d", step)
			assert.LessOrEqual(t, d, int64(window*3/2), "step %d", step)
		}
		assert.Zero(t, mod(ends[len(ends)-1]+realtime+step, window), "step %d: at multiples again", step)
	}
}

func TestANodeThatStoodStillEndsOneWindow(t *testing.T) {
	b := boundary{window: 1000}
	b.passed(10, 10)
	assert.True(t, b.passed(1_000_000_400, 1_000_000_400))
	assert.False(t, b.passed(1_000_000_401, 1_000_000_401), "what it missed is one window")
	assert.Equal(t, int64(1_000_001_000), b.next)
}
