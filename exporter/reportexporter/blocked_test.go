// SPDX-License-Identifier: Apache-2.0

package reportexporter

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// pipe takes nothing until it is read, and what its disk has room for then.
type pipe struct {
	disk
	read chan struct{}
	mu   sync.Mutex
}

func newPipe(room int, err error) *pipe {
	return &pipe{disk: disk{room: room, err: err}, read: make(chan struct{})}
}

func (p *pipe) Write(text []byte) (int, error) {
	<-p.read
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.disk.Write(text)
}

func (p *pipe) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.disk.String()
}

// end returns the Shutdown of the exporter of a reporter.
func end(t *testing.T, r *reporter) func(context.Context) error {
	t.Helper()
	logs, err := r.exporter(t.Context(), nop())
	require.NoError(t, err)
	return logs.Shutdown
}

// textOf returns what a reporter writes of findings where nothing blocks.
func textOf(t *testing.T, ids ...string) string {
	t.Helper()
	w := &disk{room: 1 << 20}
	r := reporterTo(t, w)
	for _, id := range ids {
		require.NoError(t, r.logs(t.Context(), logsOf(slow(id, 0, 1))))
	}
	return w.String()
}

// The end waits for a reader that does not read for as long as it may. The write that blocks ends after
// it, and nothing else is written then.
func TestShutdown_ReaderDoesNotRead_EndsInTime(t *testing.T) {
	for name, c := range map[string]struct {
		deadline, took time.Duration
		summary        bool
		missing        string
	}{
		"no deadline":       {0, deliver.ShutdownLimit, false, "3 findings"},
		"a deadline":        {time.Second, time.Second, true, "3 findings and the summary"},
		"a deadline before": {-time.Second, 0, false, "3 findings"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newPipe(1<<20, nil)
				r := reporterTo(t, w)
				r.config.Summary = c.summary
				refused := make(chan error, 2)
				go func() { refused <- r.logs(t.Context(), logsOf(slow("a", 0, 1), slow("b", 0, 1))) }()
				synctest.Wait()
				go func() { refused <- r.logs(t.Context(), logsOf(slow("b", 0, 1), slow("c", 0, 1))) }()
				synctest.Wait()

				ctx := t.Context()
				if c.deadline != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				began := time.Now()
				err := end(t, r)(ctx)
				assert.Equal(t, c.took, time.Since(began))
				require.EqualError(t, err, "write to f.txt: its reader does not read; "+c.missing+
					" may be missing, besides what the reader has not read before")
				for range 2 {
					err := <-refused
					require.ErrorIs(t, err, errEnded)
					assert.False(t, consumererror.IsPermanent(err))
				}
				require.ErrorIs(t, r.logs(t.Context(), logsOf(slow("d", 0, 1))), errEnded)
				close(w.read)
				synctest.Wait()
				assert.Equal(t, textOf(t, "a"), w.String(), "only what had begun")
			})
		})
	}
}

// A reader that reads again before the end gets everything.
func TestShutdown_ReaderReadsInTime_WritesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPipe(1<<20, nil)
		r := reporterTo(t, w)
		done := make(chan error, 1)
		go func() { done <- r.logs(t.Context(), logsOf(slow("a", 0, 1), slow("b", 0, 1))) }()
		time.AfterFunc(time.Second, func() { close(w.read) })
		synctest.Wait()
		require.NoError(t, end(t, r)(t.Context()))
		require.NoError(t, <-done)
		assert.Equal(t, textOf(t, "a", "b"), w.String())
		require.ErrorIs(t, r.logs(t.Context(), logsOf(slow("c", 0, 1))), errEnded)
	})
}

// A request that is given up while its text blocks has begun the text: sent again, it adds nothing to
// it, even where the disk takes none or a part of the text in the end.
func TestLogs_ContextEndsWhileBlocked_WritesTextOnce(t *testing.T) {
	whole := textOf(t, "a", "b")
	for _, room := range []int{0, 10, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			w := newPipe(room, syscall.ENOSPC)
			r := reporterTo(t, w)
			ld := logsOf(slow("a", 0, 1), slow("b", 0, 1))
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				err := r.logs(ctx, ld)
				cancel()
				require.EqualError(t, err, "write to f.txt: its reader does not read: context deadline exceeded")
				assert.False(t, consumererror.IsPermanent(err))
			}
			close(w.read)
			synctest.Wait()
			if room < len(whole) {
				require.EqualError(t, r.logs(t.Context(), ld), "write to f.txt: no space left on device")
			}
			w.room = 1 << 20
			require.NoError(t, r.logs(t.Context(), ld))
			require.NoError(t, end(t, r)(t.Context()))
			assert.Equal(t, whole, w.String(), "room for %d bytes", room)
		})
	}
}

// A request whose context has ended begins nothing, and loses nothing.
func TestLogs_ContextHasEnded_BeginsNothing(t *testing.T) {
	w := &disk{room: 1 << 20}
	r := reporterTo(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, r.logs(ctx, logsOf(slow("a", 0, 1))), context.Canceled)
	assert.Empty(t, w.String())
	require.NoError(t, r.logs(t.Context(), logsOf(slow("a", 0, 1))))
	require.NoError(t, end(t, r)(t.Context()))
	assert.Equal(t, textOf(t, "a"), w.String())
}

// An exporter that waits for another to the same terminal ends as well, and writes nothing afterwards.
func TestShutdown_OtherExporterBlocksTheTerminal_EndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPipe(1<<20, nil)
		r, other := reporterTo(t, w), reporterTo(t, w)
		other.out.turn = r.out.turn
		refused := make(chan error, 2)
		go func() { refused <- r.logs(t.Context(), logsOf(slow("a", 0, 1))) }()
		synctest.Wait()
		go func() { refused <- other.logs(t.Context(), logsOf(slow("b", 0, 1))) }()
		synctest.Wait()
		require.ErrorContains(t, end(t, other)(t.Context()), "1 finding may be missing")
		require.ErrorIs(t, <-refused, errEnded)
		close(w.read)
		require.NoError(t, <-refused)
		require.NoError(t, end(t, r)(t.Context()))
		assert.Equal(t, textOf(t, "a"), w.String())
	})
}

// Of more findings than are remembered, the end does not report an exact number.
func TestUnwritten_MoreThanTheLimit_IsNoExactNumber(t *testing.T) {
	g := newUnwritten()
	long := strings.Repeat("x", maxUnwrittenBytes/2)
	for _, id := range []string{"a", "b", "c"} {
		g.add([]model.Finding{{ID: id + long}})
	}
	assert.Equal(t, "1 or more findings", g.String())
}

// stdout and stderr block each other where they are one terminal, and only there.
func TestOpenOutput_StdoutBlocks_StderrToAFileDoesNot(t *testing.T) {
	stdout, stderr := os.Stdout, os.Stderr
	defer func() { os.Stdout, os.Stderr = stdout, stderr }()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	os.Stdout, os.Stderr = writer, file

	blocks, err := openOutput(toStdout)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	text := bytes.Repeat([]byte{'x'}, 1<<20) // more than a pipe takes
	begun, err := blocks.write(ctx, text)
	require.ErrorIs(t, err, errBlocked)
	assert.True(t, begun)

	free, err := openOutput(toStderr)
	require.NoError(t, err)
	_, err = free.write(t.Context(), []byte("line\n"))
	require.NoError(t, err)
	assert.Equal(t, "line\n", content(t, file.Name()))

	os.Stderr = writer
	same, err := openOutput(toStderr)
	require.NoError(t, err)
	ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun, err = same.write(ctx, []byte("line\n"))
	require.ErrorIs(t, err, errBlocked)
	assert.False(t, begun, "it waits for its turn")

	require.NoError(t, reader.Close()) // ends the write that blocks
	require.ErrorContains(t, blocks.flush(t.Context()), "its reader has gone")
	require.NoError(t, writer.Close())
}
