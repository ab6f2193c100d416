// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/connector/desyncconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	kit "github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/desync/watch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// hub is what the instances of one configuration have in common.
type hub struct {
	cfg       *Config
	id        component.ID
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	interval  *kit.Interval
	begin     sync.Once

	// Instances that take a signal; constant after the first Start.
	spans, records int

	inbox inbox

	// sending keeps events in order on their way out. It is held while a consumer has them,
	// and nobody who brings data takes it.
	sending  sync.Mutex
	series   *measures
	flushed  time.Time // when metrics were sent last
	repeated time.Time // when standing findings were
	refused  refused
	kept     *kit.States // nil: nothing is kept

	// watching guards the watch. It is held while a job is judged, so that who brings data
	// does not wait for it. Taken after sending.
	watching sync.Mutex
	watch    *watch.Watch

	gate *deliver.Gate

	outlets sync.Mutex // guards what follows; taken last
	logs    outlet[consumer.Logs]
	metrics outlet[consumer.Metrics]
	giveUp  context.CancelFunc // of what the interval sends; nil while it sends nothing
	leaving int                // instances that wait for sending

	lost      atomic.Int64                // findings that the consumer refused
	forgotten atomic.Int64                // those of them for which there was no room to be told again
	seen      atomic.Pointer[watch.Stats] // read by telemetry, which must not wait
}

// outlet is where one signal goes: next, as long as any instance is open.
type outlet[C any] struct {
	next C
	open int
}

// now is the outlet without its consumer where no instance is open any more.
func (o outlet[C]) now() outlet[C] {
	if o.open == 0 {
		return outlet[C]{}
	}
	return o
}

func newHub(cfg *Config, id component.ID, set component.TelemetrySettings) (*hub, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	h := &hub{
		cfg: cfg, id: id, logger: set.Logger, telemetry: telemetry, gate: deliver.NewGate(set.Logger), watch: watch.New(cfg.watch()), series: newMeasures(cfg.MaxSeries),
	}
	h.inbox.limit = cfg.maxBytes() / inboxShare
	h.interval = kit.NewInterval(cfg.CheckInterval, h.tick)
	h.snapshot()
	return h, h.observe()
}

func (h *hub) toLogs(feeds *int, next consumer.Logs) *face {
	h.outlets.Lock()
	defer h.outlets.Unlock()
	h.logs.next = h.gate.Logs(next)
	h.logs.open++
	*feeds++
	return &face{first: *feeds == 1, leave: h.leaveLogs}
}

func (h *hub) toMetrics(feeds *int, next consumer.Metrics) *face {
	h.outlets.Lock()
	defer h.outlets.Unlock()
	h.metrics.next = h.gate.Metrics(next)
	h.metrics.open++
	*feeds++
	return &face{first: *feeds == 1, leave: h.leaveMetrics}
}

// start takes what the run before kept, and begins the interval; calls after the first do nothing.
func (h *hub) start(ctx context.Context, host component.Host) (err error) {
	h.begin.Do(func() {
		at := kit.Storage{Extension: h.cfg.StorageID, Kind: component.KindConnector, Component: h.id}
		h.kept, err = kit.OpenStates(ctx, host, at, &h.watching, map[string]kit.State{"findings": h.watch}, h.storageFailed)
		if err == nil {
			h.interval.Start()
		}
	})
	return err
}

func (h *hub) storageFailed(err error) {
	h.telemetry.ConnectorDesyncStorageFailures.Add(context.Background(), 1)
	h.logger.Warn("Storage of findings fails", zap.Error(err))
}

// tick looks whether something stands for too long, and gives out what has changed.
func (h *hub) tick(now time.Time) {
	if !h.sending.TryLock() {
		return // the last words are being said
	}
	defer h.sending.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	h.outlets.Lock()
	logs, metrics, leaving := h.logs.now(), h.metrics.now(), h.leaving > 0
	h.giveUp = cancel
	h.outlets.Unlock()
	if leaving {
		return
	}
	changed, standing, md := h.judge(now)
	if len(changed) > 0 || md.MetricCount() > 0 { // before they are sent: no finding is sent that a restart does not know
		h.kept.Save(ctx)
	}
	err := errors.Join(h.sendFindings(ctx, &logs, changed), h.sendFindings(ctx, &logs, standing), sendMetrics(ctx, &metrics, md))
	if err != nil {
		h.logger.Warn("send what hangs on the interval", zap.Error(err))
	}
}

// judge takes what was brought, and returns what is to be given out: consumers are called
// without the watch.
func (h *hub) judge(now time.Time) (changed, standing []model.Finding, md pmetric.Metrics) {
	h.watching.Lock()
	defer h.watching.Unlock()
	h.inbox.drain(h.watch)
	md = pmetric.NewMetrics()
	changed = h.watch.Tick(now)
	if now.Sub(h.repeated) >= h.cfg.RepeatInterval {
		h.repeated = now
		standing = append(h.watch.Standing(), h.refused.closed()...)
	}
	if len(changed) > 0 || now.Sub(h.flushed) >= h.cfg.FlushInterval {
		md = h.measure(now)
	}
	h.snapshot()
	return changed, standing, md
}

// leaveLogs gives out, with the last instance that can, what is to be said.
func (h *hub) leaveLogs(ctx context.Context) (err error) {
	h.outlets.Lock()
	h.logs.open--
	out := h.logs
	h.outlets.Unlock()
	if out.open == 0 {
		err = h.lastly(ctx, func(last context.Context) error {
			h.watching.Lock()
			h.inbox.drain(h.watch)
			changed := append(h.refused.all(), h.watch.Flush(time.Now())...)
			h.snapshot()
			h.watching.Unlock()
			h.kept.Save(ctx)
			return h.sendFindings(last, &out, changed)
		})
	}
	h.end()
	return err
}

func (h *hub) leaveMetrics(ctx context.Context) (err error) {
	h.outlets.Lock()
	h.metrics.open--
	out := h.metrics
	h.outlets.Unlock()
	if out.open == 0 {
		err = h.lastly(ctx, func(last context.Context) error {
			h.watching.Lock()
			h.inbox.drain(h.watch)
			md := h.measure(time.Now())
			h.watching.Unlock()
			return sendMetrics(last, &out, md)
		})
	}
	h.end()
	return err
}

// lastly gives out what is left, in place of what the interval sends: a consumer that does
// not take that must not hold up the end.
func (h *hub) lastly(ctx context.Context, give func(context.Context) error) error {
	last, stopped := h.gate.Stop(ctx)
	h.outlets.Lock()
	h.leaving++
	if h.giveUp != nil {
		h.giveUp()
	}
	h.outlets.Unlock()
	h.sending.Lock()
	defer h.sending.Unlock()
	h.outlets.Lock()
	h.leaving--
	h.outlets.Unlock()
	err := give(last)
	return errors.Join(err, stopped())
}

// end stops the interval once nothing goes out any more.
func (h *hub) end() {
	h.outlets.Lock()
	last := h.logs.open == 0 && h.metrics.open == 0
	h.outlets.Unlock()
	if last {
		h.interval.Stop(func() {
			if err := h.kept.Close(context.Background()); err != nil {
				h.storageFailed(err)
			}
			h.telemetry.Shutdown()
		})
	}
}

// sendFindings gives findings out. What the consumer refuses is counted, and told again with what
// stands, or at the end: what is closed, too, of which nobody would hear otherwise. One that took
// nothing until it was told to stop is not asked again.
func (h *hub) sendFindings(ctx context.Context, to *outlet[consumer.Logs], findings []model.Finding) error {
	if len(findings) == 0 || to.next == nil {
		return nil
	}
	err := to.next.ConsumeLogs(ctx, otelmap.FindingsToLogs(findings))
	switch {
	case err == nil:
		h.refused.taken(findings)
	case ctx.Err() == nil:
		h.forgotten.Add(h.refused.add(findings))
		fallthrough
	default:
		h.lost.Add(int64(len(findings)))
	}
	return err
}

// measure takes the values of all series; one that is lost is repeated.
func (h *hub) measure(now time.Time) pmetric.Metrics {
	h.flushed = now
	h.series.set(h.watch, now)
	md := pmetric.NewMetrics()
	otelmap.WriteMetrics(md, now, h.series.all()...)
	return md
}

func sendMetrics(ctx context.Context, to *outlet[consumer.Metrics], md pmetric.Metrics) error {
	if to.next == nil || md.MetricCount() == 0 {
		return nil
	}
	return to.next.ConsumeMetrics(ctx, md)
}

// snapshot is called with the watch.
func (h *hub) snapshot() {
	s := h.watch.Stats()
	h.seen.Store(&s)
}
