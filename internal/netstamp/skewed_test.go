// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSkewedReadsWhatItShould(t *testing.T) {
	c := NewSkewed(1000*s, 5*s, 1000*s+10*ms, []Change{
		{At: 1010 * s, Rate: -100e-6},
		{At: 1000 * s, Rate: 50e-6},
	}, []Change{{At: 1020 * s, Step: -100 * ms}})
	for at, want := range map[int64]int64{
		999 * s:  4 * s,
		1000 * s: 5 * s,
		1001 * s: 6*s + 50*us,
		1010 * s: 15*s + 500*us,
		1020 * s: 25*s - 500*us,
	} {
		assert.Equal(t, want, c.Raw(at), at)
		back, ok := c.TrueOfRaw(want)
		assert.True(t, ok)
		assert.Equal(t, at, back)
	}
	assert.Equal(t, 1019*s+10*ms, c.Kernel(1019*s))
	assert.Equal(t, 1020*s-90*ms, c.Kernel(1020*s))
	at, ok := c.TrueOfRealtime(1020*s - 40*ms) // it read that twice
	assert.True(t, ok)
	assert.Equal(t, 1020*s+50*ms, at)

	c.ChangeRaw(Change{At: 1030 * s, Step: s})
	_, ok = c.TrueOfRaw(35*s + 500*ms) // 34.9985 s before the step, 35.9985 s after
	assert.False(t, ok, "a step left it out")
	assert.Equal(t, 25*s-500*us, c.Raw(1020*s), "the past does not change")
	other := NewSkewed(1000*s, 0, 0, nil, nil)
	assert.Equal(t, -5*s, Offset(c, other, 1000*s))
}

func TestPairsOfASkewedClockContainTheTruth(t *testing.T) {
	now := readTrue()
	c := NewSkewed(now, 5*s, now, []Change{{Rate: -450e-6}}, []Change{{Rate: 480e-6}})
	for range 1000 {
		p := c.Pair()
		at, ok := c.TrueOfRealtime(p.Realtime)
		require.True(t, ok)
		require.LessOrEqual(t, magnitude(c.Raw(at)-p.Raw), p.Width+1)
	}
}

func TestPairsOfTheSystemAreReadTogether(t *testing.T) {
	last := System().Pair()
	for range 1000 {
		p := System().Pair()
		require.Positive(t, p.Width)
		require.Greater(t, p.Raw, last.Raw)
		last = p
	}
}

func TestNarrowReadingsArePicked(t *testing.T) {
	var n narrow
	widths, next := []int64{90, 100, 80, 100, 95, 85, 500, 85, 7000, 300, 300, 300, 300}, 0
	pick := func() int64 {
		return n.pick(func() Pair { next++; return Pair{Width: widths[next-1]} }).Width
	}
	assert.Equal(t, int64(80), pick(), "nothing is known: the narrowest of five")
	assert.Equal(t, int64(85), pick())
	assert.Equal(t, 6, next, "one suffices")
	assert.Equal(t, int64(85), pick(), "the first was interrupted")
	assert.Equal(t, int64(300), pick(), "the clock became slower")
	assert.Equal(t, len(widths), next)
}
