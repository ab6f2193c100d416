// SPDX-License-Identifier: Apache-2.0

package findingsconnector

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lockstep-otel/lockstep/connector/findingsconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// rig is the connector with all its outputs.
type rig struct {
	faces   []connector.Logs
	logs    consumertest.LogsSink
	metrics consumertest.MetricsSink
	traces  consumertest.TracesSink
}

func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	r := &rig{}
	cfg := newDefaultConfig()
	if change != nil {
		change(cfg)
	}
	r.attach(t, NewFactory(), connectortest.NewNopSettings(metadata.Type), cfg, &r.logs)
	for _, f := range r.faces {
		require.NoError(t, f.Start(context.Background(), componenttest.NewNopHost()))
	}
	return r
}

func (r *rig) attach(t *testing.T, f connector.Factory, set connector.Settings, cfg *Config, logs consumer.Logs) {
	t.Helper()
	ctx := context.Background()
	l, err := f.CreateLogsToLogs(ctx, set, cfg, logs)
	require.NoError(t, err)
	m, err := f.CreateLogsToMetrics(ctx, set, cfg, &r.metrics)
	require.NoError(t, err)
	tr, err := f.CreateLogsToTraces(ctx, set, cfg, &r.traces)
	require.NoError(t, err)
	r.faces = []connector.Logs{l, m, tr}
}

func (r *rig) start(t *testing.T) {
	t.Helper()
	for _, f := range r.faces {
		require.NoError(t, f.Start(context.Background(), componenttest.NewNopHost()))
	}
}

// consume does what the collector's fan-out does: it sends all instances the same.
func (r *rig) consume(t *testing.T, findings ...model.Finding) {
	t.Helper()
	for _, f := range r.faces {
		require.NoError(t, f.ConsumeLogs(context.Background(), otelmap.FindingsToLogs(findings)))
	}
}

func (r *rig) stop(t *testing.T) {
	t.Helper()
	for _, f := range r.faces {
		require.NoError(t, f.Shutdown(context.Background()))
		require.NoError(t, f.Shutdown(context.Background()), "a second shutdown does nothing")
	}
}

func (r *rig) findings() []model.Finding {
	var all []model.Finding
	for _, ld := range r.logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
				if f, ok := otelmap.LogToFinding(lr, nil); ok {
					all = append(all, f)
				}
			}
		}
	}
	return all
}

func (r *rig) spanNames() (names []string) {
	for _, td := range r.traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				names = append(names, s.Name())
			}
		}
	}
	return names
}

// counted returns the last value of every series, by status.
func (r *rig) counted() map[string]int64 {
	all := r.metrics.AllMetrics()
	if len(all) == 0 {
		return nil
	}
	got := map[string]int64{}
	for _, p := range points(all[len(all)-1]).All() {
		status, _ := p.Attributes().Get("lockstep.finding.status")
		got[status.Str()] += p.IntValue()
	}
	return got
}

func points(md pmetric.Metrics) pmetric.NumberDataPointSlice {
	return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints()
}

func slowRank(id string, revision, rank int64) model.Finding {
	return model.Finding{
		ID: id, Revision: revision, Status: model.StatusOpen, Kind: model.FindingStraggler, Class: model.ClassHost,
		JobID: "job", Incarnation: "inc", Start: 10, Time: 20, Rank: model.Some(rank), Severity: model.SeverityWarn,
	}
}

func TestOneFindingThroughItsLife(t *testing.T) {
	r := newRig(t, nil)
	r.consume(t, slowRank("a", 1, 7))
	r.consume(t, slowRank("a", 1, 7), slowRank("a", 2, 7))
	assert.Empty(t, r.spanNames(), "a span is written when the finding closes")
	r.stop(t)

	got := r.findings()
	require.Len(t, got, 3)
	for i, status := range []string{"open", "updated", "closed"} {
		assert.Equal(t, status, got[i].Status)
		assert.Equal(t, int64(i+1), got[i].Revision)
		assert.Equal(t, got[0].IncidentID, got[i].IncidentID)
	}
	assert.Equal(t, []string{"finding straggler"}, r.spanNames())
	assert.Equal(t, map[string]int64{"open": 1, "updated": 1, "closed": 1}, r.counted())
}

func TestMetricDataPoints(t *testing.T) {
	r := newRig(t, nil)
	r.consume(t, slowRank("a", 1, 7))
	require.NotEmpty(t, r.metrics.AllMetrics())
	md := r.metrics.AllMetrics()[0]
	assert.Zero(t, md.ResourceMetrics().At(0).Resource().Attributes().Len())
	m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
	assert.Equal(t, "lockstep.findings", m.Name())
	assert.Equal(t, "{finding}", m.Unit())
	assert.True(t, m.Sum().IsMonotonic())
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, m.Sum().AggregationTemporality())
	assert.Equal(t, map[string]any{
		"lockstep.job.id": "job", "lockstep.finding.kind": "straggler", "lockstep.finding.class": "host",
		"lockstep.finding.status": "open", "lockstep.finding.severity": "WARN",
	}, m.Sum().DataPoints().At(0).Attributes().AsRaw())
	r.stop(t)
}

func TestClosedAtFirstSight(t *testing.T) {
	r := newRig(t, nil)
	f := slowRank("a", 1, 7)
	f.Status = model.StatusClosed
	r.consume(t, f)
	assert.Equal(t, []string{"finding straggler"}, r.spanNames())
	assert.Equal(t, map[string]int64{"open": 1, "closed": 1}, r.counted())
	r.stop(t)
	assert.Len(t, r.spanNames(), 1)
}

func TestSeriesLimit(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxSeries = 1 })
	a, b, c := slowRank("a", 1, 1), slowRank("b", 1, 2), slowRank("c", 1, 3)
	b.Kind, c.Kind = "desync", "fabric"
	r.consume(t, a, b, c)
	all := r.metrics.AllMetrics()
	got := points(all[len(all)-1])
	require.Equal(t, 2, got.Len())
	assert.Equal(t, map[string]any{"otel.metric.overflow": true}, got.At(1).Attributes().AsRaw())
	assert.Equal(t, int64(2), got.At(1).IntValue())
	r.stop(t)
}

func TestIntervalClosesAndRepeats(t *testing.T) {
	r := newRig(t, func(c *Config) { c.FlushInterval, c.CloseAfter = 5*time.Millisecond, 20*time.Millisecond })
	r.consume(t, slowRank("a", 1, 7))
	sent := len(r.metrics.AllMetrics())
	require.Eventually(t, func() bool { return len(r.spanNames()) == 1 && len(r.metrics.AllMetrics()) > sent+1 },
		5*time.Second, time.Millisecond)
	r.stop(t)
	assert.Len(t, r.spanNames(), 1)
}

func TestForeignRecordsGoNowhere(t *testing.T) {
	r := newRig(t, nil)
	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("hello")
	require.NoError(t, r.faces[0].ConsumeLogs(context.Background(), ld))
	r.stop(t)
	assert.Empty(t, r.logs.AllLogs())
	assert.Empty(t, r.metrics.AllMetrics())
	assert.Empty(t, r.traces.AllTraces())
}

// One consumer that refuses costs the others nothing, and the sender: the finding is sent again until it is
// taken, or refused for good.
func TestConsume_LogsRefuse_AreSentAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		lost int64
		sent int
	}{
		"for now":  {errors.New("no"), 0, 1},
		"for good": {consumererror.NewPermanent(errors.New("no")), 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				telemetry, r, set := componenttest.NewTelemetry(), &rig{}, connectortest.NewNopSettings(metadata.Type)
				set.TelemetrySettings = telemetry.NewTelemetrySettings()
				var takes atomic.Bool
				next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
					if !takes.Load() {
						return tc.err
					}
					return r.logs.ConsumeLogs(ctx, ld)
				})
				require.NoError(t, err)
				r.attach(t, NewFactory(), set, newDefaultConfig(), next)
				closed := slowRank("a", 1, 7)
				closed.Status = model.StatusClosed
				r.consume(t, closed, closed)
				assert.Len(t, r.spanNames(), 1)
				takes.Store(true)
				time.Sleep(time.Minute)
				assert.Len(t, r.findings(), tc.sent)
				for name, want := range map[string]int64{
					"otelcol_connector_findings_lost": tc.lost, "otelcol_connector_findings_received": 2, "otelcol_connector_findings_duplicates": 1,
				} {
					m, err := telemetry.GetMetric(name)
					require.NoError(t, err)
					assert.Equal(t, want, sumOf(t, m), name)
				}
				r.stop(t)
				require.NoError(t, telemetry.Shutdown(context.Background()))
			})
		})
	}
}

func TestStateLeavesWithTheLastShutdown(t *testing.T) {
	cfg, f := newDefaultConfig(), NewFactory()
	first, second := &rig{}, &rig{}
	first.attach(t, f, connectortest.NewNopSettings(metadata.Type), cfg, &first.logs)
	first.start(t)
	first.consume(t, slowRank("a", 1, 7))
	first.stop(t)
	second.attach(t, f, connectortest.NewNopSettings(metadata.Type), cfg, &second.logs)
	second.start(t)
	second.consume(t, slowRank("a", 1, 7))
	second.stop(t)
	assert.Len(t, second.findings(), 2, "a new life knows nothing of the old one")
}
