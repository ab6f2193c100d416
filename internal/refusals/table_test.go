// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"context"
	"errors"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

const (
	// patience is how long a test waits for what takes some intervals.
	patience = 30 * time.Second
	// calm is how long nothing new comes of a source that has given everything.
	calm = 15 * every
	// leaves is the deadline of a Shutdown whose next component does not return: long enough for a machine
	// that stalls to count what it drops.
	leaves = 2 * time.Second
	// refusals is how many calls are refused by a next component that takes what comes then.
	refusals = 3
)

var errShort = errors.New("memory is short")

// mode is a way in which a next component does not take what it is given.
type mode struct {
	name string
	make func(t *testing.T) *next
	// never: it takes nothing, ever.
	never bool
	// late: it may take what it was given before, while the component does not wait any more.
	late bool
	// busy: it may refuse, at the end, a state that is sent once more.
	busy bool
}

// next is a next component, and what it takes.
type next struct {
	delivertest.Consumer
	taken   *delivertest.Next
	entered <-chan struct{} // of one that does not return
	stop    func()          // ends it, behind the component
}

func answering(answer delivertest.Answer) func(*testing.T) *next {
	return func(*testing.T) *next {
		n := delivertest.NewNext(answer)
		return &next{Consumer: n, taken: n, stop: func() {}}
	}
}

// modes are all of them: those that refuse for a while refuse so many calls, and slow is how long a slow one takes.
func modes(refusals int64, slow time.Duration) []mode {
	return []mode{
		{name: "refuses for a while", make: answering(delivertest.Refuses(refusals, errShort))},
		{name: "full queue", busy: true, make: func(t *testing.T) *next {
			t.Helper()
			full := delivertest.NewFull(t, refusals)
			return &next{Consumer: full, taken: full.To, stop: full.Stop}
		}},
		{name: "slow", make: answering(delivertest.TakesAfter(slow)), late: true, busy: true},
		{name: "refuses for good", make: answering(delivertest.Refuses(math.MaxInt64, consumererror.NewPermanent(errShort))), never: true},
		{name: "panics", make: answering(delivertest.Panics), never: true},
		{name: doesNotReturn, never: true, late: true, make: func(t *testing.T) *next {
			t.Helper()
			stuck := delivertest.NewStuck(t)
			return &next{Consumer: stuck, taken: delivertest.NewNext(delivertest.Takes), entered: stuck.Entered, stop: func() {}}
		}},
	}
}

const doesNotReturn = "does not return"

// ofReceivers are the modes for receivers.
var ofReceivers = modes(refusals, 3*every)

// What every component does with what is not taken is what the table has, and loses nothing silently.
func TestNextComponentTakesNothing_NothingLostSilently(t *testing.T) {
	all := receivers(t)
	table := newTable(ofReceivers)
	for i := range all {
		table.row(all[i].name, all[i].signal)
	}
	t.Run("of", func(t *testing.T) {
		for _, s := range all {
			t.Run(s.name+" "+s.signal, func(t *testing.T) {
				t.Parallel()
				everything := s.everything(t)
				for _, m := range ofReceivers {
					t.Run(m.name, func(t *testing.T) {
						t.Parallel()
						table.set(s.name, s.signal, m.name, s.outcome(t, &m, everything))
					})
				}
			})
		}
	})
	table.compare(t, "table.md")
}

// everything is what a next component gets that takes everything.
func (s *subject) everything(t *testing.T) map[string]int {
	t.Helper()
	taken := delivertest.NewNext(delivertest.Takes)
	l := begin(t, s.open(t), taken)
	known, since := 0, time.Now()
	require.Eventually(t, func() bool {
		if n := len(s.keys(taken)); n != known {
			known, since = n, time.Now()
		}
		return known > 0 && (s.rule == lost || time.Since(since) > calm)
	}, patience, every/4, "everything that there is")
	require.NoError(t, l.stop(t))
	return s.keys(taken)
}

// outcome is what becomes of what a next component does not take.
func (s *subject) outcome(t *testing.T, m *mode, all map[string]int) string {
	t.Helper()
	n := m.make(t)
	start := s.open(t)
	l := begin(t, start, n)
	s.await(t, m, n, l, all)
	if n.entered != nil {
		ctx, cancel := context.WithTimeout(t.Context(), leaves)
		defer cancel()
		require.ErrorIs(t, l.shutdown(ctx), context.DeadlineExceeded, "the error reports that something was left behind")
	} else {
		require.NoError(t, l.stop(t))
	}
	n.stop()
	s.balance(t, m, n, l)
	taken, dropped := s.keys(n.taken), l.counter(s.dropped)
	switch {
	case s.rule == series && len(taken) > 0:
		return "the next ones arrive"
	case s.rule == series:
		assert.Positive(t, l.counter("receiver_refused_metric_points"), "refusals of series are counted")
		return "counted as refused"
	case s.rule == lost && len(taken) > 0 && dropped == 0:
		return "arrives"
	case s.rule == lost && len(taken) > 0:
		return "lost and counted, the next ones arrive"
	case s.rule == lost:
		assert.Positive(t, dropped)
		return "lost and counted"
	}
	missing := without(all, taken)
	if len(missing) == 0 {
		assert.True(t, m.busy || dropped == 0, "got %d dropped; want none", dropped)
		return "arrives"
	}
	return s.missed(t, m, start, missing, dropped)
}

// await waits until the component has met what the next component does.
func (s *subject) await(t *testing.T, m *mode, n *next, l *life, all map[string]int) {
	t.Helper()
	if n.entered != nil {
		select {
		case <-n.entered:
		case <-time.After(patience):
			t.Fatal("the next component is not called")
		}
		return
	}
	require.Eventually(t, func() bool {
		switch {
		case m.never && s.rule == series:
			return n.taken.Calls() >= refusals
		case m.never && s.rule == lost:
			return l.counter(s.dropped) > 0
		case m.never:
			return l.counter(s.dropped) >= len(all)
		case s.rule == lost:
			return len(s.keys(n.taken)) > 0
		}
		return len(without(all, s.keys(n.taken))) == 0
	}, patience, every/4, "all of %d", len(all))
}

// balance checks that what was given is what was taken, and what is counted as dropped where it is not given again.
func (s *subject) balance(t *testing.T, m *mode, n *next, l *life) {
	t.Helper()
	if m.late {
		return // a call may have been left behind
	}
	taken := 0
	for _, times := range s.keys(n.taken) {
		taken += times
	}
	if s.emitted != "" {
		assert.Equal(t, taken, l.counter(s.emitted), "emitted")
	}
	if s.rule == lost && m.name != "full queue" { // whose refusals have no items
		assert.Equal(t, int(n.taken.Items()), taken+l.counter(s.dropped), "each is taken, or lost and counted")
	}
}

// missed is what becomes of what never arrived: it is counted, or the next collector reads it again.
func (s *subject) missed(t *testing.T, m *mode, start func(*testing.T, *life), missing map[string]int, dropped int) string {
	t.Helper()
	counted := dropped >= len(missing)
	taken := delivertest.NewNext(delivertest.Takes)
	l := begin(t, start, taken)
	wait := patience
	if s.keeps && !m.late { // it was read, and the place behind it is kept
		wait = calm
	}
	again := arrives(func() bool { return len(without(missing, s.keys(taken))) == 0 }, wait)
	require.NoError(t, l.stop(t))
	assert.True(t, counted || again, "lost silently: got %d of %d counted", dropped, len(missing))
	var out []string
	if counted {
		out = append(out, "dropped and counted")
	}
	if again {
		out = append(out, "the next collector reads it again")
	}
	return strings.Join(out, "; ")
}

// arrives reports whether something comes true before a time is over.
func arrives(is func() bool, wait time.Duration) bool {
	for began := time.Now(); time.Since(began) < wait; time.Sleep(every / 4) {
		if is() {
			return true
		}
	}
	return is()
}

func without(all, taken map[string]int) map[string]int {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(key string, _ int) bool { return taken[key] > 0 })
	return out
}
