// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// undatedHosts adds raw clocks in a ring, none of them beside a real-time clock.
func (w *world) undatedHosts(from, to int) {
	for i := from; i < to; i++ {
		w.clocks[raw(i)] = linear(int64(i)*1e12+7e14, 1)
	}
	w.ring(from, to)
}

// beside lets seconds pass for gateways and for a timeline of one gateway that gets the same edges.
func (g *gateways) beside(alone *Timeline, windows int) {
	g.t.Helper()
	for range windows {
		g.window()
		for _, p := range g.pairs {
			require.NoError(g.t, alone.AddEdge(g.last["edge "+p[0]+" "+p[1]].(model.ClockEdge)))
		}
		alone.Advance(g.world.tl.opt.Now())
	}
}

// Raw clocks without a real-time clock relate to one another, and place no span: a gateway of several does as one gateway
// does, and so does the next that solves. Once a real-time clock is beside one of them, all are placed, also what they read
// before.
func TestShared_RawClocksAlone_PlaceNothingUntilDated(t *testing.T) {
	w := newWorld(t, 7, Options{})
	g := &gateways{world: w, last: map[string]any{}}
	w.undatedHosts(0, 3)
	leader, follower := g.join(), g.join()
	leader.tl.Lead(true)
	alone := New(Options{Now: w.tl.opt.Now})
	g.beside(alone, 15)
	related := func(all ...*Timeline) {
		t.Helper()
		a, b := w.clocks[raw(1)](g.now), w.clocks[raw(2)](g.now)
		for i, tl := range all {
			p, placed := tl.Place(raw(1), a)
			assert.False(t, placed, "timeline %d: %v", i, time.Unix(0, p.Time).UTC())
			_, known := tl.Between(raw(1), a, raw(2), b)
			assert.True(t, known, "timeline %d", i)
		}
	}
	related(alone, leader.tl, follower.tl)
	g.leave(leader)
	follower.tl.Lead(true)
	third := g.join()
	g.beside(alone, 5)
	related(alone, follower.tl, third.tl)
	require.NotEmpty(t, follower.models)
	for i := range follower.models {
		m := &follower.models[i]
		require.True(t, m.Undated, m.Clock)
		require.Equal(t, leader.models[0].Timeline, m.Timeline, "the timeline goes on under its name")
	}
	for _, c := range third.tl.State().Clocks {
		assert.False(t, c.Stale, c.Model.Clock)
		assert.Less(t, c.BoundNow, sec, c.Model.Clock)
	}

	before := g.now
	w.clocks[realtime(1)] = linear(epoch, 1)
	w.join(raw(1), realtime(1), model.EdgePair)
	g.windows(15)
	for _, n := range g.all {
		for _, at := range []int64{before, g.now - sec} {
			p, placed := n.tl.Place(raw(2), w.clocks[raw(2)](at))
			require.True(t, placed)
			assert.Less(t, distance(p.Time, epoch+at), int64(100*time.Millisecond))
		}
		_, known := n.tl.Between(raw(1), w.clocks[raw(1)](before), realtime(1), w.clocks[realtime(1)](g.now-sec))
		assert.True(t, known)
	}
}

// Two hosts have no real-time clock on the timeline, and the others have. Times of the two scales have different origins:
// the models of the one do not make those of the other old.
func TestShared_RawClocksBesideOthers_AreRelated(t *testing.T) {
	g := newGateways(t)
	g.undatedHosts(5, 8)
	leader, follower := g.join(), g.join()
	leader.tl.Lead(true)
	alone := New(Options{Now: g.tl.opt.Now})
	g.beside(alone, 15)
	a, b := g.clocks[raw(5)](g.now), g.clocks[raw(6)](g.now)
	for i, tl := range []*Timeline{alone, leader.tl, follower.tl} {
		_, known := tl.Between(raw(5), a, raw(6), b)
		assert.True(t, known, "timeline %d", i)
		_, known = tl.Between(raw(5), a, raw(1), g.clocks[raw(1)](g.now))
		assert.False(t, known, "timeline %d: on two scales", i)
		_, placed := tl.Place(raw(5), a)
		assert.False(t, placed, "timeline %d", i)
		_, placed = tl.Place(raw(1), g.clocks[raw(1)](g.now))
		assert.True(t, placed, "timeline %d", i)
	}
	assert.Zero(t, follower.tl.Counters().ModelsOld)

	third := g.join()
	g.leave(leader)
	third.tl.Lead(true)
	g.windows(5)
	require.NotEmpty(t, third.models)
	_, known := follower.tl.Between(raw(5), g.clocks[raw(5)](g.now), raw(6), g.clocks[raw(6)](g.now))
	assert.True(t, known, "by the gateway that took over")
}

// An undated model of long ago is old by those of its own timeline.
func TestShared_OldUndatedModels_AreLeftOut(t *testing.T) {
	g := newGateways(t)
	n := g.join()
	add := func(clock string, until int64) {
		require.NoError(t, n.tl.AddModel(model.ClockModel{
			Clock: clock, Timeline: Prefix + raw(0), From: until - sec, Until: until, At: until, Bound: 1000, Undated: true,
		}))
	}
	day := (24 * time.Hour).Nanoseconds()
	add(raw(1), 3*day)
	add(raw(2), 3*day-(11*time.Minute).Nanoseconds())
	add(raw(3), 3*day-sec)
	add(raw(3), 3*day-(2*time.Minute).Nanoseconds())
	assert.EqualValues(t, 2, n.tl.Counters().ModelsOld)
	_, known := n.tl.Between(raw(1), 3*day, raw(2), 3*day)
	assert.False(t, known)
	_, known = n.tl.Between(raw(1), 3*day, raw(3), 3*day)
	assert.True(t, known)
}

// A gateway that does not share its timeline, and reads models of another one, places nothing by undated models either.
// One timeline before and after it was dated is two scales.
func TestAddModel_Undated_RelatesAndPlacesNothing(t *testing.T) {
	w := newWorld(t, 1, Options{})
	add := func(clock string, offset int64, undated bool) {
		require.NoError(t, w.tl.AddModel(model.ClockModel{
			Clock: clock, Timeline: Prefix + raw(0), From: 0, Until: sec, At: 0, Offset: offset, Bound: 1000, Undated: undated,
		}))
	}
	add(raw(0), 0, true)
	add(raw(1), 5*sec, true)
	check := func(id string, placed bool, with string, known bool) {
		t.Helper()
		_, ok := w.tl.Place(id, sec)
		assert.Equal(t, placed, ok, id)
		_, ok = w.tl.Between(id, sec, with, sec)
		assert.Equal(t, known, ok, "%s and %s", id, with)
	}
	check(raw(0), false, raw(1), true)
	data, err := w.tl.Snapshot()
	require.NoError(t, err)

	add(raw(0), epoch, false)
	check(raw(0), true, raw(1), false)
	check(raw(1), false, raw(0), false)
	add(raw(1), epoch+5*sec, false)
	check(raw(1), true, raw(0), true)
	p, _ := w.tl.Place(raw(1), sec/2)
	assert.Equal(t, epoch+5*sec+sec/2, p.Time, "also a reading that was compared before")

	both, err := w.tl.Snapshot()
	require.NoError(t, err)
	require.NoError(t, w.tl.Restore(both))
	check(raw(1), true, raw(0), true)
	require.NoError(t, w.tl.Restore(data))
	check(raw(0), false, raw(1), true)
	for _, s := range w.tl.State().Timelines {
		assert.Equal(t, ScaleState{Name: Prefix + raw(0), Reference: Prefix + raw(0), Foreign: true, Clocks: 2}, s)
	}
}

// A clock whose last model is from before its timeline had a date is not taken over onto the dated scale.
func TestTakeOver_ClockOnTheUndatedScale_IsLeftOut(t *testing.T) {
	g := newGateways(t)
	n := g.begin()
	add := func(clock string, until int64, undated bool) {
		require.NoError(t, n.tl.AddModel(model.ClockModel{
			Clock: clock, Timeline: Prefix + raw(0), From: until - sec, Until: until, At: until, Offset: 1000, Bound: 1000, Undated: undated,
		}))
	}
	add(raw(0), epoch, false)
	add(raw(1), 5*sec, true)
	add(raw(2), epoch, false)
	solver := n.tl.takeOver()
	assert.NotNil(t, solver.tracks[raw(0)])
	assert.NotNil(t, solver.tracks[raw(2)])
	assert.Nil(t, solver.tracks[raw(1)])
}

// A solution without a date is dropped once another gateway has dated the timeline, wherever the raw clocks begin. One with
// a date is not dropped for an undated one.
func TestPassed_DatedModels_TakeTheTimelineOver(t *testing.T) {
	far := epoch + 1e18
	for _, undated := range []bool{false, true} {
		g := newGateways(t)
		if undated {
			g = &gateways{world: newWorld(t, 7, Options{}), last: map[string]any{}}
			for i := range 3 {
				g.clocks[raw(i)] = linear(far, float64(i))
			}
			g.ring(0, 3)
		}
		n := g.join()
		n.tl.Lead(true)
		g.windows(5)
		require.NotEmpty(t, n.models)
		m := n.models[0]
		require.Equal(t, undated, m.Undated)
		m.Undated, m.Offset = !undated, -m.At+epoch+g.now
		if m.Undated {
			m.Offset = far - m.At
		}
		require.NoError(t, n.tl.AddModel(m))
		assert.Equal(t, !undated, n.tl.Leads())
	}
}

// A leader that was paused writes one undated solution after another gateway has dated the timeline.
func TestAddModel_LateUndatedModel_DoesNotTakeTheDateAway(t *testing.T) {
	g := newGateways(t)
	n := g.join()
	add := func(clock string, from, until, offset int64, undated bool) {
		require.NoError(t, n.tl.AddModel(model.ClockModel{
			Clock: clock, Timeline: Prefix + raw(0), From: from, Until: until, At: until, Offset: offset, Bound: 1000, Undated: undated,
		}))
	}
	base := 100 * sec
	for i := range 2 {
		add(raw(i), base, base+sec, 1000, true)
	}
	for i := range 2 {
		add(raw(i), base+4*sec, base+5*sec, g.now+epoch-base-5*sec, false)
	}
	for _, at := range []int64{base + 5*sec, base + 8*sec} {
		_, ok := n.tl.Place(raw(1), at)
		require.True(t, ok)
	}
	add(raw(1), base+sec, base+2*sec, 1000, true) // older than the dated one by three seconds
	for _, at := range []int64{base + 5*sec, base + 8*sec, base + 12*sec} {
		_, ok := n.tl.Place(raw(1), at)
		assert.True(t, ok, "the clock was dated: %d", at/sec)
	}
	add(raw(1), base+9*sec, base+10*sec, g.now+epoch-base-5*sec, false)
	_, ok := n.tl.Place(raw(1), base+12*sec)
	assert.True(t, ok)
}
