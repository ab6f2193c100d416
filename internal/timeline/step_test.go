// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// stepping is host 1's real-time clock with steps at moments, of ns.
func stepping(w *world, steps map[int64]int64) {
	old := w.clocks[realtime(1)]
	w.clocks[realtime(1)] = func(at int64) int64 {
		r := old(at)
		for begin, by := range steps {
			if at >= begin {
				r += by
			}
		}
		return r
	}
}

// stepWindow is a window in which the pair of host 1 is split at the step, as those
// who read both clocks do: what came before is lost to the next solution.
func (w *world) stepWindow(step int64) {
	w.t.Helper()
	end := w.now + windowN
	for _, p := range w.pairs {
		if p[1] != realtime(1) {
			w.now = end
			require.NoError(w.t, w.tl.AddEdge(w.edge(p[0], p[1])))
			continue
		}
		e := w.pairOver(p, step, end)
		e.Stepped = true
		require.NoError(w.t, w.tl.AddEdge(e))
	}
	w.now = end
	w.advance()
}

// pairOver is the edge of a pair over a part of a window.
func (w *world) pairOver(p [2]string, from, until int64) model.ClockEdge {
	mid := from + (until-from)/2
	at, to := w.clocks[p[0]](mid), w.clocks[p[1]](mid)
	e := model.ClockEdge{
		Src: p[0], Dst: p[1], At: at, Span: until - from, Lower: to - at - 500, Upper: to - at + 500, Offset: to - at, Sigma: 50,
		Samples: 50, Source: model.EdgePair, Stamps: model.StampUser, DriftBound: 0.05e-6,
	}
	h := (until - from) / 4
	e.Drift = float64(w.clocks[p[1]](mid+h)-w.clocks[p[1]](mid-h))/float64(w.clocks[p[0]](mid+h)-w.clocks[p[0]](mid-h)) - 1
	return e
}

func TestRealtimeStepsBackAndForth(t *testing.T) {
	w := cluster(t, 11, 5)
	for range 10 {
		w.window()
	}
	back, forth := w.now+windowN/2, w.now+5*windowN+windowN/4
	stepping(w, map[int64]int64{back: -100_000_000, forth: 100_000_000})
	w.stepWindow(back)
	for range 4 {
		w.window()
	}
	w.stepWindow(forth)
	for range 4 {
		w.window()
	}
	// Every moment, also those whose readings occurred twice or near the steps.
	marked := map[bool]int{}
	for at := back - 5*sec; at < w.now; at += sec / 200 {
		p := w.contains(realtime(1), at)
		marked[p.Stepped]++
		twice := at > back-100_000_000 && at < back+100_000_000
		if twice {
			assert.True(t, p.Stepped, "%d", at-back)
			assert.GreaterOrEqual(t, p.Bound, int64(50_000_000-1000), "covers both")
		}
		if at < back-2*sec || (at > back+2*sec && at < forth-3*sec) || at > forth+3*sec {
			assert.False(t, p.Stepped)
			assert.Less(t, p.Bound, int64(1_000_000))
		}
	}
	assert.Positive(t, marked[true])
	increasing(t, w, realtime(1), back-3*sec, w.now)
	// The scale does not care, and neither does the raw clock of the host.
	w.contains(raw(1), w.now)
	assert.Equal(t, int64(2), w.tl.State().clock(t, realtime(1)).Steps)
}

// increasing checks that greater readings are not placed earlier, whatever moments
// they belong to.
func increasing(t *testing.T, w *world, id string, from, until int64) {
	t.Helper()
	first, end := w.clocks[id](from), w.clocks[id](until)
	last := int64(0)
	for r := first; r < end; r += 700_001 {
		p, ok := w.tl.Place(id, r)
		require.True(t, ok)
		require.GreaterOrEqual(t, p.Time, last, "%d ms", (r-first)/1e6)
		last = p.Time
	}
}

func (s State) clock(t *testing.T, id string) ClockState {
	t.Helper()
	for _, c := range s.Clocks {
		if c.Model.Clock == id {
			return c
		}
	}
	t.Fatalf("no clock %s", id)
	return ClockState{}
}

// Forward and then farther back: readings that never occurred, then thrice.
func TestStepsInEveryOrder(t *testing.T) {
	for name, by := range map[string][3]int64{
		"forth forth back": {30e6, 30e6, -200e6}, "back back forth": {-300e6, -40e6, 10e6},
		"forth back forth": {80e6, -150e6, 75e6}, "small": {3e6, -3e6, 5e6},
	} {
		t.Run(name, func(t *testing.T) {
			w := cluster(t, 12, 5)
			for range 5 {
				w.window()
			}
			begin := w.now
			steps := map[int64]int64{}
			for i, b := range by {
				steps[begin+int64(3*i)*windowN+windowN/2] = b
			}
			stepping(w, steps)
			for i := range by {
				w.stepWindow(begin + int64(3*i)*windowN + windowN/2)
				w.window()
				w.window()
			}
			for at := begin - sec; at < w.now; at += sec / 100 {
				w.contains(realtime(1), at)
			}
			increasing(t, w, realtime(1), begin-sec, w.now)
			assert.Equal(t, int64(3), w.tl.State().clock(t, realtime(1)).Steps)
		})
	}
}

// NTP slews a real-time clock by 500 ppm, and back: no step, and the bound holds.
func TestRealtimeIsSlewed(t *testing.T) {
	w := cluster(t, 13, 5)
	for range 5 {
		w.window()
	}
	begin, end := w.now, w.now+10*windowN
	old := w.clocks[realtime(2)]
	w.clocks[realtime(2)] = func(at int64) int64 {
		return old(at) + (min(max(at, begin), end)-begin)/2000
	}
	for range 25 {
		w.window()
		for _, age := range []int64{sec, windowN, 3 * windowN} {
			w.contains(realtime(2), w.now-age)
		}
	}
	increasing(t, w, realtime(2), begin-sec, w.now)
	assert.Zero(t, w.tl.State().clock(t, realtime(2)).Steps)
}

// After an hour back, what was placed before says nothing of the readings that come.
func TestStepFarBack(t *testing.T) {
	w := cluster(t, 15, 5)
	for range 5 {
		w.window()
		w.contains(realtime(1), w.now)
	}
	begin := w.now + windowN/2
	stepping(w, map[int64]int64{begin: -3600 * sec})
	stepped := w.clocks[realtime(1)]
	w.clocks[realtime(1)] = func(at int64) int64 { // and runs 40 ppm fast some time later
		return stepped(at) + max(0, at-begin-5*windowN-windowN/2)*40/1_000_000
	}
	w.stepWindow(begin)
	for range 30 {
		w.window()
		p := w.contains(realtime(1), w.now-sec)
		assert.Less(t, p.Bound, int64(10_000))
	}
	assert.Equal(t, int64(1), w.tl.State().clock(t, realtime(1)).Steps)
	_, ok := w.tl.Place(realtime(1), w.clocks[realtime(1)](w.now)-7200*sec)
	assert.False(t, ok, "an hour before all that is known")
}

// The history is bounded, and a step that is older than it is forgotten.
func TestStepsAreForgotten(t *testing.T) {
	w := newWorld(t, 14, Options{History: 8})
	for i := range 4 {
		w.host(i, float64(i), 0)
	}
	w.ring(0, 4)
	for range 5 {
		w.window()
	}
	stepping(w, map[int64]int64{w.now + windowN/2: -50_000_000})
	w.stepWindow(w.now + windowN/2)
	for range 20 {
		w.window()
	}
	tr := w.tl.tracks[realtime(1)]
	assert.Len(t, tr.segments, 1)
	assert.Nil(t, tr.pieces)
	for _, tr := range w.tl.tracks {
		assert.LessOrEqual(t, len(tr.last().windows), 8)
		assert.LessOrEqual(t, len(tr.last().line.knots), mostKnots(8))
	}
	for _, s := range w.tl.scales {
		assert.LessOrEqual(t, len(s.line.knots), maxScaleKnots)
	}
}
