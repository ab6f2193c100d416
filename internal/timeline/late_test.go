// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// lately is what a window that ended late ns ago says.
func (w *world) lately(a, b string, late int64) model.ClockEdge {
	w.now -= late
	defer func() { w.now += late }()
	return w.edge(a, b)
}

// What is told of a host, and what it wrote itself, comes late, and its clock changes
// where most clocks are. The timeline is slewed meanwhile: an instant has
// one time, whoever is asked for it and when.
func TestALateHostWhileTheScaleIsSlewed(t *testing.T) {
	for _, late := range []int64{30 * sec, 100 * sec} {
		t.Run(time.Duration(late).String(), func(t *testing.T) { lateHost(t, late) })
	}
}

func lateHost(t *testing.T, late int64) {
	t.Helper()
	w := newWorld(t, 80, Options{})
	w.halfWidth, w.noise = 600_000, 20_000
	for i, ms := range []int64{0, 20, -15} {
		w.clocks[realtime(i)] = linear(epoch+ms*1_000_000, 0)
		for j := range i {
			w.source[[2]string{realtime(j), realtime(i)}] = model.EdgeCall
		}
	}
	placed := map[int64][]clock.Placement{}
	from := map[int64][]string{}
	spans := func(id string, begin, end int64) {
		for at := begin; at < end; at += sec / 10 {
			if p, ok := w.tl.Place(id, w.clocks[id](at)); ok && p.Bounded {
				placed[at] = append(placed[at], p)
				from[at] = append(from[at], id)
			}
		}
	}
	for range 100 {
		w.now += windowN
		require.NoError(t, w.tl.AddEdge(w.edge(realtime(0), realtime(2))))
		if w.now > late+windowN {
			require.NoError(t, w.tl.AddEdge(w.lately(realtime(0), realtime(1), late)))
			require.NoError(t, w.tl.AddEdge(w.lately(realtime(1), realtime(2), late)))
		}
		w.advance()
		spans(realtime(0), w.now-windowN, w.now)
		spans(realtime(2), w.now-windowN, w.now)
		if w.now > late+windowN {
			spans(realtime(1), w.now-windowN-late, w.now-late)
		}
	}
	pairs := 0
	for at, p := range placed {
		for i := range p {
			for j := range i {
				require.Equal(t, p[i].Timeline, p[j].Timeline)
				pairs++
				assert.LessOrEqual(t, distance(p[i].Time, p[j].Time), p[i].Bound+p[j].Bound, "%s and %s at %d", from[at][i], from[at][j], at)
			}
		}
	}
	assert.Greater(t, pairs, 1000)
	first, last := placed[windowN][0], placed[w.now-sec/10][0]
	slewed := last.Time - first.Time - (w.now - sec/10 - windowN)
	assert.Greater(t, slewed, int64(5_000_000), "the scale is slewed")
}

// A timeline keeps the last bends of its scale. What is later than those are old stands
// within its bound of what was told then.
func TestLaterThanTheScaleIsKept(t *testing.T) {
	const late = 400 * sec
	w := newWorld(t, 81, Options{})
	for i := range 4 {
		w.host(i, float64(i), 0)
		// Time services slew all of them, forth and back.
		w.clocks[realtime(i)] = func(at int64) int64 {
			phase := at % (200 * sec)
			return epoch + at + min(phase, 200*sec-phase)*4/10000
		}
	}
	w.ring(0, 4)
	told := map[int64]clock.Placement{}
	farthest := int64(0)
	for range 300 {
		w.window()
		told[w.now] = w.place(raw(0), w.now)
		was, ok := told[w.now-late]
		if !ok {
			continue
		}
		p, ok := w.tl.Place(raw(1), w.clocks[raw(1)](w.now-late))
		require.True(t, ok)
		require.Equal(t, was.Timeline, p.Timeline)
		off := distance(was.Time, p.Time)
		farthest = max(farthest, off)
		assert.LessOrEqual(t, off, was.Bound+p.Bound, "at %d", (w.now-late)/sec)
	}
	assert.Greater(t, farthest, int64(1_000_000), "the scale is not as it was")
}
