// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// toy is an engine that notes what it is called with, and concludes as a test sets. A batch is one log
// record or span, and has a name.
type toy struct {
	mu    sync.Mutex
	calls []string

	// conclude returns what comes of a batch; nil: nothing.
	conclude func(name string) Output
	// takes is how long the engine uses a batch.
	takes atomic.Int64
	// size is that of a batch.
	size int

	values atomic.Int64 // that metrics had so far
}

func (e *toy) note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, fmt.Sprintf(format, args...))
}

// noted returns the calls so far, and forgets them.
func (e *toy) noted() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	calls := e.calls
	e.calls = nil
	return calls
}

func (e *toy) input(name string) Input {
	return Input{Bytes: e.size, Apply: func(time.Time) Output {
		time.Sleep(time.Duration(e.takes.Load()))
		e.note("%s", name)
		if e.conclude == nil {
			return Output{}
		}
		return e.conclude(name)
	}}
}

// metrics has one series, with the number of the call as value.
func (e *toy) metrics(time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(e.values.Add(1))
	return md
}

func valueOf(md pmetric.Metrics) int64 {
	return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).IntValue()
}

// rig is a connector with a toy, and its next components.
type rig struct {
	*toy
	Engine // as the connector is made

	tb         testing.TB
	connectors *Connectors[rig]
	made       int // engines
	set        connector.Settings
	log        *observer.ObservedLogs
	counts     Counts
	host       component.Host

	logs, metrics, traces *delivertest.Next
	instances             []*instance
}

const tickEvery = time.Minute

func newRig(tb testing.TB) *rig {
	tb.Helper()
	core, log := observer.New(zapcore.InfoLevel)
	r := &rig{
		toy: &toy{}, tb: tb, log: log, set: connectortest.NewNopSettings(component.MustNewType("toy")), host: componenttest.NewNopHost(),
		logs: delivertest.NewNext(delivertest.Takes), metrics: delivertest.NewNext(delivertest.Takes), traces: delivertest.NewNext(delivertest.Takes),
	}
	r.set.Logger = zap.New(core)
	r.Engine = Engine{
		Settings: Settings{Interval: tickEvery, FlushInterval: 10 * tickEvery},
		Logs:     func(ld plog.Logs) Input { return r.input(ld.ResourceLogs().At(0).SchemaUrl()) },
		Traces:   func(td ptrace.Traces) Input { return r.input(td.ResourceSpans().At(0).SchemaUrl()) },
		Counts:   &r.counts,
	}
	r.connectors = NewConnectors(func(cfg *rig, _ connector.Settings) (*Engine, error) {
		cfg.made++
		return &cfg.Engine, nil
	})
	return r
}

func (r *rig) add(i *instance, err error) *instance {
	r.tb.Helper()
	require.NoError(r.tb, err)
	r.instances = append(r.instances, i)
	return i
}

func (r *rig) logsToLogs(next consumer.Logs) *instance {
	r.tb.Helper()
	i, err := r.connectors.LogsToLogs(context.Background(), r.set, r, next)
	return r.add(i.(*instance), err)
}

func (r *rig) logsToMetrics(next consumer.Metrics) *instance {
	r.tb.Helper()
	i, err := r.connectors.LogsToMetrics(context.Background(), r.set, r, next)
	return r.add(i.(*instance), err)
}

func (r *rig) logsToTraces(next consumer.Traces) *instance {
	r.tb.Helper()
	i, err := r.connectors.LogsToTraces(context.Background(), r.set, r, next)
	return r.add(i.(*instance), err)
}

func (r *rig) tracesToLogs(next consumer.Logs) *instance {
	r.tb.Helper()
	i, err := r.connectors.TracesToLogs(context.Background(), r.set, r, next)
	return r.add(i.(*instance), err)
}

// start makes instances of all outputs, and starts them.
func (r *rig) start() {
	r.tb.Helper()
	r.logsToLogs(r.logs)
	r.logsToMetrics(r.metrics)
	r.logsToTraces(r.traces)
	r.begin()
}

// begin starts the instances that were made.
func (r *rig) begin() {
	r.tb.Helper()
	for _, i := range r.instances {
		require.NoError(r.tb, i.Start(context.Background(), r.host))
	}
}

// stop stops the instances that were made.
func (r *rig) stop() {
	r.tb.Helper()
	for _, i := range r.instances {
		require.NoError(r.tb, i.Shutdown(context.Background()))
	}
}

func batch(name string) plog.Logs {
	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().SetSchemaUrl(name)
	return ld
}

func spanBatch(name string) ptrace.Traces {
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().SetSchemaUrl(name)
	return td
}

// send gives the first instance a batch.
func (r *rig) send(ctx context.Context, name string) error {
	return r.instances[0].ConsumeLogs(ctx, batch(name))
}

func (r *rig) mustSend(names ...string) {
	r.tb.Helper()
	for _, name := range names {
		require.NoError(r.tb, r.send(context.Background(), name))
	}
}

// sendEach waits with each batch until nothing is under way.
func (r *rig) sendEach(names ...string) {
	r.tb.Helper()
	for _, name := range names {
		r.mustSend(name)
		synctest.Wait()
	}
}

// finding is a revision of a finding.
func finding(id string, revision int64) model.Finding {
	return model.Finding{ID: id, Kind: "toy", Revision: revision}
}

// findings concludes with the findings that a name lists, such as "a1 b2": those are revision 1 of finding a
// and revision 2 of b. One without an id is "-1".
func findings(name string) Output { return Output{Findings: findingsIn(name)} }

func findingsIn(name string) (all []model.Finding) {
	for _, text := range strings.Fields(name) {
		revision, _ := strconv.ParseInt(text[1:], 10, 64)
		f := finding(strings.Trim(text[:1], "-"), revision)
		all = append(all, f)
	}
	return all
}

// delivered returns the findings of each call that the next component took, as names have them.
func delivered(next *delivertest.Next) (calls []string) {
	for _, ld := range next.Logs.AllLogs() {
		calls = append(calls, textOf(ld))
	}
	return calls
}

func textOf(ld plog.Logs) string {
	var all []string
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				var problems otelmap.Problems
				if f, ok := otelmap.LogToFinding(lr, &problems); ok {
					all = append(all, cmp.Or(f.ID, "-")+strconv.FormatInt(f.Revision, 10))
				} else {
					all = append(all, lr.Body().AsString())
				}
			}
		}
	}
	return strings.Join(all, " ")
}

// spansOf returns the names of the spans of each call that the next component took.
func spansOf(next *delivertest.Next) (calls []string) {
	for _, td := range next.Traces.AllTraces() {
		var names []string
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					names = append(names, s.Name())
				}
			}
		}
		calls = append(calls, strings.Join(names, " "))
	}
	return calls
}

func valuesOf(next *delivertest.Next) (values []int64) {
	for _, md := range next.Metrics.AllMetrics() {
		values = append(values, valueOf(md))
	}
	return values
}

// picky is a next component of logs that refuses calls with one of some findings, and keeps what it takes.
type picky struct {
	consumer.Logs
	got []string
}

// newPicky returns a next component that takes so long for each call.
func newPicky(tb testing.TB, takes time.Duration, err error, refused ...string) *picky {
	tb.Helper()
	p := &picky{}
	next, made := consumer.NewLogs(func(_ context.Context, ld plog.Logs) error {
		time.Sleep(takes)
		text := textOf(ld)
		for _, r := range refused {
			if strings.Contains(text, r) {
				return err
			}
		}
		p.got = append(p.got, text)
		return nil
	})
	require.NoError(tb, made)
	p.Logs = next
	return p
}
