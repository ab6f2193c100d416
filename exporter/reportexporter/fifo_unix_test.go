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

// queued has the queue and the retries of the default configuration.
func queued(path string) func(c *Config) {
	return func(c *Config) {
		c.Path, c.Format = path, "line"
		c.Queue, c.Retry = newDefaultConfig().Queue, defaultRetry
	}
}

// A sender does not wait for a reader that does not read. The end reports how many findings are missing.
func TestExporter_FifoWithoutReader_SenderDoesNotWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	logs, _ := start(t, nop(), queued(path))
	fifo, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer func() { _ = fifo.Close() }()
	const all = 1000 // more than a pipe takes
	for i := range all {
		require.NoError(t, logs.ConsumeLogs(t.Context(), logsOf(slow(fmt.Sprint(i), 0, 1))))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	ended := logs.Shutdown(ctx)
	text, err := io.ReadAll(fifo)
	require.NoError(t, err)
	lines := strings.Count(string(text), "\n")
	assert.Positive(t, lines)
	require.ErrorContains(t, ended, fmt.Sprintf("write to %s: its reader does not read; %d findings may be missing", path, all-lines))
}

// Once the reader reads again, it gets each finding, in order.
func TestExporter_FifoIsReadLate_GetsAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	logs, _ := start(t, nop(), queued(path))
	fifo, err := os.OpenFile(path, os.O_RDONLY, 0)
	require.NoError(t, err)
	defer func() { _ = fifo.Close() }()
	const all = 1000
	for i := range all {
		require.NoError(t, logs.ConsumeLogs(t.Context(), logsOf(slow(fmt.Sprint("finding-", i), 0, 1))))
	}
	read := make(chan []byte, 1)
	go func() {
		text, _ := io.ReadAll(fifo)
		read <- text
	}()
	require.NoError(t, logs.Shutdown(t.Context()))
	assert.Equal(t, all, strings.Count(string(<-read), "\n"))
}

// What a full disk has not taken until the end is reported.
func TestExporter_DiskIsFull_EndReportsIt(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no /dev/full")
	}
	logs, _ := start(t, nop(), queued("/dev/full"))
	require.NoError(t, logs.ConsumeLogs(t.Context(), logsOf(slow("a", 0, 1))))
	require.ErrorContains(t, logs.Shutdown(t.Context()), "1 finding may be missing")
}

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
