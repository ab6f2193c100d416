// SPDX-License-Identifier: Apache-2.0

//go:build unix && !solaris && !aix

package queuestorageextension

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// inUse reports whether another process has a file open as a database. The lock ends as the file is closed.
func inUse(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock it: %w", err)
	}
	return false, nil
}
