// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

func (w *world) of(class string) (found []model.Finding) {
	for _, f := range w.findings {
		if f.Class == class {
			found = append(found, f)
		}
	}
	return found
}

func numbers(t *testing.T, f model.Finding) evidence.Clock {
	t.Helper()
	e, ok := evidence.As[evidence.Clock](f.Evidence)
	require.True(t, ok)
	return *e
}

func TestNothingIsWrong(t *testing.T) {
	w := cluster(t, 20, 8)
	for range 40 {
		w.window()
	}
	assert.Empty(t, w.findings)
}

func TestSkew(t *testing.T) {
	w := cluster(t, 21, 6)
	for range 3 {
		w.window()
	}
	old, begin := w.clocks[realtime(2)], w.now
	end := begin + 30*windowN
	w.clocks[realtime(2)] = func(at int64) int64 { // 90 ppm, up to 5.4 ms; then set right
		if at >= end {
			return old(at)
		}
		return old(at) + max(0, at-begin)*9/100_000
	}
	for range 30 {
		w.window()
	}
	found := w.of(model.ClassSkew)
	require.NotEmpty(t, found)
	f := found[0]
	assert.Equal(t, []any{"clock", "skew", "open", int64(1), realtime(2), "h2", model.SeverityInfo},
		[]any{f.Kind, f.Class, f.Status, f.Revision, f.Clock, f.Host, f.Severity})
	e := numbers(t, f)
	assert.Greater(t, e.Offset-e.Bound, e.Threshold, "beyond the bound and the threshold")
	assert.InDelta(t, 0.001, e.Threshold, 0)
	assert.Equal(t, 6, e.Walls)
	assert.NotEmpty(t, f.Action)
	assert.Equal(t, model.StatusUpdated, found[1].Status, "told again when it has doubled")
	assert.Less(t, len(found), 5)
	w.stepWindow2(end)
	for range 6 {
		w.window()
	}
	found = w.of(model.ClassSkew)
	last := found[len(found)-1]
	assert.Equal(t, model.StatusClosed, last.Status)
	for i, g := range found {
		assert.Equal(t, f.ID, g.ID)
		assert.Equal(t, int64(i+1), g.Revision)
	}
	assert.Len(t, w.of(model.ClassStep), 2, "being set right was a step, opened and closed")
	assert.Empty(t, w.of(model.ClassDrift), "90 ppm is what oscillators may")
}

// stepWindow2 is a window that begins with a step of host 2.
func (w *world) stepWindow2(at int64) {
	w.t.Helper()
	end := at + windowN
	w.now = end
	for _, p := range w.pairs {
		e := w.edge(p[0], p[1])
		if p[1] == realtime(2) {
			e = w.pairOver(p, at, end)
			e.Stepped = true
		}
		require.NoError(w.t, w.tl.AddEdge(e))
	}
	w.advance()
}

func TestDrift(t *testing.T) {
	w := cluster(t, 22, 6)
	w.halfWidth = 500
	w.clocks[raw(3)] = linear(5e14, 160) // its oscillator is defective
	for range 10 {
		w.window()
	}
	found := w.of(model.ClassDrift)
	require.Len(t, found, 1)
	assert.Equal(t, raw(3), found[0].Clock)
	e := numbers(t, found[0])
	assert.InDelta(t, 160-w.medianRate(6), e.Drift, 1, "against the oscillators")
	assert.Greater(t, e.Drift-e.DriftBound, e.Limit)
	assert.Empty(t, w.of(model.ClassSkew), "a raw clock is nowhere near Unix time")
}

// medianRate is that of the raw clocks, of an even number the lower one, in ppm.
func (w *world) medianRate(hosts int) float64 {
	var rates []float64
	for i := range hosts {
		read := w.clocks[raw(i)]
		rates = append(rates, float64(read(1000*sec)-read(0))/float64(1000*sec)*1e6-1e6)
	}
	slices.Sort(rates)
	return stats.MedianLow(rates)
}

// The time service of a site slews all its real-time clocks alike: that is no fault of
// the oscillators, and one that is wrong is found all the same.
func TestDriftWhileAllAreSlewed(t *testing.T) {
	for _, wrong := range []float64{0, 200} {
		w := cluster(t, 29, 5)
		w.halfWidth = 500
		for i := range 5 {
			w.clocks[realtime(i)] = linear(epoch, 300)
			w.clocks[raw(i)] = linear(5e14, float64(10*i-20))
		}
		if wrong != 0 {
			w.clocks[raw(3)] = linear(5e14, wrong)
		}
		for range 10 {
			w.window()
		}
		found := w.of(model.ClassDrift)
		if wrong == 0 {
			assert.Empty(t, found)
			continue
		}
		require.Len(t, found, 1)
		assert.Equal(t, raw(3), found[0].Clock)
		assert.InDelta(t, wrong-w.medianRate(5), numbers(t, found[0]).Drift, 1, "against the median of the oscillators")
	}
}

func TestStep(t *testing.T) {
	w := cluster(t, 23, 6)
	for range 5 {
		w.window()
	}
	stepping(w, map[int64]int64{w.now + sec: -20_000_000})
	w.stepWindow(w.now + sec)
	found := w.of(model.ClassStep)
	require.Len(t, found, 1)
	assert.Equal(t, realtime(1), found[0].Clock)
	assert.InDelta(t, -0.02, numbers(t, found[0]).Jump, 1e-5)
	for range cleanWindows {
		w.window()
	}
	found = w.of(model.ClassStep)
	assert.Equal(t, model.StatusClosed, found[len(found)-1].Status)
}

// What is within the bound is nothing, however likely.
func TestNothingIsFoundWithinTheBound(t *testing.T) {
	w := cluster(t, 27, 6)
	w.halfWidth = 2_000_000
	w.clocks[realtime(2)] = linear(epoch+1_800_000, 0)
	w.clocks[raw(3)] = linear(5e14, 400)
	for range 10 {
		w.window()
	}
	assert.Empty(t, w.findings)
	assert.InDelta(t, -1.8e6, float64(w.contains(realtime(2), w.now).Offset), 1e6, "beyond the threshold alone")
}

// A node that tells its peers different times is marked, and its readings stay.
func TestUntrusted(t *testing.T) {
	w := cluster(t, 24, 10)
	for range 3 {
		w.window()
	}
	honest := map[string]int64{}
	for range 6 {
		w.now += windowN
		for i, p := range w.pairs {
			e := w.edge(p[0], p[1])
			if p[0] == raw(4) || p[1] == raw(4) {
				by := int64(i%5-2) * 3_000_000
				e.Lower, e.Upper, e.Offset = e.Lower+by, e.Upper+by, e.Offset+by
			}
			require.NoError(t, w.tl.AddEdge(e))
		}
		w.advance()
	}
	found := w.of(model.ClassUntrusted)
	require.NotEmpty(t, found)
	for _, f := range found {
		assert.Equal(t, "h4", f.Host, "nobody else")
		assert.Equal(t, model.SeverityWarn, f.Severity)
	}
	assert.GreaterOrEqual(t, len(numbers(t, found[0]).Contradicts), 3, "never with fewer neighbours")
	p := w.place(raw(4), w.now)
	assert.True(t, p.Untrusted)
	assert.Equal(t, w.clocks[raw(4)](w.now), p.Time)
	assert.False(t, p.Bounded)
	_, ok := w.tl.Between(raw(4), w.clocks[raw(4)](w.now), raw(1), w.clocks[raw(1)](w.now))
	assert.False(t, ok)
	for id := range w.clocks {
		if parse(id).host != "h4" {
			honest[id] = w.contains(id, w.now).Time
		}
	}
	assert.NotEmpty(t, honest)
	// It comes to reason.
	for range 30 {
		w.window()
	}
	assert.False(t, w.place(raw(4), w.now).Untrusted)
	w.contains(raw(4), w.now)
	found = w.of(model.ClassUntrusted)
	assert.Equal(t, model.StatusClosed, found[len(found)-1].Status)
}

// What stands is told again before the findings connector takes it for over, and
// ends when its clock is forgotten.
func TestFindingsAreRepeatedAndEnd(t *testing.T) {
	w := cluster(t, 25, 5)
	w.clocks[realtime(0)] = linear(epoch+700_000_000, 0)
	for range 200 {
		w.window()
	}
	found := w.of(model.ClassSkew)
	for i := 1; i < len(found); i++ {
		assert.LessOrEqual(t, found[i].Time-found[i-1].Time, (repeatAfter + 10*time.Second).Nanoseconds())
	}
	assert.GreaterOrEqual(t, len(found), 3)
	w.now += int64(time.Hour)
	w.advance()
	found = w.of(model.ClassSkew)
	assert.Equal(t, model.StatusClosed, found[len(found)-1].Status)
	assert.Empty(t, w.tl.watch.counts)
	assert.Zero(t, w.tl.watch.book.Len())
	assert.Empty(t, w.tl.watch.seen)
}

func TestFeedKeepsTheNewestAndCountsWhatItLoses(t *testing.T) {
	w := cluster(t, 26, 3)
	feed := w.tl.Feed()
	for range 3 {
		w.window()
	}
	out := feed.Take()
	assert.Len(t, out.Models, 6, "one of each clock")
	assert.Empty(t, feed.Take().Models)
	w.tl.feed(&Outcome{Findings: make([]model.Finding, maxWaiting+3)})
	assert.Len(t, feed.Take().Findings, maxWaiting)
	assert.Equal(t, int64(3), w.tl.Counters().FindingsOverflowed)
	feed.Close()
	w.window()
	assert.Empty(t, feed.Take().Models)
}
