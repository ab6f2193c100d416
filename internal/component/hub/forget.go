// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/jobs"
)

// joinJobs has the engine forget the jobs that the configured extension names.
func (h *Hub) joinJobs(host component.Host) error {
	if h.engine.Jobs == nil || h.engine.Forget == nil {
		return nil
	}
	service, err := jobs.Find(host, *h.engine.Jobs)
	if err != nil {
		return err //nolint:wrapcheck // says what it is
	}
	h.leaveJobs = service.Join(shared{h}, h.engine.Collects)
	return nil
}

// shared is a hub to a service that names jobs.
type shared struct{ *Hub }

// Forget has the engine forget jobs, after what came of them before.
func (s shared) Forget(ctx context.Context, ids []string) {
	if err := s.between(ctx, func() { s.engine.Forget(ids) }); err != nil {
		s.log.Warn("Jobs that another collector has now are not forgotten: their open steps may be concluded twice.",
			zap.Strings("jobs", ids), zap.Error(err))
	}
}

// Suspend has the engine conclude nothing that is open.
func (s shared) Suspend(ctx context.Context) { s.suspend(ctx, true) }

// Resume has the engine go on.
func (s shared) Resume(ctx context.Context) { s.suspend(ctx, false) }

func (s shared) suspend(ctx context.Context, suspended bool) {
	if s.engine.Suspend == nil {
		return
	}
	if err := s.between(ctx, func() { s.engine.Suspend(suspended) }); err != nil {
		s.log.Warn("The analysis does not learn whether its source is cut off: it may conclude open steps that are read again.",
			zap.Bool("cut_off", suspended), zap.Error(err))
	}
}

// between calls the engine after what came before, and returns once it has.
func (h *Hub) between(ctx context.Context, call func()) error {
	w := &waiting{used: make(chan struct{})}
	w.input.Apply = func(time.Time) Output {
		call()
		return Output{}
	}
	for {
		err := h.inbox.put(ctx, w)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrBusy) || ctx.Err() != nil {
			return err
		}
	}
	h.work()
	if err := h.await(ctx, w); err != nil {
		return err
	}
	return w.failed()
}
