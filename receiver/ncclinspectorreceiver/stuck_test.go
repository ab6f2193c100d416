// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

func TestShutdown_NextComponentNeverReturns_KeepsItsDeadline(t *testing.T) {
	stuck := delivertest.NewStuck(t)
	path := logPath(t)
	require.NoError(t, os.WriteFile(path, []byte(lines(0, 0, 4)), 0o600))
	b := build(t, config(path), stuck)
	b.begin(host{})
	<-stuck.Entered
	require.ErrorIs(t, delivertest.Shutdown(t, b.faces[0].Shutdown), context.DeadlineExceeded)
	select {
	case <-b.rd.finished:
	default:
		assert.Fail(t, "the reader goes on")
	}
	assert.EqualValues(t, 4, b.counter("operations_dropped"))
}

// A reader that is told to stop in the middle of a copy leaves the rest to the next run.
func TestShutdown_InACopyOfACutLog_NextRunReadsOn(t *testing.T) {
	const before, all = 4, 2000 // the rest of the copy is longer than what is read at once
	d, path := &disk{}, logPath(t)
	l := newLog(t, path)
	entered, release := make(chan struct{}), make(chan struct{})
	sink, inCopy := &consumertest.TracesSink{}, false
	next, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		if sink.SpanCount() >= before && !inCopy {
			inCopy = true
			close(entered)
		}
		if inCopy {
			<-release
			return io.ErrClosedPipe
		}
		return sink.ConsumeTraces(ctx, td)
	})
	require.NoError(t, err)
	cfg := func() *Config {
		cfg := withStorage(config(filepath.Dir(path)))
		cfg.BatchOps = before
		return cfg
	}
	b := build(t, cfg(), next)
	b.begin(host{d})
	l.write(lines(0, 0, before))
	b.await(before)
	require.Greater(t, len(lines(0, before, all)), 2*chunkBytes)
	require.NoError(t, os.WriteFile(path+".old.log", []byte(lines(0, 0, all)), 0o600))
	require.NoError(t, os.Truncate(path, 0))
	<-entered
	time.AfterFunc(10*time.Millisecond, func() { close(release) })
	b.stop()
	b = start(t, cfg(), host{d})
	b.await(all - before - 1)
	b.stop()
	got := b.seqs()
	for seq := int64(before); seq < all; seq++ {
		assert.Positive(t, got[seq], "collective %d", seq)
	}
	assert.Zero(t, got[0], "it was delivered before")
}

// What a run could not deliver at its end is the next run's, where a storage says how far it came.
func TestShutdown_NextComponentNeverReturns_NextRunReadsAgain(t *testing.T) {
	stuck, d := delivertest.NewStuck(t), &disk{}
	path := logPath(t)
	require.NoError(t, os.WriteFile(path, []byte(lines(0, 0, 4)), 0o600))
	b := build(t, withStorage(config(path)), stuck)
	b.begin(host{d})
	<-stuck.Entered
	require.Error(t, delivertest.Shutdown(t, b.faces[0].Shutdown))
	assert.Zero(t, b.counter("operations_dropped"))
	b = start(t, withStorage(config(path)), host{d})
	b.await(4)
	b.stop()
	b.once(0, 4)
}
