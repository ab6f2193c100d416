// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// A logs pipeline that ignores its context holds up neither what the metrics get last nor the end of
// the collector.
func TestShutdown_LogsNeverReturn_MetricsGetTheLast(t *testing.T) {
	stuck := delivertest.NewStuck(t)
	r := newRig(t, stuck, nil)
	h := r.faces[0].(*face).handle.Value
	of := rankOf(0)
	r.complete(t, &of, reduce(0, time.Now()))
	h.sending.Lock()
	h.refused.add([]model.Finding{{ID: "a", Status: model.StatusClosed}})
	h.sending.Unlock()
	go h.tick(time.Now().Add(h.cfg.RepeatInterval))
	<-stuck.Entered
	require.ErrorIs(t, delivertest.Shutdown(t, func(ctx context.Context) (err error) {
		for _, f := range r.faces {
			err = errors.Join(err, f.Shutdown(ctx))
		}
		return err
	}), context.DeadlineExceeded)
	assert.NotEmpty(t, r.metrics.AllMetrics())
	assert.Positive(t, h.lost.Load())
}
