// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// rule is what a component does with what is refused. The zero value: it is given again, or its newest state is, until it
// is taken.
type rule int

const (
	// lost: it cannot be made again. Others follow.
	lost rule = iota + 1
	// series: the next ones have it.
	series
	// passed: the error goes back to the sender, and what was refused is lost and counted.
	passed
)

// subject is one signal of one component.
type subject struct {
	name, signal string
	rule         rule
	// dropped and emitted are the counters of items, empty where there is none. Of series, refusals are counted
	// by the collector's own metrics.
	dropped, emitted string
	// keeps: a storage keeps how far the source was read, so that what is dropped is not read again.
	keeps bool
	// key distinguishes log records, the same in each life of a source; nil takes the body.
	key func(plog.LogRecord) string
	// open makes a source, and returns how to start the component on it: each call is a life of it.
	open func(t *testing.T) func(t *testing.T, l *life)
}

// life is a component while it runs.
type life struct {
	next      delivertest.Consumer
	host      component.Host
	telemetry *componenttest.Telemetry
	running   []component.Component
}

// begin starts a component on a source.
func begin(t *testing.T, start func(*testing.T, *life), next delivertest.Consumer) *life {
	t.Helper()
	l := &life{next: next, host: componenttest.NewNopHost(), telemetry: componenttest.NewTelemetry()}
	t.Cleanup(func() { assert.NoError(t, l.telemetry.Shutdown(context.Background())) })
	start(t, l)
	return l
}

func (l *life) run(t *testing.T, c component.Component, err error) {
	t.Helper()
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), l.host))
	l.running = append(l.running, c)
}

// stop stops the component, which takes its time as a collector gives it that gets SIGTERM: without a deadline.
func (l *life) stop(t *testing.T) error {
	t.Helper()
	began := time.Now()
	err := l.shutdown(context.WithoutCancel(t.Context()))
	assert.Less(t, time.Since(began), deliver.ShutdownLimit+slack)
	return err
}

// slack is for a machine that stalls.
const slack = 5 * time.Second

func (l *life) shutdown(ctx context.Context) error {
	var errs []error
	for _, c := range l.running {
		errs = append(errs, c.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

// counter returns the sum of a counter; 0 where it was never added to.
func (l *life) counter(name string) (sum int) {
	if name == "" {
		return 0
	}
	m, err := l.telemetry.GetMetric("otelcol_" + name)
	if err != nil {
		return 0
	}
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		sum += int(p.Value)
	}
	return sum
}

// keys counts what a next component took, by their keys.
func (s *subject) keys(n *delivertest.Next) map[string]int {
	out := map[string]int{}
	for _, td := range n.Traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					out[span.Name()+" "+span.SpanID().String()]++
				}
			}
		}
	}
	for _, ld := range n.Logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					out[s.keyOf(lr)]++
				}
			}
		}
	}
	for _, md := range n.Metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					out[m.Name()]++
				}
			}
		}
	}
	return out
}

func (s *subject) keyOf(lr plog.LogRecord) string {
	if s.key == nil {
		return lr.EventName() + " " + lr.Body().AsString()
	}
	return lr.EventName() + " " + s.key(lr)
}

// attributes returns a key of some attributes.
func attributes(names ...string) func(plog.LogRecord) string {
	return func(lr plog.LogRecord) string {
		var of []string
		for _, name := range names {
			if v, ok := lr.Attributes().Get(name); ok {
				of = append(of, v.AsString())
			}
		}
		return strings.Join(of, " ")
	}
}
