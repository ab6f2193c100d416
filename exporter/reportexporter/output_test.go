// SPDX-License-Identifier: Apache-2.0

package reportexporter

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
)

// disk takes so many bytes, and fails from then on.
type disk struct {
	bytes.Buffer
	room int
	err  error
}

func (d *disk) Write(p []byte) (int, error) {
	n := min(len(p), d.room)
	d.room -= n
	d.Buffer.Write(p[:n])
	if n < len(p) {
		return n, &os.PathError{Op: "write", Path: "f", Err: d.err}
	}
	return n, nil
}

// reporterTo returns a reporter with format line that writes to w.
func reporterTo(t *testing.T, w io.Writer) *reporter {
	t.Helper()
	c := newDefaultConfig()
	c.Format = formatLine
	c.Queue, c.Retry.Enabled = configoptional.None[exporterhelper.QueueBatchConfig](), false
	r, err := newReporter(c, nop().TelemetrySettings, nil)
	require.NoError(t, err)
	r.out = &output{name: "f.txt", to: w, turn: make(chan struct{}, 1)}
	return r
}

// A request that a full disk has refused is sent again: each line is written once, and whole.
func TestLogs_DiskFullForAWhile_WritesEachLineOnce(t *testing.T) {
	ld := logsOf(slow("a", 0, 1), slow("b", 0, 2), slow("c", 0, 3))
	whole := &disk{room: 1 << 20}
	require.NoError(t, reporterTo(t, whole).logs(t.Context(), ld))
	require.Equal(t, 3, strings.Count(whole.String(), "\n"))
	for room := range whole.Len() {
		w := &disk{room: room, err: syscall.ENOSPC}
		r := reporterTo(t, w)
		err := r.logs(t.Context(), ld)
		require.EqualError(t, err, "write to f.txt: no space left on device")
		require.False(t, consumererror.IsPermanent(err))
		require.Error(t, r.logs(t.Context(), ld), "still full")
		w.room = 1 << 20
		require.NoError(t, r.logs(t.Context(), ld))
		require.NoError(t, r.logs(t.Context(), ld), "sent once more")
		require.Equal(t, whole.String(), w.String(), "room for %d bytes", room)
	}
}

// What a full disk has cut is written at the end, where there is room again.
func TestShutdown_AfterAFullDisk_WritesTheRest(t *testing.T) {
	w := &disk{room: 10, err: syscall.ENOSPC}
	r := reporterTo(t, w)
	require.Error(t, r.logs(t.Context(), logsOf(slow("a", 0, 1))))
	w.room = 1 << 20
	require.NoError(t, r.shutdown(t.Context()))
	assert.True(t, strings.HasSuffix(w.String(), "(confidence 0.90)\n"), w.String())
}

// A reader that has gone does not come back: the request is not sent again.
func TestLogs_ReaderHasGone_IsPermanent(t *testing.T) {
	w := &disk{err: syscall.EPIPE}
	err := reporterTo(t, w).logs(t.Context(), logsOf(slow("a", 0, 1)))
	require.EqualError(t, err, "Permanent error: write to f.txt: broken pipe; its reader has gone")
	assert.True(t, consumererror.IsPermanent(err))
}

// A file that ends within a line is continued on a new line.
func TestOpenOutput_FileThatWasCut_GoesOnANewLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.txt")
	require.NoError(t, os.WriteFile(path, []byte("Finding 1, cu"), 0o600))
	logs, _ := start(t, nop(), func(c *Config) { c.Path, c.Format = path, "line" })
	require.NoError(t, logs.ConsumeLogs(t.Context(), logsOf(slow("a", 0, 1))))
	require.NoError(t, logs.Shutdown(t.Context()))
	lines := strings.Split(content(t, path), "\n")
	require.Len(t, lines, 3)
	assert.Equal(t, "Finding 1, cu", lines[0])
	assert.Contains(t, lines[1], "rank 5")
}

func TestOpenOutput_Standard_IsNotClosed(t *testing.T) {
	for path, file := range map[string]*os.File{"stdout": os.Stdout, "stderr": os.Stderr} {
		o, err := openOutput(path)
		require.NoError(t, err)
		assert.Same(t, file, o.file)
		require.NoError(t, o.close())
		_, err = file.Stat()
		assert.NoError(t, err)
	}
}
