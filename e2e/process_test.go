// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is a child process that does not outlive its test.
type process struct {
	name   string
	cmd    *exec.Cmd
	output *lockedBuffer
	done   chan struct{}
	err    error // of Wait, once done is closed
}

// lockedBuffer collects output while the test may already read it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// start runs a program in the repository root with additions to the
// environment. A failed test prints the last of what the program said.
func start(t *testing.T, env map[string]string, program string, args ...string) *process {
	t.Helper()
	return startAs(t, nil, env, program, args...)
}

// startAs is start with attributes, such as another user.
func startAs(t *testing.T, as *syscall.SysProcAttr, env map[string]string, program string, args ...string) *process {
	t.Helper()
	p := &process{
		name:   filepath.Base(program),
		cmd:    exec.CommandContext(context.Background(), program, args...),
		output: &lockedBuffer{},
		done:   make(chan struct{}),
	}
	p.cmd.Dir, p.cmd.SysProcAttr = repoRoot(t), as
	p.cmd.Env = os.Environ()
	for name, value := range env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	require.NoError(t, p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() { p.clean(t) })
	return p
}

func (p *process) clean(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Kill() // an error says that it has ended
	<-p.done
	if t.Failed() {
		t.Logf("output of %s:\n%s", p.name, tail(p.output.String(), 8000))
	}
}

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "..." + s[len(s)-n:]
}

// terminate sends SIGTERM and returns the exit status.
func (p *process) terminate(t *testing.T, limit time.Duration) int {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	return p.wait(t, limit)
}

// wait returns the exit status of a process that ends by itself.
func (p *process) wait(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(limit):
		require.FailNow(t, fmt.Sprintf("%s still runs after %s", p.name, limit))
	}
	return p.cmd.ProcessState.ExitCode()
}

// running says whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// eventually polls until check returns no error, and fails with the last one.
// It gives up early when a process that the answer depends on has ended.
func eventually(t *testing.T, limit time.Duration, check func() error, needs ...*process) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		for _, p := range needs {
			require.True(t, p.running(), "%s ended: %v; waiting for: %v", p.name, p.err, err)
		}
		require.True(t, time.Now().Before(deadline), "not within %s: %v", limit, err)
		time.Sleep(200 * time.Millisecond)
	}
}
