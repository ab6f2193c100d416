// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A real-time clock may be slewed from any moment on. Spans stand after the last
// window, where nothing has told it yet.
func TestLiveSpansOfASlewedClock(t *testing.T) {
	w := cluster(t, 70, 5)
	for range 5 {
		w.window()
	}
	other := New(w.tl.opt)
	begin, end := w.now, w.now+5*windowN
	old := w.clocks[realtime(2)]
	w.clocks[realtime(2)] = func(at int64) int64 {
		return old(at) + (min(max(at, begin), end)-begin)/2000
	}
	beyond := 0
	for range 10 {
		for at := w.now; at <= w.now+windowN; at += sec / 20 {
			p := w.contains(realtime(2), at)
			ref := w.contains(realtime(3), at)
			bound, ok := w.tl.Between(realtime(2), w.clocks[realtime(2)](at), realtime(3), w.clocks[realtime(3)](at))
			require.True(t, ok)
			assert.LessOrEqual(t, distance(p.Time, ref.Time), bound, "both at one moment")
			if distance(p.Time, ref.Time) > 100_000 {
				beyond++
			}
		}
		w.window()
		for _, m := range w.models { // and so it is for others
			require.NoError(t, other.AddModel(m))
		}
		w.models = nil
	}
	assert.Positive(t, beyond, "the slew is seen late")
	p := w.contains(realtime(2), w.now+windowN)
	assert.InDelta(t, float64(windowN)*defaultSlew, float64(p.Bound), 20_000)
	there, ok := other.Place(realtime(2), w.clocks[realtime(2)](w.now+windowN))
	require.True(t, ok)
	assert.InDelta(t, float64(p.Bound), float64(there.Bound), 20_000)
	assert.Less(t, w.contains(raw(2), w.now+windowN).Bound, int64(20_000), "an oscillator is none")
}

// Who knows how fast the clocks are slewed gets the bounds of it.
func TestSlewIsAnOption(t *testing.T) {
	w := newWorld(t, 71, Options{Slew: 10e-6})
	for i := range 4 {
		w.host(i, float64(i), 0)
	}
	w.ring(0, 4)
	for range 5 {
		w.window()
	}
	assert.Less(t, w.contains(realtime(2), w.now+windowN).Bound, int64(100_000))
}
