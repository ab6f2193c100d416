// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
)

// ownGroup makes the program leader of a process group, so that what it starts can be
// killed with it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func terminate(cmd *exec.Cmd) error {
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end process group: %w", err)
	}
	return nil
}

func killGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // none is left where it fails
}
