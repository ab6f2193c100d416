// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestClockModelTime(t *testing.T) {
	m := ClockModel{From: 1000, Until: 3000, At: 2000, Offset: 500, Drift: 0.1, Bound: 7, Growth: 0.01}
	assert.Equal(t, int64(2500), m.Time(2000))
	assert.Equal(t, int64(3600), m.Time(3000), "1000 ns after At, 10 percent more")
	assert.Equal(t, int64(7), m.BoundAt(1000))
	assert.Equal(t, int64(7), m.BoundAt(3000))
	assert.Equal(t, int64(8), m.BoundAt(900))
	assert.Equal(t, int64(17), m.BoundAt(4000))
}

// Readings since boot and Unix times differ by more than a float64 holds in ns.
func TestClockModelKeepsNanoseconds(t *testing.T) {
	const epoch = 1_795_000_000_123_456_789
	m := ClockModel{At: 7_000_000_000_000_001, Offset: epoch, Drift: 0}
	assert.Equal(t, int64(epoch+7_000_000_000_000_002), m.Time(7_000_000_000_000_002))
}

func TestClockEdgeWidth(t *testing.T) {
	assert.InDelta(t, 30.0, (&ClockEdge{Lower: -10, Upper: 20}).Width(), 0)
	assert.True(t, math.IsInf((&ClockEdge{Lower: NoLower, Upper: 20}).Width(), 1))
	assert.True(t, math.IsInf((&ClockEdge{Lower: -10, Upper: NoUpper}).Width(), 1))
}
