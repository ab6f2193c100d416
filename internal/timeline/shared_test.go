// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// gateways are timelines that exchange edges and models by a log that is compacted.
type gateways struct {
	*world
	last  map[string]any // the last record of each key
	order []string
	all   []*gateway
}

type gateway struct {
	of     *gateways
	tl     *Timeline
	feed   *Feed
	models []model.ClockModel // that it wrote
}

func newGateways(t *testing.T) *gateways {
	t.Helper()
	w := newWorld(t, 7, Options{})
	for i := range 5 {
		w.host(i, float64(3*i-6), int64(i-2)*100_000)
	}
	w.ring(0, 5)
	return &gateways{world: w, last: map[string]any{}}
}

// join starts a gateway that reads what the log has.
func (g *gateways) join() *gateway {
	n := g.begin()
	n.catchUp()
	g.all = append(g.all, n)
	return n
}

// begin starts a gateway that has read nothing.
func (g *gateways) begin() *gateway {
	n := &gateway{of: g, tl: New(Options{Shared: true, Now: g.world.tl.opt.Now})}
	n.feed = n.tl.Feed()
	return n
}

// catchUp reads what the log has.
func (n *gateway) catchUp() {
	for _, key := range n.of.order {
		n.take(n.of.last[key])
	}
	n.tl.CaughtUp()
}

func (n *gateway) take(record any) {
	switch r := record.(type) {
	case model.ClockEdge:
		require.NoError(n.of.t, n.tl.AddEdge(r))
	case model.ClockModel:
		require.NoError(n.of.t, n.tl.AddModel(r))
	}
}

func (g *gateways) leave(n *gateway) {
	for i := range g.all {
		if g.all[i] == n {
			g.all = append(g.all[:i], g.all[i+1:]...)
			return
		}
	}
}

// write adds a record to the log, which all gateways read.
func (g *gateways) write(key string, record any) {
	if _, known := g.last[key]; !known {
		g.order = append(g.order, key)
	}
	g.last[key] = record
	for _, n := range g.all {
		n.take(record)
	}
}

// window lets two seconds pass: nodes write edges, the leader solves, all others follow.
func (g *gateways) window() {
	g.now += windowN
	for _, p := range g.pairs {
		e := g.edge(p[0], p[1])
		g.write("edge "+e.Src+" "+e.Dst, e)
	}
	for _, n := range g.all {
		n.tl.Advance(g.tl.opt.Now())
	}
	for _, n := range g.all {
		out := n.feed.Take()
		n.models = append(n.models, out.Models...)
		for _, m := range out.Models {
			g.write("model "+m.Clock, m)
		}
	}
}

func (g *gateways) windows(n int) {
	for range n {
		g.window()
	}
}

// slew has all real-time clocks gain from now on, and returns when that is.
func (g *gateways) slew(ppm int64) int64 {
	from := g.now
	for i := range 5 {
		before := g.clocks[realtime(i)]
		g.clocks[realtime(i)] = func(at int64) int64 { return before(at) + max(0, at-from)*ppm/1_000_000 }
	}
	return from
}

// agree checks that all gateways place what all clocks read at a moment alike, and returns by how much they differ at
// most.
func (g *gateways) agree(at int64, alsoBefore ...map[string]clock.Placement) (most int64) {
	g.t.Helper()
	for id, reads := range g.clocks {
		var first clock.Placement
		for i, n := range g.all {
			p, ok := n.tl.Place(id, reads(at))
			require.True(g.t, ok, "gateway %d: %s", i, id)
			require.True(g.t, p.Bounded, id)
			if i == 0 {
				first = p
			}
			g.meet(first, p, func() string { return fmt.Sprintf("gateways 0 and %d, %s at %v", i, id, time.Duration(at)) })
			most = max(most, distance(first.Time, p.Time))
			for _, before := range alsoBefore {
				g.meet(before[id], p, func() string { return fmt.Sprintf("before and gateway %d, %s at %v", i, id, time.Duration(at)) })
			}
		}
	}
	return most
}

func (n *gateway) placed(at int64) map[string]clock.Placement {
	out := map[string]clock.Placement{}
	for id, reads := range n.of.clocks {
		out[id], _ = n.tl.Place(id, reads(at))
	}
	return out
}

// The leader is killed, another one leads, and one comes that has nothing but the last record of each key. All place
// alike: also what the first has placed before its end.
func TestShared_LeaderIsKilled_AllGatewaysAgree(t *testing.T) {
	g := newGateways(t)
	first, second := g.join(), g.join()
	first.tl.Lead(true)
	g.windows(15)
	g.slew(200)
	g.windows(10) // the scale is behind the median, and a gateway that sets it anew puts it elsewhere
	require.NotEmpty(t, first.models)
	assert.Empty(t, second.models, "one gateway solves")
	most := g.agree(g.now - 3*sec)
	killed := g.now
	before := first.placed(killed)

	g.leave(first)
	g.windows(5) // no gateway leads: bounds grow
	g.agree(g.now - 3*sec)
	second.tl.Lead(true)
	third := g.join()
	g.windows(3)
	require.NotEmpty(t, second.models)
	for id, p := range first.placed(g.now) {
		q, _ := second.tl.Place(id, g.clocks[id](g.now))
		g.meet(p, q, func() string { return id + ": the timeline goes on from the last models of the first leader" })
	}
	g.windows(12)
	assert.Equal(t, first.models[0].Timeline, second.models[0].Timeline, "the timeline goes on under its name")
	most = max(most, g.agree(g.now-3*sec), g.agree(killed, before))

	// The second pauses, the third leads, and the second goes on as if it still did.
	g.leave(second)
	third.tl.Lead(true)
	g.windows(15)
	g.all = append(g.all, second)
	for _, key := range g.order {
		second.take(g.last[key])
	}
	for range 10 {
		g.window()
		most = max(most, g.agree(g.now-3*sec))
	}
	t.Logf("gateways differ by %v at most", time.Duration(most))
}

// A gateway leads before it has read the models of the leader before, since the log was slow. It solves nothing without
// them, although edges come, and then goes on from them: what was placed before stays where it is.
func TestShared_LeadsBeforeItCaughtUp_GoesOnFromLateModels(t *testing.T) {
	g := newGateways(t)
	first := g.join()
	first.tl.Lead(true)
	g.windows(15)
	g.slew(200)
	g.windows(20) // the scale is milliseconds behind the median
	killed, before := g.now, first.placed(g.now)
	g.leave(first)
	n := g.begin()
	n.tl.Lead(true)
	g.all = append(g.all, n)
	g.windows(4)
	assert.Empty(t, n.models)
	assert.False(t, n.tl.Leads())
	n.catchUp()
	g.windows(10)
	require.NotEmpty(t, n.models)
	g.agree(killed, before)
}

// Time services turn the median, so that the leader's scale does, after its last model. What others extrapolate stays
// within what they say of it.
func TestShared_ScaleTurns_FollowersAreBounded(t *testing.T) {
	g := newGateways(t)
	leader, follower := g.join(), g.join()
	leader.tl.Lead(true)
	g.windows(20)
	turned := g.slew(200)
	var away, worst int64
	for range 200 {
		// The follower misses models for some seconds.
		g.all = []*gateway{leader}
		kept := g.now
		g.windows(3)
		was := follower.placed(g.now)
		g.all = []*gateway{leader, follower}
		for id, p := range leader.placed(g.now) {
			g.meet(p, was[id], func() string {
				return fmt.Sprintf("%s %v after the turn, %v late", id, time.Duration(kept-turned), time.Duration(g.now-kept))
			})
		}
		g.window()
		g.agree(g.now - sec)
		// The median clock is right but for its slew.
		away = distance(follower.placed(g.now)[realtime(2)].Time, epoch+g.now+(g.now-turned)*200/1_000_000)
		worst = max(worst, away)
	}
	assert.InDelta(t, 20, time.Duration(worst).Seconds()*1e3, 1, "ms: 200 s, with half of 200 ppm in the mean")
	assert.Less(t, away, int64(2*time.Millisecond), "the scale has come to the median again")
	t.Logf("the timeline is %v off the median at most, and %v after %v", time.Duration(worst), time.Duration(away), time.Duration(g.now-turned))
}

// A clock that was observed long ago is not known, whenever its model is read, and in whatever order.
func TestShared_OldModels_AreLeftOut(t *testing.T) {
	g := newGateways(t)
	n := g.join()
	of := func(boot string, age time.Duration) model.ClockModel {
		at := epoch - age.Nanoseconds()
		return model.ClockModel{Clock: "host:h/" + boot + "/realtime", Timeline: Prefix + raw(0), From: at - sec, Until: at, At: at, Bound: 1000}
	}
	require.NoError(t, n.tl.AddModel(of("old", 11*time.Minute)))
	require.NoError(t, n.tl.AddModel(of("b2", time.Second)))
	require.NoError(t, n.tl.AddModel(of("b1", 5*time.Minute)))
	require.NoError(t, n.tl.AddModel(of("older", 20*time.Minute)))
	n.tl.Advance(n.tl.opt.Now())
	for boot, want := range map[string]bool{"old": false, "older": false, "b1": true, "b2": true} {
		_, ok := n.tl.Place("host:h/"+boot+"/realtime", epoch-sec)
		assert.Equal(t, want, ok, boot)
	}
	id, ok := n.tl.Resolve("h")
	assert.True(t, ok)
	assert.Equal(t, "host:h/b2/realtime", id, "spans without a boot are of the newest")
	p, _ := n.tl.Place("host:h/b1/realtime", epoch)
	assert.Greater(t, p.Bound, int64(150*time.Millisecond), "5 minutes at 500 ppm")

	late := of("b2", time.Minute)
	late.Offset = 5_000
	require.NoError(t, n.tl.AddModel(late))
	p, _ = n.tl.Place("host:h/b2/realtime", epoch)
	assert.Equal(t, epoch, p.Time, "an older model of a clock changes nothing")
	assert.Positive(t, n.tl.Counters().ModelsOld)
}

// What a gateway observes itself counts for all, and only once all have it.
func TestShared_OwnEdges_GoToAllGateways(t *testing.T) {
	g := newGateways(t)
	n := g.join()
	g.now += windowN
	e := g.edge(raw(0), raw(1))
	require.NoError(t, n.tl.Observe(e))
	assert.Equal(t, []model.ClockEdge{e}, n.feed.Take().Edges)
	assert.Empty(t, n.feed.Take().Edges)
	assert.Zero(t, n.tl.shared.edges.Len())
	require.NoError(t, n.tl.AddEdge(e))
	assert.Equal(t, 1, n.tl.shared.edges.Len())
	require.Error(t, n.tl.Observe(model.ClockEdge{Src: "a", Dst: "a"}))
	for range maxEdgesWaiting + 5 {
		require.NoError(t, n.tl.Observe(e))
	}
	assert.Len(t, n.feed.Take().Edges, maxEdgesWaiting)
	assert.EqualValues(t, 5, n.tl.Counters().FindingsOverflowed)
}

// A real-time clock stands by its raw clock at gateways that do not solve, too.
func TestShared_PromptReadings_CountAtFollowers(t *testing.T) {
	g := newGateways(t)
	leader, follower := g.join(), g.join()
	leader.tl.Lead(true)
	g.windows(20)
	g.now += windowN
	wide, _ := follower.tl.Place(realtime(1), g.clocks[realtime(1)](g.now-sec/2))
	e := g.edge(raw(1), realtime(1))
	e.Prompt = true
	g.write("prompt", e)
	p, ok := follower.tl.Place(realtime(1), g.clocks[realtime(1)](g.now-sec/2))
	require.True(t, ok)
	assert.Less(t, p.Bound, wide.Bound/10)
	assert.Positive(t, follower.tl.Counters().PairsTaken)
	g.agree(g.now - sec/2)
}

// What others allow for a scale that they extrapolate.
func TestTurned_SinceTheLastWindow_GrowsWithItsSquare(t *testing.T) {
	s := &scale{foreign: true, turn: maxTurn}
	for since, want := range map[int64]time.Duration{-1: 0, 3 * sec: 16_500, 10 * sec: 90 * time.Microsecond, 1e15: 1e12} {
		assert.InDelta(t, want, s.turned(since), 1+float64(want)*1e-9, time.Duration(since))
	}
	assert.Zero(t, (&scale{foreign: true}).turned(3*sec), "a gateway with a timeline of its own allows for nothing")
}

func TestRestsOn_Names_AreRead(t *testing.T) {
	for name, want := range map[string]struct {
		clock string
		epoch int
	}{
		Prefix + "host:a/b/raw":           {"host:a/b/raw", 0},
		Prefix + "host:a/b/raw#2":         {"host:a/b/raw", 1},
		Prefix + "host:a#3/b/raw":         {"host:a#3/b/raw", 0},
		Prefix + "a#99999999999999999999": {"a#99999999999999999999", 0},
		Prefix + "a#1":                    {"a#1", 0},
		Prefix + "a#":                     {"a#", 0},
	} {
		clock, epoch := restsOn(name)
		assert.Equal(t, want.clock, clock, name)
		assert.Equal(t, want.epoch, epoch, name)
	}
}

// Whatever models the log has, a gateway that begins to lead goes on from those that it can use, and places all clocks
// in the order of their readings.
func FuzzTakeOver(f *testing.F) {
	f.Add(int64(0), int64(0), int64(1e-6*1e15), int64(1000), int64(1e9), int64(0), "#2")
	f.Add(int64(-1<<61), int64(1<<61), int64(-4e14), int64(-1), int64(-1e9), int64(1<<61), "#")
	f.Add(int64(1e9), int64(-1e9), int64(5e14), int64(math.MaxInt64), int64(1e18), int64(5), "/x#9999999999")
	f.Fuzz(func(t *testing.T, from, offset, drift, bound, until, at int64, suffix string) {
		now := epoch
		tl := New(Options{Shared: true, Now: func() time.Time { return time.Unix(0, now) }})
		for i := range 3 {
			for _, id := range []string{raw(i), realtime(i)} {
				m := model.ClockModel{Clock: id, Timeline: Prefix + raw(0), From: epoch - sec, Until: epoch, At: epoch, Bound: 1000, Sigma: 1}
				if i > 0 {
					m = model.ClockModel{
						Clock: id, Timeline: Prefix + raw(i-1) + suffix, From: epoch + from, Until: epoch + until, At: epoch + at,
						Offset: offset, Drift: float64(drift) / 1e15, Bound: bound, Growth: 1e-9, Untrusted: bound%5 == 0, Undated: bound%7 == 0,
					}
				}
				_ = tl.AddModel(m) // refused or not
			}
		}
		tl.CaughtUp()
		tl.Lead(true)
		for range 4 {
			now += 3 * sec
			for i := range 2 {
				_ = tl.AddEdge(model.ClockEdge{
					Src: raw(i), Dst: raw(i + 1), At: now - sec, Span: sec, Lower: offset/2 - 10, Upper: offset/2 + 10, Source: model.EdgeProbe, Stamps: model.StampUser,
				})
			}
			for _, m := range tl.Advance(time.Unix(0, now)).Models {
				_ = tl.AddModel(m)
			}
		}
		if max(distance(from, 0), distance(offset, 0), distance(until, 0), distance(at, 0)) > 1<<50 {
			return // floats have no ns any more
		}
		for _, c := range tl.State().Clocks {
			last := int64(math.MinInt64)
			for d := range int64(10) {
				if p, ok := tl.Place(c.Model.Clock, c.Model.Until+d); ok && !p.Untrusted {
					if p.Time < last {
						t.Fatalf("%s: %d after %d", c.Model.Clock, p.Time, last)
					}
					last = p.Time
				}
			}
		}
	})
}

// The gateway that solves shows what its solution does, and the others which clocks they know.
func TestShared_State_ShowsTheSolutionWhereItIs(t *testing.T) {
	g := newGateways(t)
	leads, follows := g.join(), g.join()
	assert.False(t, leads.tl.Unasked(g.tl.opt.Now(), time.Minute), "it has just read all")
	leads.tl.Lead(true)
	g.windows(10)
	of := leads.tl.State()
	require.Len(t, of.Timelines, 1)
	assert.Equal(t, len(g.clocks), of.Timelines[0].Clocks)
	assert.Equal(t, len(g.pairs), of.Timelines[0].Edges)
	assert.False(t, of.Timelines[0].Foreign)
	for _, c := range of.Clocks {
		assert.False(t, c.Foreign, c.Model.Clock)
		assert.Positive(t, c.Neighbours, c.Model.Clock)
	}
	of = follows.tl.State()
	require.Len(t, of.Timelines, 1)
	assert.Equal(t, len(g.clocks), of.Timelines[0].Clocks)
	assert.True(t, of.Timelines[0].Foreign)
	now := g.tl.opt.Now()
	assert.False(t, leads.tl.Unasked(now, time.Second))
	assert.True(t, follows.tl.Unasked(now, time.Second))
	assert.False(t, follows.tl.Unasked(now, time.Hour))
	leads.tl.Lead(false)
	assert.True(t, leads.tl.State().Timelines[0].Foreign)
}
