// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/model"
)

func cluster(t *testing.T, seed uint64, hosts int) *world {
	t.Helper()
	w := newWorld(t, seed, Options{})
	for i := range hosts {
		w.host(i, w.rng.NormFloat64()*20, int64(w.rng.NormFloat64()*50_000))
	}
	w.ring(0, hosts)
	return w
}

func TestPlacedTimesContainTheTruth(t *testing.T) {
	w := cluster(t, 1, 8)
	for range 40 {
		w.window()
		for id := range w.clocks {
			for _, age := range []int64{0, sec / 3, sec, 3 * sec, 20 * sec} {
				if w.now > age {
					p := w.contains(id, w.now-age)
					assert.NotZero(t, p.Sigma+float64(p.Bound))
				}
			}
		}
	}
	p := w.contains(raw(3), w.now-sec)
	assert.Less(t, p.Bound, int64(10_000), "within the window the bound is that of the edges, some µs")
	// Nothing comes any more: bounds grow and still hold.
	end := w.now
	w.now += 60 * sec
	w.advance()
	grown := w.contains(raw(3), w.now)
	assert.Greater(t, grown.Bound, p.Bound)
	assert.Less(t, grown.Bound, int64(60_000_000), "no more than 1000 ppm")
	w.contains(raw(3), end-sec)
}

// Whatever solutions come, of one clock a greater reading is never placed earlier,
// and asking again gives the same answer.
func TestPlacesAreMonotoneAndStay(t *testing.T) {
	w := cluster(t, 2, 6)
	w.noise, w.halfWidth = 20_000, 100_000 // solutions jump by many µs
	type asked struct{ reading, time int64 }
	before := map[string][]asked{}
	for range 60 {
		w.window()
		for id, read := range w.clocks {
			for at := w.now - windowN; at < w.now; at += 1 + w.rng.Int64N(sec/2) {
				r := read(at)
				p, ok := w.tl.Place(id, r)
				require.True(t, ok)
				if list := before[id]; len(list) > 0 && r > list[len(list)-1].reading {
					require.GreaterOrEqual(t, p.Time, list[len(list)-1].time, "%s", id)
				}
				before[id] = append(before[id], asked{r, p.Time})
				// Neighbouring ns: a line that bends must not turn back.
				for d := int64(1); d < 5; d++ {
					next, _ := w.tl.Place(id, r+d)
					require.GreaterOrEqual(t, next.Time, p.Time)
					before[id] = append(before[id], asked{r + d, next.Time})
					p = next
				}
			}
		}
	}
	for id, list := range before {
		for _, a := range list[len(list)-200:] {
			p, ok := w.tl.Place(id, a.reading)
			require.True(t, ok)
			require.Equal(t, a.time, p.Time, "%s: what was placed stays", id)
		}
	}
}

// What nobody asked for is placed by the model of its time: better than by the one
// before, extrapolated.
func TestLateReadingsUseTheModelOfTheirTime(t *testing.T) {
	w := cluster(t, 3, 6)
	w.noise, w.halfWidth = 5, 200
	// The raw clock of host 2 changes its frequency every window.
	w.clocks[raw(2)] = func(at int64) int64 {
		n, rest := at/windowN, at%windowN
		sum := int64(0)
		for k := range n {
			sum += (k % 5) * 2000 // 1 ppm more in each of five windows
		}
		return 7e14 + at + sum + (n%5)*rest/1_000_000
	}
	for range 30 {
		w.window()
	}
	for at := w.now - 40*sec; at < w.now; at += sec / 2 {
		p, ref := w.place(raw(2), at), w.place(raw(0), at)
		// Where 4 ppm become 0, the straight line between the middles of both windows is off by (4 ppm - 0)/2 of 1 s.
		require.Less(t, distance(p.Time, ref.Time), int64(2100), "extrapolated it would be off by up to 8 µs")
	}
}

func TestScaleFollowsTheMedianAndIsNeverStepped(t *testing.T) {
	w := newWorld(t, 4, Options{})
	skews := []int64{-40_000, 0, 30_000, 10_000, 3600 * sec} // one lies by an hour
	for i, s := range skews {
		w.host(i, float64(i*7), s)
	}
	w.ring(0, 5)
	for range 10 {
		w.window()
	}
	p := w.place(raw(1), w.now)
	assert.InDelta(t, float64(epoch+w.now+10_000), float64(p.Time), 5_000, "the median of five")
	assert.InDelta(t, 3600*1e9, float64(-w.place(realtime(4), w.now).Offset), 1e6, "the one that lies is off the scale")
	// Now the median itself is stepped by 60 ms: three hosts' NTP agree on it.
	for _, i := range []int{0, 1, 3} {
		old := w.clocks[realtime(i)]
		begin := w.now
		w.clocks[realtime(i)] = func(at int64) int64 {
			if at < begin {
				return old(at)
			}
			return old(at) + 60_000_000
		}
	}
	last, lastAt := w.place(raw(1), w.now), w.now
	for range 200 {
		w.window()
		next := w.place(raw(1), w.now)
		pace := float64(next.Time-last.Time)/float64(w.now-lastAt) - 1
		require.LessOrEqual(t, pace, 530e-6, "500 ppm against the reference, which runs up to 28 ppm fast")
		require.GreaterOrEqual(t, pace, -530e-6)
		last, lastAt = next, w.now
	}
	assert.InDelta(t, float64(epoch+w.now+60_000_000), float64(last.Time), 500_000, "and arrives in the end")
}

func TestComponentsAreSeparateTimelines(t *testing.T) {
	w := newWorld(t, 5, Options{})
	for i := range 6 {
		w.host(i, float64(i), int64(i/3)*1_000_000_000) // the second half is a second ahead
	}
	w.ring(0, 3)
	w.ring(3, 6)
	for range 3 {
		w.window()
	}
	a, b := w.contains(realtime(0), w.now), w.contains(realtime(3), w.now)
	assert.NotEqual(t, a.Timeline, b.Timeline)
	_, ok := w.tl.Between(realtime(0), w.clocks[realtime(0)](w.now), realtime(3), w.clocks[realtime(3)](w.now))
	assert.False(t, ok)
	_, ok = w.tl.Between(realtime(0), w.clocks[realtime(0)](w.now), realtime(1), w.clocks[realtime(1)](w.now))
	assert.True(t, ok)
	before := map[string]clock.Placement{}
	for id := range w.clocks {
		before[id] = w.place(id, w.now)
	}
	// They meet: one timeline, and nobody jumps or goes back.
	w.join(raw(1), raw(4), model.EdgeProbe)
	w.join(raw(2), raw(5), model.EdgeProbe)
	for range 4 {
		w.window()
		for id := range w.clocks {
			p := w.contains(id, w.now)
			assert.Greater(t, p.Time, before[id].Time)
			// The scale that leaves was a second off: time goes on at 0.6 or at 1.4 of its pace.
			assert.InDelta(t, float64(windowN), float64(p.Time-before[id].Time), 0.41*float64(windowN))
			before[id] = p
		}
	}
	assert.Equal(t, before[raw(0)].Timeline, before[raw(5)].Timeline)
}

// A new reference gives the timeline a new name, and its time goes on.
func TestReferenceLeaves(t *testing.T) {
	w := cluster(t, 6, 6)
	for range 5 {
		w.window()
	}
	gone := w.place(raw(0), w.now).Timeline[len(Prefix):]
	var left [][2]string
	for _, p := range w.pairs {
		if p[0] != gone && p[1] != gone {
			left = append(left, p)
		}
	}
	w.pairs = left
	last := map[string]int64{}
	for range 40 {
		w.window()
		for id := range w.clocks {
			if parse(id).host == parse(gone).host {
				continue
			}
			p := w.contains(id, w.now)
			if last[id] != 0 {
				assert.InDelta(t, float64(windowN), float64(p.Time-last[id]), 2e6, "no jump: at most 1000 ppm")
			}
			last[id] = p.Time
		}
	}
	for id := range last {
		assert.NotEqual(t, Prefix+gone, w.place(id, w.now).Timeline)
	}
}

func TestBetweenIsTighterThanTheSum(t *testing.T) {
	w := cluster(t, 7, 8)
	for range 10 {
		w.window()
	}
	tighter := 0
	for _, pair := range [][2]string{{raw(3), raw(4)}, {realtime(3), realtime(5)}, {raw(1), realtime(1)}} {
		a, b := w.contains(pair[0], w.now-sec), w.contains(pair[1], w.now-sec)
		bound, ok := w.tl.Between(pair[0], w.clocks[pair[0]](w.now-sec), pair[1], w.clocks[pair[1]](w.now-sec))
		require.True(t, ok)
		assert.LessOrEqual(t, bound, a.Bound+b.Bound)
		if bound < a.Bound+b.Bound {
			tighter++
		}
		assert.LessOrEqual(t, distance(a.Time, b.Time), bound, "both at one moment")
	}
	assert.Positive(t, tighter)
	bound, ok := w.tl.Between(raw(1), 5, raw(1), 7)
	assert.True(t, ok)
	assert.Zero(t, bound)
}

func TestUnknownAndForgotten(t *testing.T) {
	w := cluster(t, 8, 3)
	w.window()
	_, ok := w.tl.Place("host:x/b/raw", 5)
	assert.False(t, ok)
	_, ok = w.tl.Place(raw(1), w.clocks[raw(1)](w.now+int64(11*time.Minute)))
	assert.False(t, ok, "too far from all that is known")
	w.now += int64(11 * time.Minute)
	w.advance()
	_, ok = w.tl.Place(raw(1), w.clocks[raw(1)](w.now))
	assert.False(t, ok)
	assert.Empty(t, w.tl.State().Clocks)
	assert.Empty(t, w.tl.State().Timelines)
	assert.Equal(t, int64(6), w.tl.Counters().ClocksForgotten)
	_, ok = w.tl.Resolve("h1")
	assert.False(t, ok)
}

func TestResolve(t *testing.T) {
	w := cluster(t, 9, 3)
	w.window()
	w.tl.Alias("node-1", "h1")
	for _, name := range []string{"h1", "node-1"} {
		id, ok := w.tl.Resolve(name)
		assert.True(t, ok)
		assert.Equal(t, realtime(1), id)
	}
	_, ok := w.tl.Resolve("h9")
	assert.False(t, ok)
	// The host boots anew.
	w.clocks["host:h1/a2/raw"], w.clocks["host:h1/a2/realtime"] = linear(5, 3), linear(epoch, 0)
	w.pairs = [][2]string{{raw(0), raw(2)}}
	w.join("host:h1/a2/raw", "host:h1/a2/realtime", model.EdgePair)
	w.join("host:h1/a2/raw", raw(2), model.EdgeProbe)
	for range 3 { // the solver goes on to carry the old clock forward
		w.window()
		id, ok := w.tl.Resolve("h1")
		assert.True(t, ok)
		assert.Equal(t, "host:h1/a2/realtime", id)
	}
}

func TestParse(t *testing.T) {
	for id, want := range map[string]name{
		"host:a/b/raw":                          {host: "a", boot: "b", raw: true},
		"host:rack/7/b/realtime":                {host: "rack/7", boot: "b", realtime: true},
		"service:x/realtime":                    {realtime: true},
		"utc:chrony/7F000001/host:a/b/realtime": {daemon: true},
		"gpu:G/globaltimer":                     {},
		"host:a":                                {},
		"host:a/raw":                            {raw: true},
	} {
		assert.Equal(t, want, parse(id), id)
	}
}

func TestRefused(t *testing.T) {
	tl := New(Options{MaxClocks: 2})
	require.Error(t, tl.AddEdge(model.ClockEdge{Src: "a", Dst: "b", Lower: 2, Upper: 1, Source: model.EdgeProbe, Stamps: model.StampUser}))
	for _, e := range []model.ClockEdge{{Src: strings.Repeat("a", 257), Dst: "b"}, {Src: "a", Dst: strings.Repeat("b", 257)}} {
		require.ErrorContains(t, tl.AddEdge(e), "want at most 256")
	}
	for _, e := range []model.ClockEdge{{Src: "a\n", Dst: "b"}, {Src: "a", Dst: "b\x00"}, {Src: "a", Dst: "\u009b2J"}, {Src: "a", Dst: "\xff"}} {
		require.ErrorContains(t, tl.AddEdge(e), "want UTF-8 without control characters")
	}
	tl.Alias("a\nb", "c")
	require.ErrorContains(t, tl.AddModel(model.ClockModel{Clock: "a\r", Timeline: "timeline:t"}), "want UTF-8 without control characters")
	for want, m := range map[string]model.ClockModel{
		"got an empty name":          {Timeline: "timeline:t"},
		"got from 2 until 1":         {Clock: "a", Timeline: "timeline:t", From: 2, Until: 1},
		"with bound -1 ns":           {Clock: "a", Timeline: "timeline:t", Bound: -1},
		"got 9223372036854775807 ns": {Clock: "a", Timeline: "timeline:t", Offset: 1<<63 - 1},
		"got drift 0.6":              {Clock: "a", Timeline: "timeline:t", Drift: 0.6},
		`got timeline "x"`:           {Clock: "a", Timeline: "x"},
		"got a name of 257 bytes":    {Clock: strings.Repeat("a", 257), Timeline: "timeline:t"},
		"growth -1":                  {Clock: "a", Timeline: "timeline:t", Growth: -1},
	} {
		require.ErrorContains(t, tl.AddModel(m), want)
	}
	assert.Equal(t, int64(17), tl.Counters().Refused)
	for _, id := range []string{"a", "b"} {
		require.NoError(t, tl.AddModel(model.ClockModel{Clock: id, Timeline: "timeline:t"}))
	}
	require.ErrorContains(t, tl.AddModel(model.ClockModel{Clock: "c", Timeline: "timeline:t"}), "add clock model of c: got clock 3; want at most 2")
	assert.Equal(t, int64(1), tl.Counters().ClocksOverflowed)
}

// Models that one gateway gives out place the clocks of another as its own are.
func TestModelsOfAnotherGateway(t *testing.T) {
	w := cluster(t, 10, 5)
	other := New(Options{Now: w.tl.opt.Now})
	feed := w.tl.Feed()
	defer feed.Close()
	for k := range 30 {
		if k == 10 { // the scale bends, by 500 ppm and in the middle of windows
			for i := range 5 {
				old, begin := w.clocks[realtime(i)], w.now
				w.clocks[realtime(i)] = func(at int64) int64 { return old(at) + min(1, max(0, at-begin))*40_000_000 }
			}
		}
		w.window()
		for _, m := range feed.Take().Models {
			require.NoError(t, other.AddModel(m))
			// Whoever uses the model alone is bounded too, over all of its window.
			for at := w.now - windowN; at <= w.now && m.Clock == raw(3); at += sec / 10 {
				r := w.clocks[raw(3)](at)
				ref := w.place(m.Timeline[len(Prefix):], at)
				require.LessOrEqual(t, distance(m.Time(r), ref.Time), m.BoundAt(r))
			}
		}
		for id, read := range w.clocks {
			if k == 10 && parse(id).realtime {
				continue // it was stepped, which nothing told
			}
			for _, age := range []int64{windowN, 3 * sec / 2, 3 * sec} {
				here := w.contains(id, w.now-age)
				there, ok := other.Place(id, read(w.now-age))
				require.True(t, ok)
				require.Equal(t, here.Timeline, there.Timeline)
				require.True(t, there.Bounded)
				require.LessOrEqual(t, distance(here.Time, there.Time), here.Bound+there.Bound, "%s", id)
			}
		}
	}
	assert.NotEmpty(t, w.models)
	require.NoError(t, w.tl.AddModel(w.models[0]))
	assert.Equal(t, int64(1), w.tl.Counters().ModelsSolvedHere)
}

// Nodes report when they will: every solution has news of some pairs only, windows
// overlap, and a host is silent for a while.
func TestEdgesComeInAnyOrder(t *testing.T) {
	w := cluster(t, 16, 8)
	last := map[string]clock.Placement{}
	for k := range 80 {
		w.now += sec
		var late []model.ClockEdge
		for _, p := range w.pairs {
			silent := k > 30 && k < 50 && (p[0] == raw(3) || p[1] == raw(3))
			switch {
			case silent || w.rng.IntN(2) == 0:
			case w.rng.IntN(4) == 0:
				late = append(late, w.edge(p[0], p[1]))
			default:
				require.NoError(t, w.tl.AddEdge(w.edge(p[0], p[1])))
			}
		}
		w.advance()
		for _, e := range late {
			require.NoError(t, w.tl.AddEdge(e))
		}
		if k < 5 {
			continue // not all clocks are joined yet
		}
		for id := range w.clocks {
			for _, age := range []int64{30 * sec, 10 * sec, 0} {
				if w.now > age {
					w.contains(id, w.now-age)
				}
			}
			p := w.contains(id, w.now)
			if before, ok := last[id]; ok && before.Timeline == p.Timeline {
				require.GreaterOrEqual(t, p.Time, before.Time, id)
			}
			last[id] = p
		}
	}
	assert.Len(t, w.tl.State().Timelines, 1)
	assert.Empty(t, w.findings)
}

// Traces alone: real-time clocks of services that only messages join, which bound and
// do not estimate.
func TestMessagesAlone(t *testing.T) {
	w := newWorld(t, 17, Options{})
	for i, skew := range []int64{0, 3_000_000, -8_000_000} {
		w.clocks["service:"+string(rune('a'+i))+"/realtime"] = linear(epoch+skew, 0)
	}
	ids := []string{"service:a/realtime", "service:b/realtime", "service:c/realtime"}
	for range 10 {
		w.now += windowN
		for i := range 2 {
			e := w.edge(ids[i], ids[i+1])
			truth := w.clocks[ids[i+1]](w.now) - w.clocks[ids[i]](w.now)
			e.Lower, e.Upper, e.Offset, e.Sigma, e.Drift, e.DriftBound = truth-200_000, truth+500_000, 0, 0, 0, 0
			e.Source, e.Stamps = model.EdgeCall, model.StampApplication
			require.NoError(t, w.tl.AddEdge(e))
		}
		w.advance()
	}
	for _, id := range ids {
		p := w.contains(id, w.now-sec)
		// Two hops of 0.7 ms each, and 1000 ppm for a second where nothing tells drifts.
		assert.LessOrEqual(t, p.Bound, int64(4_000_000))
	}
	p := w.contains(ids[2], w.now-sec)
	assert.InDelta(t, 8e6, float64(p.Time-w.clocks[ids[2]](w.now-sec)), 2e6, "to the median, which is a")
}

// A span from the future is placed, and binds nobody.
func TestTheFutureSettlesNothing(t *testing.T) {
	w := cluster(t, 18, 5)
	for range 5 {
		w.window()
	}
	p := w.place(raw(2), w.now+300*sec)
	assert.Positive(t, p.Time)
	old, begin := w.clocks[raw(2)], w.now
	w.clocks[raw(2)] = func(at int64) int64 { return old(at) + max(0, at-begin)*40/1_000_000 }
	for range 20 {
		w.window()
		assert.Less(t, w.contains(raw(2), w.now-sec).Bound, int64(100_000))
	}
}

// After a gap a clock that was slewed is where 1000 ppm can have brought it; farther
// away it was stepped.
func TestStepOrSlewAfterAGap(t *testing.T) {
	for name, tt := range map[string]struct {
		clock string
		jump  int64
		steps int64
	}{
		"slewed":  {"host:a/b/realtime", 10_000_000, 0}, // 500 ppm of 20 s
		"stepped": {"host:a/b/realtime", 30_000_000, 1},
		"raw":     {"host:a/b/raw", 30_000_000, 1}, // nobody sets one, but machines are restored
	} {
		tl := New(Options{})
		m := model.ClockModel{Clock: tt.clock, Timeline: "timeline:x", From: 0, Until: 2 * sec, At: sec, Bound: 1000, Growth: 1e-7}
		require.NoError(t, tl.AddModel(m))
		m.From, m.Until, m.At, m.Offset = 22*sec, 24*sec, 23*sec, tt.jump
		require.NoError(t, tl.AddModel(m))
		assert.Equal(t, tt.steps, tl.State().Clocks[0].Steps, name)
	}
}

// Whoever solves with every batch of spans shortens nobody's history.
func TestSolvingOften(t *testing.T) {
	w := cluster(t, 19, 4)
	for range 10 {
		w.window()
	}
	begin := w.now
	early := map[string]int64{}
	for id := range w.clocks {
		early[id] = w.place(id, begin-sec).Time
	}
	for k := range 500 { // 20 s
		w.now += sec / 25
		p := w.pairs[k%len(w.pairs)]
		require.NoError(t, w.tl.AddEdge(w.edge(p[0], p[1])))
		w.advance()
		if k%25 == 0 {
			for id := range w.clocks {
				w.contains(id, w.now-sec)
			}
		}
	}
	for id := range w.clocks {
		tr := w.tl.tracks[id]
		assert.Less(t, tr.last().windows[0].at, w.clocks[id](begin-sec), id)
		assert.Equal(t, early[id], w.place(id, begin-sec).Time, "what was placed stays")
		w.contains(id, begin-sec)
	}
	assert.Empty(t, w.findings)
}

// What chronyd says joins hosts that nothing else joins, within its bound, and is no
// real-time clock itself.
func TestChronyJoinsHosts(t *testing.T) {
	w := newWorld(t, 50, Options{})
	w.host(0, 5, 200_000)
	w.host(1, -5, -300_000)
	w.clocks["utc:chrony/0A000001"] = linear(epoch, 0)
	for range 10 {
		w.now += windowN
		for _, p := range w.pairs {
			require.NoError(t, w.tl.AddEdge(w.edge(p[0], p[1])))
		}
		for i := range 2 {
			e := w.edge(realtime(i), "utc:chrony/0A000001")
			truth := w.clocks["utc:chrony/0A000001"](w.now) - w.clocks[realtime(i)](w.now)
			e.Lower, e.Upper, e.Offset, e.Sigma, e.Drift, e.DriftBound = truth-2_000_000, truth+2_000_000, truth+100_000, 50_000, 0, 0
			e.Source, e.Stamps = model.EdgeChrony, model.StampUser
			require.NoError(t, w.tl.AddEdge(e))
		}
		w.advance()
	}
	states := w.tl.State().Timelines
	require.Len(t, states, 1)
	assert.Equal(t, 2, states[0].RealtimeClocks)
	a, b := w.contains(raw(0), w.now-sec), w.contains(raw(1), w.now-sec)
	assert.Less(t, distance(a.Time, b.Time), int64(1_000_000))
	assert.Empty(t, w.findings)
}

// TestPlaceAll: readings that are placed together stand where each of them does, before
// and after steps, ahead of what is known and where nothing is.
func TestPlaceAll(t *testing.T) {
	w := cluster(t, 12, 5)
	stepping(w, map[int64]int64{20 * sec: 300e6, 60 * sec: -200e6})
	for range 50 {
		w.window()
	}
	rng := rand.New(rand.NewPCG(12, 1))
	stepped, unknown := 0, 0
	for _, id := range []string{raw(2), realtime(1), realtime(3), "host:other/b1/raw"} {
		var readings []int64
		for range 2000 {
			at := rng.Int64N(w.now + 20*sec)
			if rng.IntN(20) == 0 {
				at -= w.now + 10*60*sec
			}
			reading := at
			if shows := w.clocks[id]; shows != nil {
				reading = shows(at)
			}
			readings = append(readings, reading)
		}
		got := w.tl.PlaceAll(id, readings, nil)
		require.Len(t, got, len(readings))
		for i, r := range readings {
			want, ok := w.tl.Place(id, r)
			require.Equal(t, want, got[i])
			require.Equal(t, ok, got[i].Timeline != "")
			if !ok {
				unknown++
			}
			if want.Stepped {
				stepped++
			}
		}
	}
	assert.Positive(t, stepped)
	assert.Greater(t, unknown, 2000)
}
