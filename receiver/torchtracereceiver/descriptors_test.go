// SPDX-License-Identifier: Apache-2.0

//go:build unix

package torchtracereceiver

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
)

// While a process has no descriptor left, as when connections use them up, a file cannot be
// opened. It does not change afterwards, and is read all the same.
func TestWatch_NoDescriptorsForAWhile_FileIsReadLater(t *testing.T) {
	content, err := os.ReadFile(recorded(t, 0))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "rank0.json.gz")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	var sink consumertest.TracesSink
	b := build(t, watching(path), &sink)
	w := &watcher{reader: b.reader, status: newStatus(b.host, b.reader.log)}
	w.poll(t.Context())

	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	w.poll(t.Context())
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	assert.Equal(t, int64(1), b.counter(t, "files_failed", "unreadable"))
	assert.Zero(t, sink.SpanCount())

	w.poll(t.Context())
	assert.Positive(t, sink.SpanCount())
	assert.Equal(t, int64(1), b.counter(t, "files_read"))
	w.poll(t.Context())
	assert.Equal(t, int64(1), b.counter(t, "files_read"), "once")
}
