// SPDX-License-Identifier: Apache-2.0

//go:build unix

package spool

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock keeps other processes, and other spools of this one, out of a directory until the file is closed.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode) //nolint:gosec // it is empty
	if err != nil {
		return nil, fmt.Errorf("make lock: %w", err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = errLocked
	case err != nil:
		err = fmt.Errorf("lock %s: %w", path, err)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// syncFolder makes the names in a folder survive a crash.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	err = f.Sync()
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}
