// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reportexporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A FIFO that is not read delays neither the start nor the end. Once the exporter has ended, the FIFO has
// whole findings, and those that are missing are as many as the end reports.
func TestExporter_FifoWithoutReader_StartsAndEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	logs, _ := start(t, nop(), func(c *Config) { c.Path, c.Format = path, "line" })
	fifo, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // keeps what was written
	require.NoError(t, err)
	defer func() { _ = fifo.Close() }()

	const all = 1000 // more than a pipe takes
	findings := logsOf()
	for i := range all {
		logsOf(slow(fmt.Sprint(i), 0, 1)).ResourceLogs().MoveAndAppendTo(findings.ResourceLogs())
	}
	for blocked := false; !blocked; { // until the FIFO is full
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := logs.ConsumeLogs(ctx, findings)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		blocked = errors.Is(err, errBlocked)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	ended := logs.Shutdown(ctx)
	require.ErrorIs(t, logs.ConsumeLogs(t.Context(), findings), errEnded)

	text, err := io.ReadAll(fifo) // to its end: nothing holds the FIFO open for writing
	require.NoError(t, err)
	lines := strings.Count(string(text), "\n")
	assert.Positive(t, lines)
	assert.True(t, strings.HasSuffix(string(text), "(confidence 0.90)\n"), "no line is cut")
	assert.EqualError(t, ended, fmt.Sprintf("write to %s: its reader does not read; %d findings may be missing, besides what the reader has not read before",
		path, all-lines))
}
