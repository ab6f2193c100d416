// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// turnedAway is how many calls are refused for a while: enough that the delay between two reaches its greatest.
const turnedAway = 8

// ofConnectors are the modes for connectors. Their clock is that of a test, so that waiting takes no time.
var ofConnectors = append(modes(turnedAway, 200*time.Millisecond),
	mode{name: untilEnd, never: true, make: answering(delivertest.Refuses(math.MaxInt64, errShort))})

// untilEnd is the mode in which what waits is refused until the connector stops, and then.
const untilEnd = "refuses until the end"

// taking is the answer of the next components of the other signals.
var taking = delivertest.Takes

// inboxFull is the column of what happens to a batch that comes while the engine is busy.
const inboxFull = "inbox full"

// again is within which time what was refused is sent again.
const again = 5 * time.Second

// What becomes of what a connector concludes, and of the data that a sender sends it, is what the table has.
func TestConnector_NextTakesNothing_NothingLostSilently(t *testing.T) {
	all := connectors()
	table := newTable(ofConnectors)
	table.columns = append(table.columns, inboxFull)
	for i := range all {
		for _, o := range all[i].emits {
			table.row(all[i].name, o.signal)
		}
	}
	t.Run("of", func(t *testing.T) {
		for _, a := range all {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				put := a.everything(t)
				t.Run(inboxFull, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						cell := a.full(t, put)
						for _, o := range a.emits {
							table.set(a.name, o.signal, inboxFull, cell)
						}
					})
				})
				for _, o := range a.emits {
					for _, m := range ofConnectors {
						t.Run(o.signal+" "+m.name, func(t *testing.T) {
							t.Parallel()
							synctest.Test(t, func(t *testing.T) {
								table.set(a.name, o.signal, m.name, a.outcome(t, &o, &m, put))
							})
						})
					}
				}
			})
		}
	})
	table.compare(t, "connectors.md")
}

// everything returns, by signal, what next components get that take everything.
func (a *analysis) everything(t *testing.T) map[string][]item {
	t.Helper()
	all := map[string][]item{}
	synctest.Test(t, func(t *testing.T) {
		r := a.rigged(t, componenttest.NewNopHost(), "", nil)
		r.run("")
		for _, o := range a.emits {
			assert.Equal(t, a.left[o.signal], r.counter(o.dropped), o.signal)
		}
		first := a.emits[0]
		_, err := r.end(t, first.signal, first.dropped)
		require.NoError(t, err)
		for _, s := range r.sends {
			require.NoError(t, s.err)
		}
		for _, o := range a.emits {
			all[o.signal] = itemsOf(r.to[o.signal].taken)
			require.NotEmpty(t, all[o.signal], o.signal)
		}
	})
	return all
}

// outcome is what becomes of one signal.
func (a *analysis) outcome(t *testing.T, o *output, m *mode, put map[string][]item) string {
	t.Helper()
	r := a.rigged(t, componenttest.NewNopHost(), o.signal, m)
	watch := ""
	if o.rule == passed {
		watch = o.dropped
	}
	r.run(watch)
	dropped, ended := r.end(t, o.signal, o.dropped)
	to := r.to[o.signal]
	to.stop()
	r.others(t, o, put)
	r.senders(t, o, m)
	v := verdict{
		o: o, m: m, put: put[o.signal], arrived: itemsOf(to.taken), answered: to.answers(),
		dropped: dropped - a.left[o.signal], logged: r.logged.FilterMessageSnippet("refused").Len(), ended: ended,
	}
	for _, s := range r.sends {
		if s.err != nil {
			v.errors++
		}
	}
	require.Positive(t, v.calls)
	if o.rule == series {
		return v.series(t)
	}
	return v.events(t)
}

// others checks that the next components of the other signals get everything.
func (r *rig) others(t *testing.T, o *output, put map[string][]item) {
	t.Helper()
	for _, other := range r.of.emits {
		if other.signal == o.signal {
			continue
		}
		got := itemsOf(r.to[other.signal].taken)
		assert.Equal(t, newest(put[other.signal]), newest(got), "%s are held up", other.signal)
		if other.rule != series {
			assert.Empty(t, silent(put[other.signal], got), other.signal)
		}
	}
}

// senders checks what the sender of the data gets, and for how long it waits.
func (r *rig) senders(t *testing.T, o *output, m *mode) {
	t.Helper()
	var took time.Duration
	for _, s := range r.sends {
		took += s.took
		if o.rule != passed {
			assert.NoError(t, s.err, "the sender cannot do anything about it")
			continue
		}
		assert.True(t, s.err == nil || consumererror.IsPermanent(s.err), "the same data again would be duplicates: %v", s.err)
		assert.False(t, s.err == nil && s.lost > 0, "got %d spans lost that the sender knows nothing of", s.lost)
	}
	if m.name != "slow" {
		assert.LessOrEqual(t, took, deliver.Patience, "a sender waits for one call of the next component at most")
	}
}

// verdict is what there is to judge one signal by.
type verdict struct {
	o *output
	m *mode
	answered
	put, arrived []item
	dropped      int
	errors       int // that the sender got
	logged       int
	ended        error
}

// series judges metrics: those that come later have the values of those that were refused.
func (v *verdict) series(t *testing.T) string {
	t.Helper()
	if len(v.arrived) > 0 {
		assert.Equal(t, newest(v.put), newest(v.arrived), "the last values")
		assert.NoError(t, v.ended)
		return "the next ones arrive"
	}
	assert.True(t, v.m.never)
	require.Error(t, v.ended)
	var out []string
	if v.refused > 0 {
		assert.Positive(t, v.logged)
		assert.Greater(t, v.refused, turnedAway, "each flush tries again")
		out = append(out, "logged")
	}
	return strings.Join(append(out, "an error at the end"), ", ")
}

// events judges what has a key, and step traces.
func (v *verdict) events(t *testing.T) string {
	t.Helper()
	lost := silent(v.put, v.arrived)
	var out []string
	if v.errors > 0 {
		out = append(out, "error to the sender")
	}
	switch {
	case v.m.name == doesNotReturn:
		require.ErrorIs(t, v.ended, context.DeadlineExceeded)
		assert.Equal(t, len(v.put), v.dropped, "all that was put")
	case v.m.name == untilEnd && v.o.rule != passed:
		require.Error(t, v.ended)
		assert.Len(t, newest(v.put), v.dropped, "the newest revision of each")
	case v.o.rule == passed:
		assert.Equal(t, v.items, v.dropped, "what was refused for good is counted, once")
	case v.m.never:
		assert.Equal(t, len(v.put), v.dropped, "what was refused for good, together and alone, is counted once")
	default:
		assert.Zero(t, v.dropped, "nothing that is sent again is lost")
		assert.LessOrEqual(t, v.latest, again, "what was refused is sent again")
		assert.True(t, v.refused == 0 || v.soonest >= time.Second, "got the next try after %v: the next component gets time", v.soonest)
	}
	assert.Len(t, v.put, len(v.arrived)+v.dropped+v.superseded(), "each arrives, is counted, or has a newer revision that arrives")
	if v.dropped == 0 {
		assert.Empty(t, lost, "lost silently")
		if len(lost) == 0 {
			assert.Equal(t, newest(v.put), newest(v.arrived), "the newest revision of each")
		}
		return strings.Join(append(out, "arrives"), ", ")
	}
	assert.NotEmpty(t, lost)
	if v.o.rule == passed {
		out = append(out, "counted")
	} else {
		out = append(out, "dropped and counted")
	}
	if len(v.arrived) > 0 {
		out = append(out, "the next ones arrive")
	}
	if v.ended != nil {
		out = append(out, "an error at the end")
	}
	return strings.Join(out, ", ")
}

// superseded counts the items that did not arrive, but a newer one of the same key.
func (v *verdict) superseded() int {
	switch {
	case v.o.rule == passed:
		return 0
	case v.m.name == untilEnd:
		return len(v.put) - len(newest(v.put))
	case v.m.never:
		return 0
	}
	have := map[item]int{}
	for _, i := range v.arrived {
		have[i]++
	}
	n := 0
	for _, i := range v.put {
		if have[i] == 0 {
			n++
		} else {
			have[i]--
		}
	}
	return n
}
