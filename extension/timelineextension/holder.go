// SPDX-License-Identifier: Apache-2.0

package timelineextension

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/extension/timelineextension/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/health"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/component/web"
	"github.com/lockstep-otel/lockstep/internal/timeline"
)

// holder holds the timeline. Components may use it as soon as it is made.
type holder struct {
	cfg       *Config
	set       extension.Settings
	telemetry *metadata.TelemetryBuilder
	timeline  *timeline.Timeline

	status health.Status // shows why the timeline cannot be kept
	store  *hub.Value
	saving sync.Mutex // of two saves the later one has the later state
	server *http.Server
	served chan struct{} // closed when the server has ended

	intervals []*hub.Interval
	warned    bool // that nothing says whether a shared timeline solves
}

var (
	_ extension.Extension             = (*holder)(nil)
	_ extensioncapabilities.Dependent = (*holder)(nil)
	_ timeline.Provider               = (*holder)(nil)
)

func newHolder(cfg *Config, set extension.Settings) (*holder, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	h := &holder{cfg: cfg, set: set, telemetry: telemetry, timeline: timeline.New(cfg.options())}
	return h, h.observe()
}

// Timeline implements timeline.Provider.
func (h *holder) Timeline() *timeline.Timeline { return h.timeline }

// Dependencies tells the collector to start the storage first.
func (h *holder) Dependencies() []component.ID {
	if h.cfg.Storage == nil {
		return nil
	}
	return []component.ID{*h.cfg.Storage}
}

// Start implements component.Component.
func (h *holder) Start(ctx context.Context, host component.Host) error {
	h.status.Start(host)
	if err := h.restore(ctx, host); err != nil {
		return err
	}
	if err := h.serve(ctx, host); err != nil {
		return err
	}
	h.every(h.cfg.SolveInterval, h.solve)
	if h.store != nil {
		h.every(h.cfg.SaveInterval, func(time.Time) { h.save(context.Background()) })
	}
	return h.readStates()
}

func (h *holder) every(d time.Duration, call func(time.Time)) {
	i := hub.NewInterval(d, call)
	i.Start()
	h.intervals = append(h.intervals, i)
}

// askedWithin is for how long after what other gateways know was read nothing may say whether this one solves.
const askedWithin = time.Minute

func (h *holder) solve(time.Time) {
	begin := time.Now()
	if !h.warned && h.timeline.Unasked(begin, askedWithin) {
		h.warned = true
		h.set.Logger.Warn("Nothing says whether this collector solves for the clocks, so it does not. Set timeline at the receiver job_kafka that reads spans as a member of a group, too.")
	}
	out := h.timeline.Advance(begin)
	if h.store != nil && len(out.Findings) > 0 { // a restart knows what is sent
		h.save(context.Background())
	}
	h.telemetry.ExtensionTimelineSolveDuration.Record(context.Background(), time.Since(begin).Seconds())
}

const stateKey = "timeline"

// restore reads what the run before kept. A state that cannot be used costs that
// state, and is counted. The next save would replace one that the storage does not give: then there
// is no start.
func (h *holder) restore(ctx context.Context, host component.Host) error {
	client, err := hub.OpenStorage(ctx, host, h.cfg.Storage, component.KindExtension, h.set.ID)
	if err != nil || client == nil {
		return err
	}
	store := hub.NewValue(client, stateKey)
	data, err := store.Load(ctx)
	if err != nil && !errors.Is(err, hub.ErrTooLarge) {
		return errors.Join(err, store.Close(ctx))
	}
	h.store = store
	if err == nil && data != nil {
		err = h.timeline.Restore(data)
	}
	if err != nil {
		h.telemetry.ExtensionTimelineRestoreFailures.Add(ctx, 1)
		h.set.Logger.Warn("start without the timeline of the run before", zap.Error(err))
	}
	return nil
}

func (h *holder) save(ctx context.Context) {
	h.saving.Lock()
	defer h.saving.Unlock()
	data, err := h.timeline.Snapshot()
	if data != nil {
		saved := h.store.Save(ctx, data)
		h.status.Set("storage", health.ExplainWrite(saved))
		err = errors.Join(err, saved)
	}
	if err != nil {
		h.telemetry.ExtensionTimelineSaveFailures.Add(ctx, 1)
		h.set.Logger.Warn("keep the timeline", zap.Error(err))
	}
}

func (h *holder) serve(ctx context.Context, host component.Host) error {
	if h.cfg.NetAddr.Endpoint == "" {
		return nil
	}
	listener, err := h.cfg.ToListener(ctx)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", h.cfg.NetAddr.Endpoint, err)
	}
	h.server, err = web.NewServer(ctx, &h.cfg.ServerConfig, web.NewPeers(web.DefaultLimits()), host, h.set.TelemetrySettings, newHandler(h.timeline))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	h.set.Logger.Info("serve the timeline", zap.String("address", listener.Addr().String()))
	h.served = make(chan struct{})
	go h.listen(listener, host)
	return nil
}

func (h *holder) listen(listener net.Listener, host component.Host) {
	defer close(h.served)
	if err := h.server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		componentstatus.ReportStatus(host, componentstatus.NewRecoverableErrorEvent(err))
	}
}

// Shutdown implements component.Component. It keeps the timeline as it is then.
func (h *holder) Shutdown(ctx context.Context) error {
	for _, i := range h.intervals {
		i.Stop(func() {})
	}
	h.intervals = nil
	var errs []error
	if h.served != nil {
		errs = append(errs, h.server.Close())
		<-h.served
		h.served = nil
	}
	if h.store != nil {
		h.save(ctx)
		errs = append(errs, h.store.Close(ctx))
		h.store = nil
	}
	h.telemetry.Shutdown()
	return errors.Join(errs...)
}
