// SPDX-License-Identifier: Apache-2.0

package timelineextension

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/clockstate"
	"github.com/lockstep-otel/lockstep/internal/hostid"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// reader reads one time service of this host, as an edge of its real-time clock.
type reader struct {
	daemon string
	read   func(ctx context.Context) (model.ClockEdge, bool, error)
	failed bool // the last time: told once, until it works again
}

// askLimit bounds how long a daemon is waited for: it answers in microseconds, or
// not at all.
const askLimit = time.Second

// readStates reads the configured time services, each at its own pace.
func (h *holder) readStates() error {
	state := h.cfg.State
	if state.Chrony == nil && state.PTP == nil {
		return nil
	}
	host, err := hostid.Find(h.cfg.HostID)
	if err != nil {
		return err
	}
	if state.Chrony != nil {
		c := state.Chrony.withDefaults()
		h.readEvery(c.Interval, &reader{daemon: model.EdgeChrony, read: chronyReader(c.Endpoint, host.Realtime())})
	}
	if state.PTP != nil {
		c := state.PTP.withDefaults()
		h.readEvery(c.Interval, &reader{daemon: model.EdgePTP, read: ptpReader(c, host.Realtime())})
	}
	return nil
}

func (h *holder) readEvery(d time.Duration, r *reader) {
	h.every(d, func(time.Time) { h.readState(r) })
}

func (h *holder) readState(r *reader) {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	edge, ok, err := r.read(ctx)
	if err == nil && ok {
		err = h.timeline.Observe(edge)
	}
	if err != nil {
		h.telemetry.ExtensionTimelineStateFailures.Add(ctx, 1, metric.WithAttributes(attribute.String("daemon", r.daemon)))
		if !r.failed {
			h.set.Logger.Warn("read a time service", zap.String("daemon", r.daemon), zap.Error(err))
		}
	}
	r.failed = err != nil
}

func chronyReader(endpoint, realtime string) func(context.Context) (model.ClockEdge, bool, error) {
	return func(ctx context.Context) (model.ClockEdge, bool, error) {
		before := time.Now().UnixNano()
		tracking, err := clockstate.ReadChrony(ctx, endpoint)
		if err != nil {
			return model.ClockEdge{}, false, err
		}
		edge, ok := tracking.Edge(realtime, before, time.Now().UnixNano())
		return edge, ok, nil
	}
}

func ptpReader(c PTPConfig, realtime string) func(context.Context) (model.ClockEdge, bool, error) {
	return func(ctx context.Context) (model.ClockEdge, bool, error) {
		status, err := clockstate.ReadPTP(ctx, c.Endpoint, c.Domain)
		if err != nil || status.Hardware {
			// The NIC's clock is another one; phc2sys tells nothing of its own.
			return model.ClockEdge{}, false, err
		}
		edge, ok := status.Edge(realtime, time.Now().UnixNano(), c.Interval.Nanoseconds())
		return edge, ok, nil
	}
}
