// SPDX-License-Identifier: Apache-2.0

package findingsconnector

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/connector/findingsconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	kit "github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/incident"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/series"
)

// hub is what the instances of one configuration have in common.
type hub struct {
	cfg       *Config
	id        component.ID
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	begin     sync.Once

	// Outlets are attached before Start and constant afterwards.
	out *deliver.Outlets

	// order holds a value while events are made, kept and sent, so that they are sent in the order in which they were made.
	order chan struct{}

	mu     sync.Mutex // guards what follows; no consumer is called with it
	engine *incident.Engine
	counts *series.Metric
	own    ownStats
	kept   *kit.States // nil: nothing is kept

	lost atomic.Int64 // findings that a consumer did not take

	seen atomic.Pointer[snapshot] // read by telemetry, which must not wait for the engine

	interval *kit.Interval
}

// ownStats count what the engine does not see.
type ownStats struct{ foreign, badAttributes, cut int64 }

// maxWaiting is how many bytes of findings wait for a consumer that does not return.
const maxWaiting = 16 << 20

type snapshot struct {
	engine incident.Stats
	own    ownStats
	open   int
}

func newHub(cfg *Config, id component.ID, set component.TelemetrySettings) (*hub, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	h := &hub{
		cfg:       cfg,
		id:        id,
		logger:    set.Logger,
		telemetry: telemetry,
		out:       deliver.NewOutlets(set.Logger, maxWaiting),
		engine:    incident.NewEngine(cfg.engine()),
		counts:    newCounts(cfg.MaxSeries),
		order:     make(chan struct{}, 1),
	}
	h.interval = kit.NewInterval(cfg.FlushInterval, h.tick)
	h.snapshot()
	return h, h.observe()
}

// start takes what the run before kept, and begins the interval; calls after the first do nothing.
func (h *hub) start(ctx context.Context, host component.Host) (err error) {
	h.begin.Do(func() {
		at := kit.Storage{Extension: h.cfg.StorageID, Kind: component.KindConnector, Component: h.id}
		h.kept, err = kit.OpenStates(ctx, host, at, &h.mu, map[string]kit.State{"findings": h.engine, keyOpened: h.engine.Opened()}, h.storageFailed)
		if err == nil {
			h.mu.Lock()
			h.snapshot()
			h.mu.Unlock()
			h.interval.Start()
		}
	})
	return err
}

func (h *hub) storageFailed(err error) {
	h.telemetry.ConnectorFindingsStorageFailures.Add(context.Background(), 1)
	h.logger.Warn("Storage of findings fails", zap.Error(err))
}

// tick repeats the metrics and closes what has ended.
func (h *hub) tick(now time.Time) {
	if err := h.expire(now).Wait(context.Background()); err != nil {
		h.logger.Warn("send findings on the interval", zap.Error(err))
	}
	h.kept.Save(context.Background())
}

func (h *hub) inOrder(do func()) {
	h.order <- struct{}{}
	defer func() { <-h.order }()
	do()
}

func (h *hub) expire(now time.Time) (all deliver.Sent) {
	h.inOrder(func() { all = h.close(now) })
	return all
}

func (h *hub) close(now time.Time) deliver.Sent {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cfg.SeriesExpiration > 0 {
		h.counts.Expire(now.Add(-h.cfg.SeriesExpiration))
	}
	return append(h.send(h.engine.Tick(now), now), h.sendMetrics(now)...)
}

// stop ends the interval and closes all findings; those that are kept for the next start stay open, and
// their spans are written as they are. Calls after the first do nothing.
func (h *hub) stop(ctx context.Context) (err error) {
	last, stopped := h.out.Stop(ctx)
	h.interval.Stop(func() {
		err = errors.Join(h.flush().Wait(last), h.kept.Close(ctx))
	})
	err = errors.Join(err, stopped())
	h.telemetry.Shutdown()
	return err
}

func (h *hub) flush() deliver.Sent {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept == nil {
		return h.send(h.engine.Flush(), time.Now())
	}
	due := h.engine.Spans()
	if len(due) == 0 {
		return nil
	}
	return h.out.PutTraces(otelmap.FindingsToTraces(due), func(int) { h.lost.Add(int64(len(due))) })
}

// consume takes the findings among the records. What the consumers refuse is lost and counted: a
// repetition would be taken for a duplicate, so the error tells the sender not to repeat. What a
// consumer that is stuck refuses later is only counted.
func (h *hub) consume(ctx context.Context, ld plog.Logs) error {
	var all deliver.Sent
	var unsaved bool
	h.inOrder(func() { all, unsaved = h.take(context.WithoutCancel(ctx), ld) })
	err := all.Wait(ctx)
	if unsaved { // behind the delivery: where a kill comes between, it is received and reported once more
		h.kept.SaveSoon(context.WithoutCancel(ctx))
	}
	if err != nil {
		return consumererror.NewPermanent(err)
	}
	return nil
}

// keyOpened is where findings that are new are kept.
const keyOpened = "opened"

// take returns the deliveries, and whether the state to save has changed. It saves a new finding before it sends it, so
// that no restart reports it as new again.
func (h *hub) take(ctx context.Context, ld plog.Logs) (all deliver.Sent, unsaved bool) {
	now := time.Now()
	events := h.receive(ld, now)
	if slices.ContainsFunc(events, func(ev incident.Event) bool { return ev.New && ev.Finding.ID != "" }) {
		h.kept.SaveOne(ctx, keyOpened)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.send(events, now), len(events) > 0
}

func (h *hub) receive(ld plog.Logs, now time.Time) (events []incident.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var problems otelmap.Problems
	for _, f := range h.findings(ld, &problems) {
		cut := h.engine.Stats().Cut
		events = append(events, h.engine.Add(f.finding, now)...)
		if f.cut || h.engine.Stats().Cut > cut {
			h.own.cut++
		}
	}
	h.own.badAttributes += problems.Count()
	return events
}

// received is a finding, and whether reading it has cut something.
type received struct {
	finding model.Finding
	cut     bool
}

func (h *hub) findings(ld plog.Logs, problems *otelmap.Problems) []received {
	var findings []received
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				before := problems.TextsCut()
				f, ok := otelmap.LogToFinding(lr, problems)
				if !ok {
					h.own.foreign++
					continue
				}
				findings = append(findings, received{f, problems.TextsCut() > before})
			}
		}
	}
	return findings
}

// send puts events to all consumers; the caller holds the lock.
func (h *hub) send(events []incident.Event, now time.Time) (all deliver.Sent) {
	defer h.snapshot()
	if len(events) == 0 {
		return nil
	}
	findings, closed := split(events)
	all = h.out.PutLogs(otelmap.FindingsToLogs(findings), func(int) { h.lost.Add(int64(len(findings))) })
	if len(closed) > 0 {
		all = append(all, h.out.PutTraces(otelmap.FindingsToTraces(closed), func(int) { h.lost.Add(int64(len(closed))) })...)
	}
	count(h.counts, events, now)
	return append(all, h.sendMetrics(now)...)
}

// sendMetrics puts all series. Nothing is lost where a consumer fails: they are cumulative.
func (h *hub) sendMetrics(now time.Time) deliver.Sent {
	return h.out.PutMetrics(func() pmetric.Metrics {
		md := pmetric.NewMetrics()
		otelmap.WriteMetrics(md, now, h.counts)
		return md
	})
}

func split(events []incident.Event) (all, closed []model.Finding) {
	for i := range events {
		all = append(all, events[i].Finding)
		if events[i].Closed {
			closed = append(closed, events[i].Finding)
		}
	}
	return all, closed
}

func (h *hub) snapshot() {
	h.seen.Store(&snapshot{engine: h.engine.Stats(), own: h.own, open: h.engine.Open()})
}
