// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"context"
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

// A reader that stops in the middle of a copy leaves the rest to the next run, which reads it on although new
// files are read from their ends.
func TestShutdown_InACopyOfACutLog_NextRunReadsOn(t *testing.T) {
	// The numbers have as many digits, so that the log that begins anew is as long as it was.
	const first, read, last, anew = 1000, 4, 3000, 5000
	d, path := &disk{}, logPath(t)
	l := newLog(t, path)
	entered := make(chan struct{})
	sink, inCopy := &consumertest.TracesSink{}, false
	next, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		if sink.SpanCount() >= read && !inCopy {
			inCopy = true
			close(entered)
			<-ctx.Done() // until the reader stops
		}
		return sink.ConsumeTraces(ctx, td)
	})
	require.NoError(t, err)
	cfg := func(startAt string) *Config {
		cfg := withStorage(config(filepath.Dir(path)))
		cfg.BatchOps, cfg.StartAt = read, startAt
		return cfg
	}
	b := build(t, cfg(startBeginning), next)
	b.begin(host{disk: d})
	l.write(lines(0, first, first+read))
	b.await(read)
	require.NoError(t, os.WriteFile(path+".old.log", []byte(lines(0, first, last)), 0o600))
	_, err = l.f.WriteAt([]byte(lines(0, anew, anew+read)), 0)
	require.NoError(t, err)
	<-entered
	b.stop()
	delivered := sink.SpanCount()
	require.Less(t, delivered, last-first, "the rest is longer than what is read at once")
	b = start(t, cfg(startEnd), host{disk: d})
	want := last - first - delivered + read
	require.Eventually(t, func() bool { return b.spans.SpanCount() >= want }, patience, time.Millisecond)
	b.stop()
	got := b.seqs()
	assert.Len(t, got, want)
	assert.Equal(t, want, b.spans.SpanCount(), "each once")
	assert.Zero(t, got[first], "it was delivered before")
}

// What a run could not deliver at its end is the next run's, where a storage says how far it came.
func TestShutdown_NextComponentNeverReturns_NextRunReadsAgain(t *testing.T) {
	stuck, d := delivertest.NewStuck(t), &disk{}
	path := logPath(t)
	require.NoError(t, os.WriteFile(path, []byte(lines(0, 0, 4)), 0o600))
	b := build(t, withStorage(config(path)), stuck)
	b.begin(host{disk: d})
	<-stuck.Entered
	require.Error(t, delivertest.Shutdown(t, b.faces[0].Shutdown))
	assert.Zero(t, b.counter("operations_dropped"))
	b = start(t, withStorage(config(path)), host{disk: d})
	b.await(4)
	b.stop()
	b.once(0, 4)
}
