// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// endsAt brings operations of a rank that were over at these times, on a communicator.
func (p *plant) endsAt(rank int, comm string, ends ...time.Time) {
	ops := model.RankOps{Rank: p.ranks[rank].rank}
	for _, end := range ends {
		ops.Ops = append(ops.Ops, model.Op{
			Kind: model.KindCollective, Name: model.AllReduce, Start: end.UnixNano() - 1000, End: end.UnixNano(),
			Comm: model.Comm{ID: comm}, Collective: model.Collective{Name: model.AllReduce, SeqScope: model.ScopeCommFunc},
		})
	}
	p.w.AddOps(&ops, p.now)
}

// A clock is followed at once where what came before may have come late, and else where three
// times in a row say so, over 3 s or more.
func TestHostClock(t *testing.T) {
	type heard struct {
		at, d int // seconds: when it came, and how far it was ahead
		set   bool
	}
	for name, c := range map[string]struct {
		heard []heard
		ahead int
	}{
		"late, then in time":         {[]heard{{0, -60, false}, {1, -1, true}}, -1},
		"a batch that is late":       {[]heard{{0, 0, false}, {1, -60, false}, {2, 0, false}}, 0},
		"one ahead":                  {[]heard{{0, 0, false}, {1, 3600, false}, {2, 0, false}}, 0},
		"three ahead, at once":       {[]heard{{0, 0, false}, {1, 3600, false}, {1, 3600, false}, {2, 3600, false}}, 0},
		"two ahead, over long":       {[]heard{{0, 0, false}, {1, 3600, false}, {9, 3600, false}}, 0},
		"set forward":                {[]heard{{0, 0, false}, {1, 3600, false}, {2, 3601, false}, {4, 3600, true}}, 3600},
		"set back":                   {[]heard{{0, 0, false}, {1, -3600, false}, {2, -3601, false}, {4, -3600, true}}, -3600},
		"ahead, of no one clock":     {[]heard{{0, 0, false}, {1, 3600, false}, {2, 4600, false}, {4, 5600, false}, {9, 6600, false}}, 0},
		"set back, with one between": {[]heard{{0, 0, false}, {1, -3600, false}, {2, 0, false}, {3, -3600, false}, {4, -3600, false}}, 0},
	} {
		var clock hostClock
		for i, h := range c.heard {
			now := time.Unix(1_760_000_000+int64(h.at), 0)
			assert.Equal(t, h.set, clock.hear(now.Add(time.Duration(h.d)*time.Second).UnixNano(), now), "%s: %d", name, i)
		}
		assert.Equal(t, time.Duration(c.ahead)*time.Second, clock.ahead, name)
	}
}

// One damaged time does not blind the watch: neither of the communicator that hangs, nor of
// another, nor before anything else was heard of the rank.
func TestOneTimeADayAhead(t *testing.T) {
	for _, comm := range []string{"0xabc", "0xother"} {
		for _, before := range []time.Duration{0, 30 * time.Second} {
			p := newPlant(t, 4, 100*time.Millisecond)
			p.run(before)
			p.endsAt(1, comm, p.now.Add(24*time.Hour))
			p.run(30 * time.Second)
			p.ranks[1].stuck = true
			since := p.now
			p.run(time.Minute)
			f := p.only()
			assert.Equal(t, model.Some(int64(1)), f.Rank, "%s after %s", comm, before)
			assert.Less(t, p.told(since), 10*time.Second)
			if before > 0 {
				assert.Equal(t, int64(1), p.w.Stats().TimesAhead)
			}
		}
	}
}

// It closes nothing either: the rank that hangs has completed nothing.
func TestATimeAheadDuringTheHang(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(30 * time.Second)
	p.ranks[1].stuck = true
	p.run(20 * time.Second)
	p.endsAt(0, "0xabc", p.now.Add(24*time.Hour))
	p.run(time.Minute)
	p.only()
	assert.Len(t, p.w.Standing(), 1)
}

// A clock that is set, by an hour and in either direction, as the hang begins, before it, or
// during it: it is found all the same, and stays.
func TestAClockThatIsSet(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour, -7 * time.Second} {
		for _, wait := range []time.Duration{0, 5 * time.Second, 20 * time.Second} {
			for _, earlier := range []bool{false, true} {
				p := newPlant(t, 4, 100*time.Millisecond)
				p.run(30 * time.Second)
				if earlier {
					p.setClock(by)
					p.run(wait)
				}
				p.ranks[1].stuck = true
				since := p.now
				if !earlier {
					p.run(wait)
					p.setClock(by)
				}
				p.run(200 * time.Second)
				require.Len(t, p.w.Standing(), 1, "%v after %v", by, wait)
				f := p.only()
				assert.Equal(t, model.Some(int64(1)), f.Rank)
				assert.Less(t, p.told(since), 20*time.Second, "%v after %v", by, wait)
			}
		}
	}
}

// Of operations that do not end is told every 30 s alone: three in a row take a minute.
func TestAClockThatIsSetWhileOperationsAreOpen(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		p := newPlant(t, 4, 100*time.Millisecond)
		p.opens = true
		p.run(30 * time.Second)
		p.ranks[1].stuck = true
		p.setClock(by)
		since := p.now
		p.run(200 * time.Second)
		require.Len(t, p.w.Standing(), 1, by)
		assert.Equal(t, model.Some(int64(1)), p.only().Rank)
		assert.Less(t, p.told(since), 100*time.Second, by)
	}
}

// One that works is told nothing of, however its clocks are set.
func TestClocksOfAJobThatWorks(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour, -7 * time.Second, 7 * time.Second} {
		p := newPlant(t, 4, 1500*time.Millisecond)
		p.run(10 * time.Minute)
		for i := range p.ranks {
			p.ranks[i].clock = time.Duration(i) * by
			p.run(time.Minute)
		}
		p.setClock(0)
		p.run(time.Minute)
		assert.Empty(t, p.findings, by)
		for _, l := range p.w.Limits() {
			assert.Less(t, l.Limit, time.Minute, "a clock that is set is no pause: %v", by)
		}
	}
}

// A clock that is set back as the hang begins, in a job whose states were told of before.
func TestAClockThatIsSetBackAfterAPause(t *testing.T) {
	p := newPlant(t, 4, time.Second)
	p.run(5 * time.Minute)
	p.ranks[2].busy = p.now.Add(5 * time.Second)
	p.run(time.Minute)
	require.Empty(t, p.findings)
	require.NotEmpty(t, p.w.jobs[jobKey{"job", "life"}].ranks[0].states)
	p.setClock(-time.Hour)
	p.ranks[1].stuck = true
	p.run(200 * time.Second)
	require.Len(t, p.w.Standing(), 1)
	assert.Equal(t, model.Some(int64(1)), p.only().Rank)
}

// Who is heard of by states that do not count, and by nothing else, does not go on.
func TestStatesThatDoNotCountAreNoProgress(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(30 * time.Second)
	r := p.w.jobs[jobKey{"job", "life"}].ranks[1]
	require.True(t, p.w.goesOn(r, p.now))
	for i := range 20 {
		p.now = p.now.Add(time.Second)
		s := still(1, p.now.Add(time.Duration(-i-1)*time.Minute).UnixNano(), true)
		s.Rank = p.ranks[1].rank
		p.w.AddState(s, p.now)
	}
	assert.False(t, p.w.goesOn(r, p.now))
	p.w.AddOpen(&p.ranks[1].rank, &model.OpenOp{Status: model.StatusClosed, Time: p.now.UnixNano()}, p.now)
	assert.False(t, p.w.goesOn(r, p.now), "who tells its state tells of operations by it")
	p.endsAt(1, "0xabc", p.now)
	assert.True(t, p.w.goesOn(r, p.now))
}

// An operation that has ended at last is progress of who tells no state.
func TestTheEndOfAnOpenOperationIsProgress(t *testing.T) {
	w, now := New(NewDefaultConfig()), time.Unix(1_760_000_000, 0)
	of := &model.Rank{JobID: "job", Incarnation: "life"}
	o := openAt(1, now)
	w.AddOpen(of, o, now)
	r := w.jobs[jobKey{"job", "life"}].ranks[0]
	assert.False(t, w.goesOn(r, now))
	o.Status = model.StatusClosed
	w.AddOpen(of, o, now)
	assert.True(t, w.goesOn(r, now))
}

// A dump of another incident is taken though the clock was set back since that of the former.
func TestADumpOfBeforeTheFormer(t *testing.T) {
	w, now := New(NewDefaultConfig()), time.Unix(1_760_000_000, 0)
	dump := func() *model.RankState {
		s := still(0, now.UnixNano(), true)
		s.Source = model.StateFlightRecorder
		return s
	}
	first := dump()
	w.AddState(first, now)
	second := dump()
	second.Time -= int64(time.Hour)
	w.AddState(second, now.Add(w.patience()))
	r := w.jobs[jobKey{"job", "life"}].ranks[0]
	assert.Same(t, first, r.states[model.StateFlightRecorder].state, "of one incident")
	w.AddState(second, now.Add(w.patience()+time.Second))
	assert.Same(t, second, r.states[model.StateFlightRecorder].state)
}

// Records that are played back faster than they were made are of no clock, and none is refused.
func TestRecordsArePlayedBack(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	for i := range 1000 {
		p.now = p.now.Add(tickEvery)
		at := p.now.Add(time.Duration(i)*time.Minute - 24*time.Hour)
		p.endsAt(1, "0xabc", at.Add(-50*time.Second), at.Add(-20*time.Second), at)
	}
	assert.Zero(t, p.w.Stats().TimesAhead)
	assert.Equal(t, p.now.Add(999*time.Minute-24*time.Hour).UnixNano(), p.w.jobs[jobKey{"job", "life"}].ranks[1].completed)
}

// What comes by a slower way is no clock that was set, alternating with another or alone.
func TestTwoWaysOfOneClock(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	for i := range 100 {
		p.now = p.now.Add(time.Second)
		p.endsAt(1, "slow", p.now.Add(-30*time.Second))
		if i < 50 {
			p.endsAt(1, "fast", p.now)
		}
		r := p.w.jobs[jobKey{"job", "life"}].ranks[1]
		assert.LessOrEqual(t, p.now.UnixNano()-r.completed, int64(31*time.Second))
		if i < 50 {
			assert.Equal(t, p.now.UnixNano(), r.completed)
		}
	}
	assert.Zero(t, p.w.Stats().TimesAhead)
}

// setClock sets the clocks of all hosts.
func (p *plant) setClock(by time.Duration) {
	for _, r := range p.ranks {
		r.clock = by
	}
}
