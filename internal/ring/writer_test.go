// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/cbuild"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// writer is a running ring_writer.
type writer struct {
	cmd   *exec.Cmd
	path  string
	out   *bufio.Reader
	input io.Closer
}

// summary is what ring_writer prints at its end.
type summary struct {
	Path     string
	Emitted  []uint64
	Produced []uint64
	Dropped  struct {
		SharedLane uint64 `json:"shared_lane"`
		SharedBusy uint64 `json:"shared_busy"`
		SlotsFull  uint64 `json:"slots_full"`
	}
}

// startWriter starts ring_writer with a ring in a directory of its own and
// returns once the ring is there.
func startWriter(tb testing.TB, args ...string) *writer {
	tb.Helper()
	cbuild.Make(tb, "inject", "tests")
	cmd := exec.Command(filepath.Join(testdata.Root(tb), "bin", "inject", "ring_writer"), append([]string{"--dir", tb.TempDir()}, args...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(tb, err)
	out, err := cmd.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, cmd.Start())
	w := &writer{cmd: cmd, out: bufio.NewReader(out), input: in}
	tb.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	w.path = strings.TrimPrefix(w.line(tb), "ready ")
	return w
}

func (w *writer) line(tb testing.TB) string {
	tb.Helper()
	line, err := w.out.ReadString('\n')
	require.NoError(tb, err)
	return strings.TrimSuffix(line, "\n")
}

// end waits for its summary and its end.
func (w *writer) end() (s summary, err error) {
	line, err := w.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &s)
	}
	return s, errors.Join(err, w.cmd.Wait())
}

// mix is the finalizer of splitmix64, and holds what inject/ring_test/pattern.h
// says a record of ring_writer looks like.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func holds(r *Record) bool {
	ok := r.Kind() == KindOp
	for i := uint64(4); i < words; i++ {
		ok = ok && r[i] == mix(i<<56+r[2]<<40+r[3])
	}
	return ok
}

// check judges what a reader accepts of a ring_writer.
type check struct {
	torn, backwards uint64
	last            map[[2]uint64]uint64 // 1 + number of the last record, by lane and thread
	spin            int                  // rounds of work per record, to be slow
	work            uint64
}

func newCheck() *check { return &check{last: map[[2]uint64]uint64{}} }

func (c *check) take(lane int, rec *Record) {
	if !holds(rec) {
		c.torn++
		return
	}
	// A thread may move from the shared lane to one of its own: order holds
	// within a lane.
	from, number := [2]uint64{uint64(lane), rec[2]}, rec[3]+1
	if number <= c.last[from] {
		c.backwards++
	}
	c.last[from] = number
	for range c.spin {
		c.work = mix(c.work)
	}
}
