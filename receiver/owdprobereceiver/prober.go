// SPDX-License-Identifier: Apache-2.0

package owdprobereceiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/hostid"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
	"github.com/lockstep-otel/lockstep/internal/probe"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/timeline"
	"github.com/lockstep-otel/lockstep/receiver/owdprobereceiver/internal/metadata"
)

// prober is what the signals of one configuration have in common.
type prober struct {
	cfg       *Config
	log       *zap.Logger
	telemetry *metadata.TelemetryBuilder
	out       *outlets

	node     *probe.Node // nil before begin
	host     hostid.Host
	name     string             // of this node among the members
	timeline *timeline.Timeline // nil where none is configured
	ended    bool

	// What follows is the node's goroutine's, and end's after it.
	series   *measures
	measured time.Time // when metrics were sent last
	teller   teller

	seen atomic.Pointer[probe.Outcome] // for telemetry
}

func newProber(set receiver.Settings, cfg *Config) (*prober, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("create telemetry: %w", err)
	}
	out, err := newOutlets(set, telemetry)
	if err != nil {
		return nil, err
	}
	p := &prober{
		cfg: cfg, log: set.Logger, telemetry: telemetry, out: out, series: newMeasures(cfg.MaxSeries), teller: newTeller(set.Logger),
	}
	p.seen.Store(&probe.Outcome{})
	return p, p.observe()
}

// observe registers the counters that the node keeps.
func (p *prober) observe() error {
	return errors.Join(
		p.telemetry.RegisterReceiverOwdProbeActivityCallback(p.observeCounters(true)),
		p.telemetry.RegisterReceiverOwdProbeRefusedCallback(p.observeCounters(false)),
		p.telemetry.RegisterReceiverOwdProbeNeighboursCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(p.seen.Load().Neighbours))
			return nil
		}),
	)
}

// observeCounters tells of the node's work, or of what was refused and lost.
func (p *prober) observeCounters(work bool) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		for name, n := range p.seen.Load().Counters {
			if isWork(name) == work {
				o.Observe(n, metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", name))))
			}
		}
		return nil
	}
}

// isWork tells counters of what a node is there for from all others.
func isWork(name string) bool {
	switch name {
	case "coded.pairs", "coded.pure", "sender.requests", "sender.replies", "reflector.replies",
		"socket.packets_sent", "socket.packets_received", "pairs.readings":
		return true
	}
	return strings.HasPrefix(name, "socket.sent_stamps.") || strings.HasPrefix(name, "socket.received_stamps.")
}

// begin starts the node; calls after the first do nothing.
func (p *prober) begin(host component.Host) error {
	if p.node != nil {
		return nil
	}
	if err := p.findTimeline(host); err != nil {
		return err
	}
	cfg, err := p.engine()
	if err != nil {
		return err
	}
	node, err := probe.New(cfg)
	if err != nil {
		return err
	}
	if err := node.Start(); err != nil {
		return err
	}
	p.node = node
	// The list of members can have another name for the node.
	p.log.Info("Probing", zap.String("host.name", p.name), zap.String("host.id", p.host.ID), zap.Strings("endpoints", p.cfg.Endpoints))
	if cfg.Key == nil {
		p.log.Warn("Packets are not signed: who can send them under a member's address can move its clock. Set auth::key_file or auth::key where the network is not yours alone")
	}
	return nil
}

func (p *prober) findTimeline(host component.Host) error {
	if p.cfg.TimelineID == nil {
		return nil
	}
	found, ok := host.GetExtensions()[*p.cfg.TimelineID]
	if !ok {
		return fmt.Errorf("find timeline: got no extension %q; want it under service::extensions", p.cfg.TimelineID)
	}
	provider, ok := found.(timeline.Provider)
	if !ok {
		return fmt.Errorf("find timeline: got extension %q, which holds none", p.cfg.TimelineID)
	}
	p.timeline = provider.Timeline()
	return nil
}

// engine returns what the node is told.
func (p *prober) engine() (probe.Config, error) {
	c := p.cfg
	locals, err := c.locals()
	if err != nil {
		return probe.Config{}, err
	}
	if p.host, err = hostid.Find(c.HostID); err != nil {
		return probe.Config{}, err
	}
	if p.name = cmp.Or(c.Node, p.host.Name); p.name == "" {
		return probe.Config{}, errors.New("find name of node: the host has none; want it as node")
	}
	key, err := c.key()
	if err != nil {
		return probe.Config{}, err
	}
	peers, err := c.source()
	if err != nil {
		return probe.Config{}, err
	}
	return probe.Config{
		NodeID: p.name, HostID: p.host.ID, BootID: p.host.Boot,
		Locals: locals, ListenPort: uint16(c.Port), Peers: &present{Source: peers, own: locals, log: p.log}, Refresh: c.Peers.Refresh, K: c.Neighbours, Seed: c.Seed,
		Rate: c.Rate, Paths: c.Paths, Window: c.Window, PairInterval: c.PairInterval, Key: key, Hardware: c.Hardware,
		Tolerance: c.PureWithin, MaxClocks: c.MaxClocks, Emit: p.window, Pairs: p.pairs,
		Warn: func(err error) { p.log.Warn("Part of the probe mesh does not work as configured", zap.Error(err)) },
	}, nil
}

// end stops the node and sends the metrics; calls after the first do nothing.
func (p *prober) end(ctx context.Context) error {
	if p.ended {
		return nil
	}
	p.ended = true
	stopped := p.out.stop(ctx)
	var err error
	if p.node != nil {
		err = p.node.Close()
		p.out.putMetrics(p.series, time.Now())
	}
	err = errors.Join(err, stopped())
	p.telemetry.Shutdown()
	return err
}

// window takes the outcome of one window.
func (p *prober) window(o probe.Outcome) {
	p.seen.Store(&o)
	now := time.Now()
	p.teller.counted(now, &o)
	p.teller.silent(now, o.Trips)
	p.feed(o.Edges, now)
	p.sendEdges(&o, now)
	p.series.record(now, &o)
	if now.Sub(p.measured) >= p.cfg.MetricsInterval && p.out.metricsIdle() {
		p.measured = now
		p.out.putMetrics(p.series, now)
	}
}

// pairs takes what is new of this host's own clocks between windows.
func (p *prober) pairs(o probe.Outcome) {
	now := time.Now()
	p.feed(o.Edges, now)
	p.sendEdges(&o, now)
}

// feed gives the edges to the timeline of this process.
func (p *prober) feed(edges []model.ClockEdge, now time.Time) {
	if p.timeline == nil {
		return
	}
	refused := 0
	var first error
	for i := range edges {
		if err := p.timeline.Observe(edges[i]); err != nil {
			refused++
			first = cmp.Or(first, err)
		}
	}
	if refused > 0 {
		p.telemetry.ReceiverOwdProbeEdgesLost.Add(context.Background(), int64(refused))
		p.teller.refused(now, "Edges refused by the timeline", refused, first)
	}
}

func (p *prober) sendEdges(o *probe.Outcome, now time.Time) {
	if p.out.logs != nil && len(o.Edges) > 0 {
		p.out.putEdges(p.edgeLogs(o, now))
	}
}

func (p *prober) edgeLogs(o *probe.Outcome, now time.Time) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr(semconv.HostID, p.host.ID)
	rl.Resource().Attributes().PutStr(semconv.HostName, p.name)
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(otelmap.ScopeName)
	sl.LogRecords().EnsureCapacity(len(o.Edges))
	for i := range o.Edges {
		lr := sl.LogRecords().AppendEmpty()
		lr.SetTimestamp(pcommon.NewTimestampFromTime(o.TimeOf(o.Edges[i].At)))
		lr.SetObservedTimestamp(pcommon.NewTimestampFromTime(now))
		clockmap.EdgeToLog(&o.Edges[i], lr)
	}
	return ld
}
