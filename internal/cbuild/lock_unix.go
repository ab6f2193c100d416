// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cbuild

import (
	"fmt"
	"os"
	"syscall"
)

// lock waits until no other process, and no other caller in this one, holds the lock of a
// file, and takes it.
func lock(path string) (unlock func(), err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR { //nolint:errorlint // a system call returns it bare
			break
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}
