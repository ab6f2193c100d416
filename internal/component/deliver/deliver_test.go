// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errShort = errors.New("memory is short")

// obs reports to nothing.
func obs(t *testing.T) *receiverhelper.ObsReport {
	t.Helper()
	set := receivertest.NewNopSettings(receivertest.NopType)
	o, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: set.ID, Transport: "file", ReceiverCreateSettings: set})
	require.NoError(t, err)
	return o
}

func giveTraces(t *testing.T, ctx context.Context, r Retry, next consumer.Traces, items int, build func() ptrace.Traces) (left int, err error) { //nolint:revive // t is first in tests
	t.Helper()
	s := tracesTo(next, obs(t))
	return deliver(ctx, r, items, build, &s)
}

func giveLogs(t *testing.T, r Retry, next consumer.Logs, items int, build func() plog.Logs) (left int, err error) {
	t.Helper()
	s := logsTo(next, obs(t))
	return deliver(t.Context(), r, items, build, &s)
}

func spansNamed(names ...string) ptrace.Traces {
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for _, name := range names {
		spans.AppendEmpty().SetName(name)
	}
	return td
}

func namesOf(td ptrace.Traces) (names []string) {
	for _, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		names = append(names, s.Name())
	}
	return names
}

// branch answers its calls in turn, the last answer over and over. What an answer does not
// refuse is taken.
type branch struct {
	answers []func(ptrace.Traces) error
	calls   int
	taken   map[string]int // how often, by name of span
}

func answering(answers ...func(ptrace.Traces) error) *branch {
	return &branch{answers: answers, taken: map[string]int{}}
}

func (*branch) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (b *branch) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	err := b.answers[min(b.calls, len(b.answers)-1)](td)
	b.calls++
	var refused []string
	var part consumererror.Traces
	switch {
	case errors.As(err, &part):
		refused = namesOf(part.Data())
	case err != nil:
		refused = namesOf(td)
	}
	for _, name := range namesOf(td) {
		if !slices.Contains(refused, name) {
			b.taken[name]++
		}
	}
	for _, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		s.SetName("the next component's")
	}
	return err
}

func takes(ptrace.Traces) error { return nil }

func fails(err error) func(ptrace.Traces) error {
	return func(ptrace.Traces) error { return err }
}

func refuses(names ...string) func(ptrace.Traces) error {
	return func(ptrace.Traces) error { return consumererror.NewTraces(errShort, spansNamed(names...)) }
}

// fanOut gives data to branches as the collector does.
func fanOut(branches ...*branch) consumer.Traces {
	of := map[pipeline.ID]consumer.Traces{}
	for i, b := range branches {
		of[pipeline.NewIDWithName(pipeline.SignalTraces, strconv.Itoa(i))] = b
	}
	return connector.NewTracesRouter(of)
}

func settings() Retry {
	cfg := configretry.NewDefaultBackOffConfig()
	cfg.MaxElapsedTime = time.Minute
	return Retry{Config: cfg, Retried: func(context.Context, error) {}}
}

var all = []string{"a", "b", "c"}

func TestTraces_OutcomeOfBranches(t *testing.T) {
	permanent := consumererror.NewPermanent(errShort)
	for name, c := range map[string]struct {
		branches []*branch
		calls    int
		left     int
		taken    []map[string]int // by branch
	}{
		"one takes everything":           {[]*branch{answering(takes)}, 1, 0, []map[string]int{{"a": 1, "b": 1, "c": 1}}},
		"one refuses for now":            {[]*branch{answering(fails(errShort), takes)}, 2, 0, []map[string]int{{"a": 1, "b": 1, "c": 1}}},
		"one refuses a part":             {[]*branch{answering(refuses("b"), takes)}, 2, 0, []map[string]int{{"a": 1, "b": 1, "c": 1}}},
		"one refuses for good":           {[]*branch{answering(fails(permanent))}, 1, 3, []map[string]int{{}}},
		"one refuses a part and then it": {[]*branch{answering(refuses("b", "c"), fails(permanent))}, 2, 2, []map[string]int{{"a": 1}}},
		"a partial error without data":   {[]*branch{answering(refuses(), takes)}, 2, 0, []map[string]int{{"a": 2, "b": 2, "c": 2}}},
		"data of another component":      {[]*branch{answering(refuses("s", "t", "u", "v"), takes)}, 2, 0, []map[string]int{{"a": 2, "b": 2, "c": 2}}},
		"logs refused behind it":         {[]*branch{answering(fails(consumererror.NewLogs(errShort, plog.NewLogs())), takes)}, 2, 0, []map[string]int{{"a": 1, "b": 1, "c": 1}}},
		"two, of which one refuses a part": {
			[]*branch{answering(takes), answering(refuses("b"), takes)},
			2, 0,
			[]map[string]int{{"a": 1, "b": 2, "c": 1}, {"a": 1, "b": 1, "c": 1}},
		},
		"two refuse other parts": {
			[]*branch{answering(refuses("a"), takes), answering(refuses("c"), takes)},
			2, 0,
			[]map[string]int{{"a": 1, "b": 2, "c": 2}, {"a": 2, "b": 2, "c": 1}},
		},
		"two, of which one refuses for good": {
			[]*branch{answering(fails(permanent)), answering(refuses("c"), takes)},
			2, 3,
			[]map[string]int{{}, {"a": 2, "b": 2, "c": 1}},
		},
		"two refuse for good": {[]*branch{answering(fails(permanent)), answering(fails(permanent))}, 1, 3, []map[string]int{{}, {}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left, err := giveTraces(t, t.Context(), settings(), fanOut(c.branches...), len(all), func() ptrace.Traces { return spansNamed(all...) })
				assert.Equal(t, c.left, left)
				assert.Equal(t, c.left > 0, err != nil)
				for i, b := range c.branches {
					assert.Equal(t, c.calls, b.calls)
					assert.Equal(t, c.taken[i], b.taken)
				}
			})
		})
	}
}

func TestLogs_RefusedInPart_OnlyThatAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		build := func(n int) plog.Logs {
			ld := plog.NewLogs()
			records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
			for range n {
				records.AppendEmpty()
			}
			return ld
		}
		var given []int
		next, err := consumer.NewLogs(func(_ context.Context, ld plog.Logs) error {
			given = append(given, ld.LogRecordCount())
			if len(given) < 3 {
				return consumererror.NewLogs(errShort, build(5-len(given)))
			}
			return consumererror.NewPermanent(errShort)
		})
		require.NoError(t, err)
		left, err := giveLogs(t, settings(), next, 5, func() plog.Logs { return build(5) })
		require.ErrorIs(t, err, errShort)
		assert.Equal(t, []int{5, 4, 3}, given)
		assert.Equal(t, 3, left)
	})
}

func TestTraces_RefusedForEver_TimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r, retries := answering(fails(errShort)), settings(), 0
		r.Config.MaxElapsedTime, r.Retried = 10*time.Second, func(context.Context, error) { retries++ }
		began := time.Now()
		left, err := giveTraces(t, t.Context(), r, b, len(all), func() ptrace.Traces { return spansNamed(all...) })
		require.ErrorContains(t, err, "want at most 10s (retry_on_failure::max_elapsed_time): memory is short")
		assert.Equal(t, len(all), left)
		assert.LessOrEqual(t, time.Since(began), r.Config.MaxElapsedTime)
		assert.Positive(t, retries)
		assert.Equal(t, retries+1, b.calls)
	})
}

func TestTraces_StoppedWhileItWaits_Returns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := settings()
		r.Config.InitialInterval, r.Config.MaxElapsedTime = time.Hour, 0
		began := time.Now()
		left, err := giveTraces(t, ctx, r, answering(fails(errShort)), len(all), func() ptrace.Traces { return spansNamed(all...) })
		require.EqualError(t, err, "deliver spans: stopped after: memory is short")
		assert.Equal(t, len(all), left)
		assert.Equal(t, time.Second, time.Since(began))
	})
}

func TestTraces_OnceOrWithoutRetries_GivesOnce(t *testing.T) {
	for name, change := range map[string]func(*Retry){
		"once":            func(r *Retry) { r.Once = true },
		"without retries": func(r *Retry) { r.Config.Enabled = false },
	} {
		t.Run(name, func(t *testing.T) {
			b, r := answering(refuses("b")), settings()
			change(&r)
			left, err := giveTraces(t, t.Context(), r, b, len(all), func() ptrace.Traces { return spansNamed(all...) })
			require.ErrorIs(t, err, errShort)
			assert.Equal(t, []int{1, 1}, []int{left, b.calls})
		})
	}
}

func TestFailuresOf(t *testing.T) {
	permanent, partial := consumererror.NewPermanent(errShort), consumererror.NewTraces(errShort, spansNamed("a"))
	for name, c := range map[string]struct {
		err       error
		branches  int
		permanent bool
	}{
		"one":                       {errShort, 1, false},
		"one in another":            {fmt.Errorf("pass on: %w", errShort), 1, false},
		"permanent":                 {permanent, 1, true},
		"permanent in another":      {fmt.Errorf("pass on: %w", permanent), 1, true},
		"two":                       {errors.Join(errShort, permanent), 2, false},
		"two permanent":             {errors.Join(permanent, permanent), 2, true},
		"two in a permanent one":    {consumererror.NewPermanent(errors.Join(errShort, errShort)), 2, true},
		"mixed in a permanent one":  {consumererror.NewPermanent(errors.Join(errShort, permanent)), 2, true},
		"two and two":               {errors.Join(errShort, fmt.Errorf("pass on: %w", errors.Join(partial, permanent))), 3, false},
		"one of a join":             {errors.Join(partial), 1, false},
		"a join in a partial error": {consumererror.NewTraces(errors.Join(errShort, errShort), spansNamed("a")), 1, false},
		"permanent and partial":     {consumererror.NewTraces(permanent, spansNamed("a")), 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := failuresOf(c.err)
			assert.Len(t, f.branches, c.branches)
			assert.Equal(t, c.permanent, f.permanent)
			assert.Equal(t, c.permanent && c.branches == 1, c.branches == 1 && consumererror.IsPermanent(c.err), "as the collector sees one branch")
		})
	}
}
