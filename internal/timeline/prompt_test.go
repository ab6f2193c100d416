// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// promptly lets hosts tell of both of their clocks every half second, as agents do: of
// the last two seconds, split where a clock changes. Windows are told of and solved every
// two seconds, the solution a second later.
type promptly struct {
	*world
	changes map[string][]int64 // of real-time clocks
}

const half = sec / 2

// step lets half a second pass.
func (w *promptly) step() {
	w.t.Helper()
	w.now += half
	for _, p := range w.pairs {
		switch {
		case w.source[p] == model.EdgePair:
			w.tell(p, half, true)
			if w.now%windowN == 0 {
				w.tell(p, windowN, false)
			}
		case w.now%windowN == 0:
			require.NoError(w.t, w.tl.AddEdge(w.edge(p[0], p[1])))
		}
	}
	if w.now%windowN == sec {
		w.advance()
	}
}

// tell gives the edges of the last two seconds, of which the newer part is new. What is
// new and changed begins an edge of its own.
func (w *promptly) tell(p [2]string, fresh int64, prompt bool) {
	w.t.Helper()
	from, stepped := max(0, w.now-windowN), false
	for _, c := range w.changes[p[1]] {
		switch {
		case c > w.now-fresh && c < w.now:
			w.edgeOver(p, from, c, stepped, prompt)
			from, stepped = c, true
		case c > from && c < w.now:
			from = c
		}
	}
	w.edgeOver(p, from, w.now, stepped, prompt)
}

func (w *promptly) edgeOver(p [2]string, from, until int64, stepped, prompt bool) {
	w.t.Helper()
	e := w.pairOver(p, from, until)
	e.Stepped, e.Prompt = stepped, prompt
	require.NoError(w.t, w.tl.AddEdge(e))
}

func prompt(t *testing.T, seed uint64, hosts int) *promptly {
	t.Helper()
	w := &promptly{world: cluster(t, seed, hosts), changes: map[string][]int64{}}
	for range 22 {
		w.step()
	}
	return w
}

// slew lets a clock of a host run faster from a moment on.
func (w *promptly) slew(i int, begin int64, ppm int64) {
	old := w.clocks[realtime(i)]
	w.clocks[realtime(i)] = func(at int64) int64 { return old(at) + max(0, at-begin)*ppm/1_000_000 }
	w.changes[realtime(i)] = append(w.changes[realtime(i)], begin)
}

// quiet reports whether nothing has changed that live spans were placed before.
func (w *promptly) quiet(i int) bool {
	for _, c := range w.changes[realtime(i)] {
		if c < w.now && c > w.now-2*sec {
			return false
		}
	}
	return true
}

// Spans of clocks that are slewed are bounded by µs as soon as their host has told of
// both of its clocks, and before that by what it can have been slewed since.
func TestSpansInsideAPairEdge(t *testing.T) {
	w := prompt(t, 90, 5)
	begin := w.now
	for i, ppm := range []int64{500, -500, 300} {
		w.slew(i, begin+int64(i)*700_000_001, ppm)
		w.slew(i, begin+5*sec+int64(i)*777_000_001, -ppm)
	}
	widest := map[int64]int64{}
	for range 30 {
		for late := int64(0); late < half; late += sec / 20 { // since the last edge
			for i := range 5 {
				p := w.contains(realtime(i), w.now+late)
				widest[0] = max(widest[0], p.Bound)
				if w.quiet(i) {
					assert.LessOrEqual(t, p.Bound, 5_000+late/1900)
				}
				other := w.contains(realtime((i+1)%5), w.now+late)
				bound, ok := w.tl.Between(realtime(i), w.clocks[realtime(i)](w.now+late), realtime((i+1)%5), w.clocks[realtime((i+1)%5)](w.now+late))
				require.True(t, ok)
				assert.LessOrEqual(t, distance(p.Time, other.Time), bound, "both at one moment")
			}
		}
		w.step()
		for i := range 5 {
			increasing(t, w.world, realtime(i), w.now-sec/10, w.now)
		}
	}
	// Nobody asked for spans of these hosts before; now they arrive.
	w = prompt(t, 91, 5)
	begin = w.now
	w.slew(1, begin+300_000_001, 500)
	w.slew(1, begin+5*sec, -500)
	for range 30 {
		w.step()
		for _, age := range []int64{half / 5, half, sec, 2 * sec, 5 * sec} {
			at := w.now - age
			if at < begin {
				continue
			}
			a, b := w.contains(realtime(1), at), w.contains(realtime(2), at)
			widest[age] = max(widest[age], a.Bound)
			bound, ok := w.tl.Between(realtime(1), w.clocks[realtime(1)](at), realtime(2), w.clocks[realtime(2)](at))
			require.True(t, ok)
			assert.LessOrEqual(t, distance(a.Time, b.Time), bound)
			raws, ok := w.tl.Between(raw(1), w.clocks[raw(1)](at), raw(2), w.clocks[raw(2)](at))
			require.True(t, ok)
			assert.LessOrEqual(t, bound, raws+2*1_500, "what is known of the raw clocks, and both pairs")
		}
	}
	for age, bound := range widest {
		t.Logf("%v after it was stamped: bound at most %v", time.Duration(age), time.Duration(bound))
		if age > 0 {
			assert.Less(t, bound, int64(10_000), "%v", time.Duration(age))
		}
	}
}

// A step is bounded when the host has told of it, and known with the solution that has
// compared the host with others since.
func TestStepInsideAPairEdge(t *testing.T) {
	for _, by := range []int64{-100_000_000, 100_000_000, 300_000, -300_000} {
		w := prompt(t, 92, 5)
		w.step()
		at := w.now + 200_000_001
		stepping(w.world, map[int64]int64{at: by})
		w.changes[realtime(1)] = append(w.changes[realtime(1)], at)
		w.step()
		require.NotEqual(t, sec, w.now%windowN, "no solution yet")
		assert.Zero(t, w.tl.State().clock(t, realtime(1)).Steps, "it can have been the raw clock")
		assert.GreaterOrEqual(t, w.tl.State().clock(t, realtime(1)).BoundNow, distance(by, 0))
		for range 12 {
			for age := int64(0); age <= 2*sec; age += sec / 50 {
				w.contains(realtime(1), w.now-age)
			}
			p := w.contains(realtime(1), w.now)
			if most := int64(20_000); w.tl.State().clock(t, realtime(1)).Steps == 0 {
				assert.True(t, p.Stepped)
				assert.Less(t, p.Bound, most+distance(by, 0)*11/10+(w.now-at+sec)/1900, "wherever it stands")
				assert.Less(t, w.now-at, 2*windowN+2*sec)
				assert.Empty(t, w.findings)
			} else {
				assert.Less(t, p.Bound, most)
			}
			w.step()
		}
		increasing(t, w.world, realtime(1), at-sec, w.now)
		assert.Equal(t, int64(1), w.tl.State().clock(t, realtime(1)).Steps)
	}
}

// What was read together is believed of one host's clocks that nobody contradicts. What cannot
// be used, whatever is known, is refused and counted, and so is what cannot be used now.
func TestPairsThatAreNotBelieved(t *testing.T) {
	for name, spoil := range map[string]func(w *promptly, e *model.ClockEdge){
		"packets":          func(_ *promptly, e *model.ClockEdge) { e.Source = model.EdgeProbe },
		"another host":     func(_ *promptly, e *model.ClockEdge) { e.Src = raw(2) },
		"unbounded":        func(_ *promptly, e *model.ClockEdge) { e.Upper = model.NoUpper },
		"no drift":         func(_ *promptly, e *model.ClockEdge) { e.Drift, e.DriftBound = 0, 0 },
		"from the future":  func(_ *promptly, e *model.ClockEdge) { e.At += 60 * sec },
		"far off":          func(_ *promptly, e *model.ClockEdge) { e.At = 1 << 61 },
		"far back":         func(_ *promptly, e *model.ClockEdge) { e.At = -1 << 61 },
		"wide":             func(_ *promptly, e *model.ClockEdge) { e.Lower, e.Upper = -1<<61, 1<<61 },
		"late":             func(_ *promptly, e *model.ClockEdge) { e.At -= half },
		"untrusted":        func(w *promptly, _ *model.ClockEdge) { w.tl.tracks[realtime(1)].untrusted = true },
		"untrusted raw":    func(w *promptly, _ *model.ClockEdge) { w.tl.tracks[raw(1)].untrusted = true },
		"undecided":        func(w *promptly, _ *model.ClockEdge) { w.tl.tracks[realtime(1)].undecided = true },
		"undecided raw":    func(w *promptly, _ *model.ClockEdge) { w.tl.tracks[raw(1)].undecided = true },
		"solved elsewhere": func(w *promptly, _ *model.ClockEdge) { w.tl.tracks[realtime(1)].foreign = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := prompt(t, 93, 4)
			w.step()
			w.now += half
			counted := w.tl.Counters()
			before := counted.PairsTaken
			require.NotZero(t, before)
			e := w.pairOver([2]string{raw(1), realtime(1)}, w.now-sec, w.now)
			e.Prompt = true
			spoil(w, &e)
			refused := w.tl.AddEdge(e)
			useless := slices.Contains([]string{"packets", "another host", "unbounded", "no drift", "wide"}, name)
			assert.Equal(t, useless, refused != nil, "%v", refused)
			if counted.PairsUnused++; useless {
				counted.PairsUnused--
				counted.Refused++
			}
			now := w.tl.Counters()
			assert.Equal(t, [3]int64{before, counted.PairsUnused, counted.Refused}, [3]int64{now.PairsTaken, now.PairsUnused, now.Refused})
			require.NoError(t, w.tl.AddEdge(w.pairOver([2]string{raw(3), realtime(3)}, w.now-sec, w.now)))
			assert.Equal(t, before+1, w.tl.Counters().PairsTaken, "that of another host is")
		})
	}
}

// Solutions do not know of them.
func TestPromptPairsAreNotSolved(t *testing.T) {
	w := prompt(t, 94, 4)
	before, taken := w.tl.Counters().Edges.Added, w.tl.Counters().PairsTaken
	for range 20 {
		w.step()
	}
	assert.Equal(t, int64(5*len(w.pairs)), w.tl.Counters().Edges.Added-before)
	assert.Equal(t, int64(20*4), w.tl.Counters().PairsTaken-taken)
	assert.Equal(t, 4, w.tl.State().Timelines[0].RealtimeClocks)
}

// The agents' readings go on at once where the state of before was restored, although
// nothing is solved yet.
func TestPairsAfterARestart(t *testing.T) {
	w := prompt(t, 95, 4)
	w.step()
	state := snapshotOf(w.tl)
	w.tl = New(w.tl.opt)
	require.NoError(t, w.tl.Restore(state))
	assert.Greater(t, w.contains(realtime(1), w.now+2*sec).Bound, int64(500_000))
	w.now += 2 * sec
	for i := range 4 {
		w.tell([2]string{raw(i), realtime(i)}, half, true)
	}
	for i := range 4 {
		assert.Less(t, w.contains(realtime(i), w.now).Bound, int64(20_000))
	}
	w.tl.Advance(time.Unix(0, epoch+w.now)) // alone, the clocks of a host say nothing of the others
	for range 20 {
		w.step()
		for i := range 4 {
			assert.Less(t, w.contains(realtime(i), w.now).Bound, int64(20_000))
		}
	}
}

// Whatever the clocks are slewed by, readings keep their order, and what was placed stays.
func TestPromptPlacesAreMonotoneAndStay(t *testing.T) {
	for seed := range uint64(4) {
		w := prompt(t, 100+seed, 4)
		for range 12 { // slews that begin and end at any time
			i, begin := w.rng.IntN(4), w.now+w.rng.Int64N(40*sec)
			ppm := w.rng.Int64N(900) - 450
			w.slew(i, begin, ppm)
			w.slew(i, begin+w.rng.Int64N(5*sec), -ppm)
		}
		for i := range 4 {
			slices.Sort(w.changes[realtime(i)])
		}
		type placed struct{ at, reading, time int64 }
		before := map[string][]placed{}
		for range 100 {
			w.step()
			for i := range 4 {
				id := realtime(i)
				for range 5 {
					at := w.now + w.rng.Int64N(half) - w.rng.Int64N(3*sec)
					p := w.contains(id, at)
					before[id] = append(before[id], placed{at, w.clocks[id](at), p.Time})
				}
			}
		}
		for id, list := range before {
			for _, b := range list {
				assert.Equal(t, b.time, w.contains(id, b.at).Time, "%s", id)
			}
			slices.SortFunc(list, func(a, b placed) int { return int(a.reading - b.reading) })
			last := int64(0)
			for _, b := range list {
				p, _ := w.tl.Place(id, b.reading)
				require.GreaterOrEqual(t, p.Time, last)
				last = p.Time
			}
			tr := w.tl.tracks[id]
			assert.LessOrEqual(t, len(tr.last().windows), w.tl.opt.History)
			assert.LessOrEqual(t, len(tr.last().line.knots), mostKnots(w.tl.opt.History))
		}
	}
}
