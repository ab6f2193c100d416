// SPDX-License-Identifier: Apache-2.0

package torchtracereceiver

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/lockstep-otel/lockstep/internal/replay"
)

// traceReceiver is the lifecycle: one goroutine that reads files until it has
// read all of them, or until it is told to stop.
type traceReceiver struct {
	cfg    *Config
	reader *reader
	// ended tells a replay that this input is over; in watch mode nobody waits.
	ended    func()
	cancel   context.CancelFunc // nil before Start
	finished chan struct{}
}

func newReceiver(set receiver.Settings, cfg *Config, next consumer.Traces) (*traceReceiver, error) {
	rd, err := newReader(set, cfg, next)
	if err != nil {
		return nil, err
	}
	r := &traceReceiver{cfg: cfg, reader: rd, ended: func() {}, finished: make(chan struct{})}
	if cfg.Mode == modeOnce {
		r.ended = replay.Register(set.ID.String())
	}
	return r, nil
}

// Start begins to read and returns. The collector's context ends with the call,
// so reading has one of its own.
func (r *traceReceiver) Start(_ context.Context, host component.Host) error {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	s := newStatus(host, r.reader.log)
	go func() {
		defer close(r.finished)
		defer r.ended()
		if r.cfg.Mode == modeWatch {
			r.reader.watch(ctx, s)
		} else {
			r.reader.readOnce(ctx, s)
		}
	}()
	return nil
}

// Shutdown stops reading and waits for the batch that is being delivered.
func (r *traceReceiver) Shutdown(ctx context.Context) error {
	_, stopped := r.reader.out.Stop(ctx)
	if r.cancel != nil {
		r.cancel()
		select {
		case <-r.finished:
		case <-ctx.Done():
			return errors.Join(stopped(), fmt.Errorf("stop reading traces: %w", ctx.Err()))
		}
	}
	r.ended()
	r.reader.telemetry.Shutdown()
	return stopped()
}
