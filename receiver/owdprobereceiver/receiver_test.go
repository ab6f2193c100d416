// SPDX-License-Identifier: Apache-2.0

package owdprobereceiver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/netstamp/netstamptest"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/timeline"
	"github.com/lockstep-otel/lockstep/receiver/owdprobereceiver/internal/metadata"
	"github.com/lockstep-otel/lockstep/receiver/owdprobereceiver/internal/metadatatest"
)

// twoHosts are the configurations of two nodes on loopback addresses.
func twoHosts() (a, b *Config) {
	make1 := func(node, address string) *Config {
		c := newDefaultConfig()
		c.Node, c.HostID, c.Endpoints = node, "host-"+node, []string{address}
		c.Port = 38862
		c.Peers.List = []string{"a " + loopback(1), "b " + loopback(2)}
		c.Window, c.MetricsInterval, c.Rate = 200*time.Millisecond, 100*time.Millisecond, 200
		return c
	}
	return make1("a", loopback(1)), make1("b", loopback(2))
}

// loopback are addresses of this process's own, so that several can test at a time.
func loopback(i int) string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 1+pid>>8%254, pid&255, i)
}

// running is a started receiver of both signals.
type running struct {
	logs    *consumertest.LogsSink
	metrics *consumertest.MetricsSink
	faces   []component.Component
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	for _, f := range r.faces {
		require.NoError(t, f.Shutdown(context.WithoutCancel(t.Context())))
	}
	r.faces = nil
}

func begin(t *testing.T, set receiver.Settings, cfg *Config, host component.Host) *running {
	t.Helper()
	r := &running{logs: new(consumertest.LogsSink), metrics: new(consumertest.MetricsSink)}
	l, err := NewFactory().CreateLogs(t.Context(), set, cfg, r.logs)
	require.NoError(t, err)
	m, err := NewFactory().CreateMetrics(t.Context(), set, cfg, r.metrics)
	require.NoError(t, err)
	r.faces = []component.Component{l, m}
	t.Cleanup(func() { r.stop(t) })
	for _, f := range r.faces {
		require.NoError(t, f.Start(t.Context(), host))
	}
	return r
}

func nop() receiver.Settings { return receivertest.NewNopSettings(metadata.Type) }

// edges are the edges among the records.
func (r *running) edges(t *testing.T) (out []model.ClockEdge) {
	t.Helper()
	for _, ld := range r.logs.AllLogs() {
		records := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
		for i := range records.Len() {
			e, ok, err := clockmap.LogToEdge(records.At(i))
			require.NoError(t, err)
			require.True(t, ok, "every record is an edge")
			out = append(out, e)
		}
	}
	return out
}

func TestEdgesAndMetricsOfTwoNodes(t *testing.T) {
	netstamptest.AwaitStamps(t)
	a, b := twoHosts()
	host := componenttest.NewNopHost()
	ra, rb := begin(t, nop(), a, host), begin(t, nop(), b, host)
	toB := func(e model.ClockEdge) bool {
		return e.Source == model.EdgeProbe && strings.HasPrefix(e.Dst, "host:host-b/") && e.Sigma > 0
	}
	require.Eventually(t, func() bool { return slices.ContainsFunc(ra.edges(t), toB) }, 20*time.Second, 20*time.Millisecond)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(ra.edges(t), func(e model.ClockEdge) bool {
			return e.Source == model.EdgePair && strings.HasPrefix(e.Src, "host:host-a/") && strings.HasSuffix(e.Dst, "/realtime")
		})
	}, 20*time.Second, 20*time.Millisecond)
	require.Eventually(t, func() bool { return len(delays(ra.metrics.AllMetrics())) >= 4 }, 20*time.Second, 20*time.Millisecond,
		"of both paths and both directions")
	rb.stop(t)
	ra.stop(t)

	for _, e := range ra.edges(t) {
		if e.Source == model.EdgeProbe {
			// Both are this machine, under two names.
			assert.LessOrEqual(t, e.Lower, int64(0))
			assert.GreaterOrEqual(t, e.Upper, int64(0))
			assert.Equal(t, model.StampKernel, e.Stamps)
		}
	}
	first := ra.logs.AllLogs()[0].ResourceLogs().At(0)
	id, _ := first.Resource().Attributes().Get(semconv.HostID)
	assert.Equal(t, "host-a", id.Str())
	at := first.ScopeLogs().At(0).LogRecords().At(0).Timestamp().AsTime()
	assert.WithinDuration(t, time.Now(), at, time.Minute, "the window's time, and not a reading")
	// Both measure both directions, on paths of their own; Prometheus has one name for all.
	for key := range delays(rb.metrics.AllMetrics()) {
		assert.NotContains(t, delays(ra.metrics.AllMetrics()), key)
	}
	for key := range delays(ra.metrics.AllMetrics()) {
		assert.Contains(t, key, loopback(1))
		assert.Contains(t, key, loopback(2))
		assert.Contains(t, key, model.StampKernel)
	}
}

// delays are the series of one-way delays.
func delays(all []pmetric.Metrics) map[string]bool {
	out := map[string]bool{}
	for _, md := range all {
		metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
		for i := range metrics.Len() {
			if metrics.At(i).Name() != semconv.MetricOWDDelay {
				continue
			}
			points := metrics.At(i).ExponentialHistogram().DataPoints()
			for j := range points.Len() {
				out[fmt.Sprint(points.At(j).Attributes().AsRaw())] = true
			}
		}
	}
	return out
}

func TestEverySeriesSaysHowItWasStamped(t *testing.T) {
	netstamptest.AwaitStamps(t)
	a, b := twoHosts()
	host := componenttest.NewNopHost()
	ra, _ := begin(t, nop(), a, host), begin(t, nop(), b, host)
	require.Eventually(t, func() bool { return len(delays(ra.metrics.AllMetrics())) > 0 }, 20*time.Second, 20*time.Millisecond)
	ra.stop(t)
	seen := map[string]bool{}
	for _, md := range ra.metrics.AllMetrics() {
		metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
		for i := range metrics.Len() {
			m := metrics.At(i)
			seen[m.Name()] = true
			var attrs []map[string]any
			switch m.Type() {
			case pmetric.MetricTypeExponentialHistogram:
				for j := range m.ExponentialHistogram().DataPoints().Len() {
					attrs = append(attrs, m.ExponentialHistogram().DataPoints().At(j).Attributes().AsRaw())
				}
			case pmetric.MetricTypeSum:
				for j := range m.Sum().DataPoints().Len() {
					attrs = append(attrs, m.Sum().DataPoints().At(j).Attributes().AsRaw())
				}
			default:
				for j := range m.Gauge().DataPoints().Len() {
					attrs = append(attrs, m.Gauge().DataPoints().At(j).Attributes().AsRaw())
				}
			}
			for _, at := range attrs {
				for _, name := range []string{semconv.PointSrc, semconv.PointDst, semconv.PointProber, semconv.PointPath, semconv.PointStamps} {
					assert.Contains(t, at, name, m.Name())
				}
				assert.Equal(t, model.StampKernel, at[semconv.PointStamps], m.Name())
			}
		}
	}
	text := readme(t)
	for name := range seen {
		assert.Contains(t, text, "| `"+name+"` |")
	}
	assert.Len(t, seen, 7)
}

// extensions is a host with extensions.
type extensions map[component.ID]component.Component

func (e extensions) GetExtensions() map[component.ID]component.Component { return e }

type holder struct {
	component.StartFunc
	component.ShutdownFunc
	held *timeline.Timeline
}

func (h *holder) Timeline() *timeline.Timeline { return h.held }

func TestTheTimelineMustBeOne(t *testing.T) {
	a, _ := twoHosts()
	id := component.MustNewID("timeline")
	a.TimelineID = &id
	for want, host := range map[string]extensions{
		`find timeline: got no extension "timeline"; want it under service::extensions`: {},
		`find timeline: got extension "timeline", which holds none`:                     {id: &struct{ component.Component }{}},
	} {
		l, err := NewFactory().CreateLogs(t.Context(), nop(), a, consumertest.NewNop())
		require.NoError(t, err)
		require.EqualError(t, l.Start(t.Context(), host), want)
		require.NoError(t, l.Shutdown(t.Context()))
	}
}

func TestEdgesGoToTheTimeline(t *testing.T) {
	a, b := twoHosts()
	id := component.MustNewID("timeline")
	a.TimelineID = &id
	held := &holder{held: timeline.New(timeline.Options{})}
	begin(t, nop(), a, extensions{id: held})
	begin(t, nop(), b, componenttest.NewNopHost())
	require.Eventually(t, func() bool {
		held.held.Advance(time.Now())
		_, ok := held.held.Resolve("host-a")
		return ok
	}, 20*time.Second, 50*time.Millisecond)
}

func TestStartTellsWhatIsMissing(t *testing.T) {
	short := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(short, []byte("too short\n"), 0o600))
	for want, spoil := range map[string]func(*Config){
		"read key: open":                        func(c *Config) { c.Auth.KeyFile = "testdata/none" },
		"read key: make key: got 9 bytes":       func(c *Config) { c.Auth.KeyFile = short },
		"listen on 192.0.2.7:38862: listen udp": func(c *Config) { c.Endpoints = []string{"192.0.2.7"} },
	} {
		a, _ := twoHosts()
		spoil(a)
		l, err := NewFactory().CreateLogs(t.Context(), nop(), a, consumertest.NewNop())
		require.NoError(t, err)
		require.ErrorContains(t, l.Start(t.Context(), componenttest.NewNopHost()), want)
		require.NoError(t, l.Shutdown(t.Context()))
	}
}

func TestTheKeyOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, []byte("0123456789abcdef\n"), 0o600))
	a, b := twoHosts()
	a.Auth.KeyFile, b.Auth.Key = path, "0123456789abcdef"
	ra := begin(t, nop(), a, componenttest.NewNopHost())
	begin(t, nop(), b, componenttest.NewNopHost())
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(ra.edges(t), func(e model.ClockEdge) bool { return e.Source == model.EdgeProbe && e.Sigma > 0 })
	}, 20*time.Second, 20*time.Millisecond, "one of both trimmed, one as it stands")
}

// observed are the reasons of a counter.
func observed(m metricdata.Metrics) (out []string) {
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		reason, _ := p.Attributes.Value("reason")
		out = append(out, reason.AsString())
	}
	return out
}

// The log says so where packets are not signed, and where they cannot be sent.
func TestTheLogTellsWhatIsWrongWithTheSetup(t *testing.T) {
	for name, c := range map[string]struct {
		setup func(*Config)
		want  string
	}{
		"no key": {func(*Config) {}, "Packets are not signed"},
		// As where LOCKSTEP_PROBE_ADDRESS is forgotten: from loopback, nobody else is reached.
		"address": {func(c *Config) { c.Peers.List[1] = "b 203.0.113.1" }, "packets cannot be sent"},
	} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zap.WarnLevel)
			set := nop()
			set.Logger = zap.New(core)
			a, _ := twoHosts()
			c.setup(a)
			begin(t, set, a, componenttest.NewNopHost())
			require.Eventually(t, func() bool {
				return slices.ContainsFunc(logs.All(), func(e observer.LoggedEntry) bool { return strings.Contains(e.Message, c.want) })
			}, 20*time.Second, 20*time.Millisecond)
		})
	}
	core, logs := observer.New(zap.WarnLevel)
	set := nop()
	set.Logger = zap.New(core)
	a, _ := twoHosts()
	a.Auth.Key = "0123456789abcdef"
	begin(t, set, a, componenttest.NewNopHost())
	assert.Zero(t, logs.FilterMessageSnippet("not signed").Len())
}

// Where the nodes' keys differ, each says what is wrong with whose packets.
func TestTheLogTellsWhoseKeyIsAnother(t *testing.T) {
	a, b := twoHosts()
	c := newDefaultConfig()
	*c = *b
	c.Node, c.HostID, c.Endpoints = "c", "host-c", []string{loopback(3)}
	a.Auth.Key, b.Auth.Key = "0123456789abcdef", "another 16 bytes"
	logs := map[string]*observer.ObservedLogs{}
	for _, cfg := range []*Config{a, b, c} {
		cfg.Peers.List = []string{"a " + loopback(1), "b " + loopback(2), "c " + loopback(3)}
		core, seen := observer.New(zap.WarnLevel)
		set := nop()
		set.Logger, logs[cfg.Node] = zap.New(core), seen
		begin(t, set, cfg, componenttest.NewNopHost())
	}
	for _, want := range []struct {
		node, reason, says string
		from               []string
	}{
		{"a", "reflector.forged", "not signed with our key, or not at all", []string{loopback(2), loopback(3)}},
		{"b", "reflector.forged", "not signed with our key, or not at all", []string{loopback(1), loopback(3)}},
		{"c", "reflector.signed", "this node has no key: set auth as on the others", []string{loopback(1), loopback(2)}},
	} {
		require.Eventually(t, func() bool {
			return slices.ContainsFunc(logs[want.node].All(), func(e observer.LoggedEntry) bool {
				fields := e.ContextMap()
				from, _ := fields["from"].([]any)
				return fields["reason"] == want.reason && strings.Contains(e.Message, want.says) &&
					slices.ContainsFunc(from, func(v any) bool { return slices.Contains(want.from, v.(string)) })
			})
		}, 20*time.Second, 20*time.Millisecond, want.node)
	}
}

func TestRefusedEdgesAreCountedAndReasonsDocumented(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.WithoutCancel(t.Context()))) })
	a, _ := twoHosts()
	set := nop()
	set.TelemetrySettings = tel.NewTelemetrySettings()
	refuse, err := consumer.NewLogs(func(context.Context, plog.Logs) error { return errors.New("no") })
	require.NoError(t, err)
	l, err := NewFactory().CreateLogs(t.Context(), set, a, refuse)
	require.NoError(t, err)
	require.NoError(t, l.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool {
		m, err := tel.GetMetric("otelcol_receiver_owd_probe_edges_lost")
		// Pairs of own clocks come before the first window.
		return err == nil && m.Data != nil && len(l.(*face).handle.Value.seen.Load().Counters) > 0
	}, 20*time.Second, 20*time.Millisecond)
	text := readme(t)
	reasons := l.(*face).handle.Value.seen.Load().Counters
	assert.NotEmpty(t, reasons)
	for reason := range reasons {
		group, _, _ := strings.Cut(reason, ".")
		assert.True(t, strings.Contains(text, "`"+reason+"`") || strings.Contains(text, "`"+group+".*`"), "README.md names %s", reason)
	}
	work, err := tel.GetMetric("otelcol_receiver_owd_probe_activity")
	require.NoError(t, err)
	refused, err := tel.GetMetric("otelcol_receiver_owd_probe_refused")
	require.NoError(t, err)
	assert.Subset(t, observed(work), []string{"sender.requests", "reflector.replies", "socket.sent_stamps.kernel"})
	assert.Subset(t, observed(refused), []string{"sender.forged", "reflector.replayed", "socket.overflow", "pairs.stamp_event", "clock.many"})
	assert.ElementsMatch(t, slices.Collect(maps.Keys(reasons)), append(observed(work), observed(refused)...), "each is one of both")
	metadatatest.AssertEqualReceiverOwdProbeNeighbours(t, tel, []metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp())
	require.NoError(t, l.Shutdown(t.Context()))
}
