// SPDX-License-Identifier: Apache-2.0

package doors

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/cbuild"
)

// inProcess runs an attack of inject/ring_test/doors.c, which must end well, and returns what it
// says.
func inProcess(t *testing.T, attack string, tries int, more ...string) string {
	t.Helper()
	program(t)
	cbuild.Make(t, "inject", "programs")
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) // for its second user
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(repository(t), "bin", "inject", "doors"), append([]string{attack, strconv.Itoa(tries)}, more...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() == 77 {
		t.Skipf("%s", out)
	}
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

func TestPlugin(t *testing.T) {
	program(t)
	cbuild.Make(t, "inject/nccl", "plugin")
	library := filepath.Join(repository(t), "bin", "libnccl-profiler-lockstep.so")
	for _, a := range []struct {
		name, what string
		tries      int
		more       []string
	}{
		{"fork", "forks, without exec, of a process in which eight threads record; each child records too", 500, nil},
		{"exec", "fork, vfork or posix_spawn with exec, while four threads record", 300, nil},
		{"dlclose", "dlopen and dlclose while two threads record", 500, []string{library}},
		{"threads", "threads, 500 at once", 10_000, nil},
		{"signals", "rings made under SIGALRM and SIGPROF at 1 kHz that interrupt system calls, while four threads record", 100, nil},
		{"limits", "limits of descriptors, file size, memory and stack, down to nothing", 1000, nil},
		{"seccomp", "each of 470 system calls refused, with EPERM, ENOSYS, EINTR and EAGAIN; not five without which no program ends or has threads", 1880, nil},
		{"environment", "settings empty, negative, of 20 digits, of 1 MiB, of formats and of no UTF-8", 153, nil},
		{"neighbour", "entries of another user in a directory that all may write", 30_000, nil},
		{"full", "records after the file system became full", 1_000_000, nil},
		{"truncate", "a ring cut by who may write its file", 100, nil},
	} {
		t.Run(a.name, func(t *testing.T) {
			table.add(t, "plugin", a.what, a.tries, 0, inProcess(t, a.name, a.tries, a.more...))
		})
	}
}

// TestPlugin_StoppedCollector: what a record costs does not depend on whether its reader runs.
func TestPlugin_StoppedCollector(t *testing.T) {
	dir := t.TempDir()
	rings := filepath.Join(dir, "rings")
	require.NoError(t, os.Mkdir(rings, 0o700))
	const records = 10_000_000
	rate := func() float64 {
		ns, err := strconv.ParseFloat(inProcess(t, "rate", records, rings), 64)
		require.NoError(t, err)
		return ns
	}
	c := attacked(t, dir, fmt.Sprintf(`
receivers:
  rank_events: {directory: '%s', poll_interval: 100ms}`, rings),
		"  pipelines: {traces: {receivers: [rank_events], processors: [memory_limiter], exporters: [file]}}")
	live := rate()
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGSTOP))
	stopped := rate()
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGCONT))
	require.NoError(t, c.cmd.Process.Kill())
	<-c.done
	c.stopped = true
	killed := rate()
	assert.Less(t, max(stopped, killed), 3*live+100, "ns")
	table.add(t, "plugin", "records while the collector runs, is stopped, was killed", 3*records, 0,
		fmt.Sprintf("%.0f, %.0f and %.0f ns a record", live, stopped, killed))
}
