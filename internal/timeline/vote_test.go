// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// late lets hosts from..to join the world, with the neighbours of a ring.
func (w *world) late(from, to int, skew int64) {
	for i := from; i < to; i++ {
		w.host(i, float64(i), skew)
		for j := max(0, i-3); j < i; j++ {
			w.join(raw(j), raw(i), model.EdgeProbe)
		}
	}
}

// far is by how much a clock is placed off Unix time.
func (w *world) far(id string) int64 {
	return distance(w.place(id, w.now-sec).Time, epoch+w.now-sec)
}

// One bad clock that is known before the others neither has the timeline nor accuses
// them.
func TestBadClockIsKnownFirst(t *testing.T) {
	for _, off := range []int64{10 * sec, -86_400 * sec, 100_000_000} {
		t.Run(fmt.Sprint(off), func(t *testing.T) {
			w := newWorld(t, 60, Options{})
			w.host(0, 3, off)
			w.window()
			first := w.place(raw(0), w.now).Timeline
			assert.InDelta(t, float64(distance(off, 0)), float64(w.far(raw(0))), 1e6, "nobody knows better")
			w.late(1, 6, 0)
			last := int64(0)
			for k := range 40 {
				w.window()
				for i := range 6 {
					assert.Less(t, w.far(raw(i)), int64(1_000_000), "window %d", k)
					w.far(realtime(i))
				}
				p := w.place(raw(3), w.now)
				assert.Greater(t, p.Time, last)
				last = p.Time
			}
			assert.Equal(t, first+"#2", w.place(raw(0), w.now).Timeline, "set anew, which its name tells")
			require.NotEmpty(t, w.of(model.ClassSkew))
			for _, f := range w.findings {
				assert.Equal(t, realtime(0), f.Clock, "nobody else")
			}
			assert.InDelta(t, float64(off)/1e9, numbers(t, w.of(model.ClassSkew)[0]).Offset, 1e-3)
			// The next run goes on there.
			next := New(w.tl.opt)
			require.NoError(t, next.Restore(snapshotOf(w.tl)))
			again, ok := next.Place(raw(3), w.clocks[raw(3)](w.now))
			require.True(t, ok)
			assert.Equal(t, first+"#2", again.Timeline)
			assert.Equal(t, w.tl.scales[raw(0)].setBy, next.scales[raw(0)].setBy)
		})
	}
}

// What most of those do who agreed on a timeline, it follows and is not stepped; and
// while it is on its way nobody is accused of it.
func TestMostAreStepped(t *testing.T) {
	w := cluster(t, 61, 6)
	for range 5 {
		w.window()
	}
	name, begin := w.place(raw(0), w.now).Timeline, w.now
	for i := range 4 {
		old := w.clocks[realtime(i)]
		w.clocks[realtime(i)] = func(at int64) int64 {
			if at < begin {
				return old(at)
			}
			return old(at) + 50_000_000
		}
	}
	for range 10 {
		w.window()
		assert.Equal(t, name, w.place(raw(0), w.now).Timeline)
	}
	assert.Greater(t, distance(w.place(realtime(0), w.now).Offset, 0), int64(30_000_000), "the timeline is on its way")
	require.NotEmpty(t, w.of(model.ClassSkew))
	for _, f := range w.of(model.ClassSkew) {
		assert.Contains(t, []string{realtime(4), realtime(5)}, f.Clock, "they are off from what most say")
	}
}

// A timeline that one clock set, and most agreed on since, is not set anew when most
// of them change their mind.
func TestAgreedOnLater(t *testing.T) {
	w := newWorld(t, 69, Options{})
	w.host(0, 3, 0)
	w.window()
	w.late(1, 6, 0)
	for range 5 {
		w.window()
	}
	name, begin := w.place(raw(0), w.now).Timeline, w.now
	for i := range 5 {
		old := w.clocks[realtime(i)]
		w.clocks[realtime(i)] = func(at int64) int64 {
			if at < begin {
				return old(at)
			}
			return old(at) + 100_000_000
		}
	}
	for range 5 {
		w.window()
		assert.Equal(t, name, w.place(raw(0), w.now).Timeline)
	}
}

// Of two clocks nothing tells which one is off.
func TestTwoClocksDiffer(t *testing.T) {
	for name, skews := range map[string][2]int64{"behind": {-10_000_000, 0}, "ahead": {0, 10_000_000}, "agree": {0, 300_000}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 62, Options{})
			for i, s := range skews {
				w.host(i, 150*float64(i), s) // no drift is told either
			}
			w.ring(0, 2)
			for range 10 {
				w.window()
			}
			if name == "agree" {
				assert.Empty(t, w.findings)
				return
			}
			require.Len(t, w.findings, 2)
			for _, f := range w.findings {
				e := numbers(t, f)
				assert.Equal(t, model.ClassSkew, f.Class)
				assert.True(t, e.Undecided)
				assert.NotEqual(t, f.Clock, e.Other)
				assert.InDelta(t, 0.01, max(e.Offset, -e.Offset), 1e-4)
			}
			assert.Equal(t, w.findings[1].Clock, numbers(t, w.findings[0]).Other, "the pair")
		})
	}
}

// Where no more than half agree, nobody is accused.
func TestNoMajority(t *testing.T) {
	for name, skews := range map[string][]int64{
		"two and two": {0, 100_000, 10_000_000, 10_100_000},
		"all differ":  {0, 5_000_000, 10_000_000, 15_000_000, 20_000_000},
		"one":         {7_000_000},
	} {
		w := newWorld(t, 63, Options{})
		for i, s := range skews {
			w.host(i, float64(i), s)
		}
		w.ring(0, len(skews))
		for range 10 {
			w.window()
		}
		assert.Empty(t, w.findings, name)
	}
	// Three of five are enough.
	w := newWorld(t, 64, Options{})
	for i, s := range []int64{0, 100_000, 200_000, 10_000_000, -9_000_000} {
		w.host(i, float64(i), s)
	}
	w.ring(0, 5)
	for range 10 {
		w.window()
	}
	accused := map[string]bool{}
	for _, f := range w.of(model.ClassSkew) {
		accused[f.Clock] = true
	}
	assert.Equal(t, map[string]bool{realtime(3): true, realtime(4): true}, accused)
}

// A single real-time clock that is slewed makes no finding of the raw clock.
func TestOneClockIsSlewed(t *testing.T) {
	w := newWorld(t, 65, Options{})
	w.host(0, 0, 0)
	w.clocks[realtime(0)] = linear(epoch, 400)
	for range 10 {
		w.window()
	}
	assert.Empty(t, w.findings)
}

// NTP slews: that is no defect, unless it is faster than a kernel does it.
func TestSlewIsNoDrift(t *testing.T) {
	for ppm, found := range map[float64]bool{480: false, 5000: true} {
		w := cluster(t, 66, 5)
		w.clocks[realtime(2)] = linear(epoch, ppm)
		for range 4 {
			w.window()
		}
		assert.Equal(t, found, len(w.of(model.ClassDrift)) > 0, "%v ppm", ppm)
		for _, f := range w.of(model.ClassDrift) {
			assert.Equal(t, realtime(2), f.Clock)
		}
	}
}

// Only clocks that somebody read beside their host's raw clock are followed, one of
// each host.
func TestWhoVotes(t *testing.T) {
	for name, made := range map[string]struct {
		id     func(k int) string
		source string
		from   string
	}{
		"probed by their own": {func(k int) string { return fmt.Sprintf("host:v%d/b/realtime", k) }, model.EdgeProbe, "host:v%d/b/raw"},
		"made up by a peer":   {func(k int) string { return fmt.Sprintf("host:v%d/b/realtime", k) }, model.EdgeProbe, raw(0)},
		"foreign reflectors":  {func(k int) string { return fmt.Sprintf("stamp:10.0.0.%d/realtime", k) }, model.EdgeProbe, raw(0)},
		"services":            {func(k int) string { return fmt.Sprintf("service:s%d/realtime", k) }, model.EdgeCall, realtime(0)},
		"of another host":     {func(k int) string { return fmt.Sprintf("host:v%d/b/realtime", k) }, model.EdgePair, raw(0)},
		"of another boot":     {func(k int) string { return fmt.Sprintf("host:h0/b%d/realtime", 7+k) }, model.EdgePair, raw(0)},
		"by a raw of theirs":  {func(k int) string { return fmt.Sprintf("host:h0/b%d/realtime", 7+k) }, model.EdgePair, ""},
	} {
		w := cluster(t, 67, 4)
		for k := range 5 {
			id, from := made.id(k), made.from
			w.clocks[id] = linear(epoch+10*sec, 0)
			switch from {
			case "": // one host with several boots has one vote
				from = fmt.Sprintf("host:h0/b%d/raw", 7+k)
			case "host:v%d/b/raw":
				from = fmt.Sprintf(from, k)
			}
			if w.clocks[from] == nil {
				w.clocks[from] = linear(5e14, 1)
				w.join(raw(0), from, model.EdgeProbe)
			}
			w.join(from, id, made.source)
		}
		for range 10 {
			w.window()
		}
		for i := range 4 {
			assert.Less(t, w.far(raw(i)), int64(1_000_000), name)
		}
		for _, f := range w.findings {
			assert.NotContains(t, []string{realtime(1), realtime(2), realtime(3)}, f.Clock, name)
		}
		states := w.tl.State().Timelines
		require.Len(t, states, 1, name)
		assert.Equal(t, 4, states[0].RealtimeClocks, name)
	}
}

// A reflector that is no node of ours never tells the time, and traces do where
// nothing else does.
func TestWhoVotesWithoutHosts(t *testing.T) {
	w := newWorld(t, 68, Options{})
	w.clocks["service:a/realtime"] = linear(epoch, 0)
	w.clocks["stamp:10.0.0.1/realtime"], w.clocks["stamp:10.0.0.2/realtime"] = linear(epoch-5*sec, 0), linear(epoch-5*sec, 0)
	for i := 1; i < 3; i++ {
		w.join("service:a/realtime", fmt.Sprintf("stamp:10.0.0.%d/realtime", i), model.EdgeProbe)
	}
	for range 3 {
		w.window()
	}
	assert.Less(t, w.far("service:a/realtime"), int64(1_000_000))
	// Hosts that read their clocks know better.
	w.late(0, 1, 3*sec)
	w.join("service:a/realtime", realtime(0), model.EdgeCall)
	for range 3 {
		w.window()
	}
	assert.InDelta(t, 3e9, float64(w.far(raw(0))), 1e6)
	assert.Empty(t, w.findings)
}

// A clock that is read does not keep what is known of one that is not.
func TestUnpair_SilentClockBehindOneThatIsRead_IsForgotten(t *testing.T) {
	w := newWorld(t, 1, Options{})
	pairOf := func(i int) *model.ClockEdge {
		return &model.ClockEdge{Src: raw(i), Dst: realtime(i), Source: model.EdgePair}
	}
	read := func(i int) {
		w.tl.pair(pairOf(i))
		w.tl.comparedAt(raw(i), parse(raw(i)), w.now)
	}
	read(0)
	read(1)
	w.now += w.tl.opt.Forget.Nanoseconds()
	read(0)
	w.now++
	w.tl.unpair(w.tl.opt.Now())
	assert.True(t, w.tl.paired.Has(realtime(0)))
	assert.False(t, w.tl.paired.Has(realtime(1)))
	assert.True(t, w.tl.compared.Has(raw(0)))
	assert.False(t, w.tl.compared.Has(raw(1)))
}
