// SPDX-License-Identifier: Apache-2.0

//go:build unix

package mutation

import (
	"context"
	"os/exec"
	"strconv"
	"syscall"
)

// addressSpace limits the memory that each process may map, in KiB: a mutant may allocate
// without end.
const addressSpace = 6 << 20

// command returns a command of low priority that leads a process group of its own, and
// whose whole group ends with ctx.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	script := []string{"-c", `ulimit -v "$0"; exec nice -n 5 "$@"`, strconv.Itoa(addressSpace), name}
	cmd := exec.CommandContext(ctx, "sh", append(script, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd) }
	return cmd
}

// killGroup kills the processes that a started command or its children left.
func killGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
