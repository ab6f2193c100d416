// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestProcessState(t *testing.T) {
	for text, want := range map[string]model.ProcessState{
		"Name:\tpython\nState:\tS (sleeping)\nTracerPid:\t0\n":      model.ProcessRunning,
		"Name:\tpython\nState:\tR (running)\nTracerPid:\t77\n":      model.ProcessRunning, // it is let run
		"Name:\tpython\nState:\tD (disk sleep)\nTracerPid:\t0\n":    model.ProcessRunning,
		"Name:\tpython\nState:\tT (stopped)\nTracerPid:\t0\n":       model.ProcessStopped,
		"Name:\tpython\nState:\tt (tracing stop)\nTracerPid:\t77\n": model.ProcessTraced,
		"Name:\tpython\nState:\tT (tracing stop)\nTracerPid:\t77\n": model.ProcessTraced, // of old kernels
		"Name:\tpython\nState:\tZ (zombie)\nTracerPid:\t0\n":        model.ProcessDead,
		"Name:\tpython\n": "",
		"State:\n":        "",
	} {
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "42"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "42", "status"), []byte(text), 0o600))
		assert.Equal(t, want, processState(dir, 42), text)
		assert.Empty(t, processState(dir, 43))
	}
}

// A real process that is stopped, goes on and ends.
func TestProcessStateOfARealOne(t *testing.T) {
	if _, err := os.Stat(procDirectory + "/self/status"); err != nil {
		t.Skipf("there is no %s here: %v", procDirectory, err)
	}
	cmd := exec.CommandContext(t.Context(), "cat")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = in.Write([]byte("up\n"))
	require.NoError(t, err)
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	is := func(want model.ProcessState) {
		t.Helper()
		assert.Eventually(t, func() bool { return processState(procDirectory, cmd.Process.Pid) == want }, 5*time.Second, time.Millisecond, want)
	}
	is(model.ProcessRunning)
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	is(model.ProcessStopped)
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	is(model.ProcessRunning)
	require.NoError(t, cmd.Process.Kill())
	is(model.ProcessDead) // until somebody asks how it ended
	_ = cmd.Wait()
	assert.Empty(t, processState(procDirectory, cmd.Process.Pid), strconv.Itoa(cmd.Process.Pid))
}
