// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// moody takes, refuses or holds what it is given.
type moody struct {
	atomic.Pointer[string]
	next func() consumer.Logs
}

func (m *moody) be(mood string) { m.Store(&mood) }

func (m *moody) consumer(t *testing.T) consumer.Logs {
	t.Helper()
	next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
		switch *m.Load() {
		case "refuses":
			return errors.New("memory is short")
		case "holds":
			<-ctx.Done()
			return ctx.Err()
		}
		return m.next().ConsumeLogs(ctx, ld)
	})
	require.NoError(t, err)
	return next
}

// A hang that was refused is told at the end, where that comes before it is repeated.
func TestARefusedHangIsToldAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		m := &moody{next: func() consumer.Logs { return &r.logs }}
		m.be("refuses")
		r = newRig(t, m.consumer(t), nil)
		r.hang(t)
		require.Empty(t, r.findings())
		m.be("takes")
		r.stop(t)
		require.Len(t, r.findings(), 1)
		assert.Equal(t, model.StatusOpen, r.findings()[0].Status)
	})
}

// What was told since is not told at the end.
func TestWhatWasRefusedAndTakenSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		m := &moody{next: func() consumer.Logs { return &r.logs }}
		m.be("refuses")
		r = newRig(t, m.consumer(t), nil)
		r.hang(t)
		m.be("takes")
		time.Sleep(newDefaultConfig().RepeatInterval)
		synctest.Wait()
		n := len(r.findings())
		require.Positive(t, n)
		assert.Zero(t, counter(t, r, "otelcol_connector_desync_findings_forgotten"))
		r.stop(t)
		assert.Len(t, r.findings(), n)
	})
}

// One that refuses, and takes nothing at the end, holds that up for seconds, whoever waits.
func TestTheEndIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &moody{}
		m.be("refuses")
		r := newRig(t, m.consumer(t), nil)
		r.hang(t)
		m.be("holds")
		began := time.Now()
		for _, f := range r.faces {
			if err := f.Shutdown(context.Background()); err != nil {
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			}
		}
		assert.LessOrEqual(t, time.Since(began), deliver.ShutdownLimit)
	})
}

func TestRefusedFindingsAreBounded(t *testing.T) {
	var r refused
	some := make([]model.Finding, maxRefused+3)
	for i := range some {
		some[i] = model.Finding{ID: strconv.Itoa(i), Status: model.StatusOpen}
	}
	assert.Equal(t, int64(3), r.add(some))
	assert.Len(t, r.all(), maxRefused)
	again := model.Finding{ID: "5", Status: model.StatusClosed}
	assert.Zero(t, r.add([]model.Finding{again}))
	assert.Equal(t, []model.Finding{again}, r.closed())
	r.taken([]model.Finding{again, {ID: "unknown"}})
	assert.Empty(t, r.closed())
	assert.Len(t, r.all(), maxRefused-1)
}
