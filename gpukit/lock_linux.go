// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps other runs out of the folder until unlock is called, or the process ends.
func lock(out string) (unlock func(), err error) {
	f, err := os.Open(out)
	if err != nil {
		return nil, used(out, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		_ = f.Close() // read only
		return nil, used(out, errBusy)
	}
	return func() { _ = f.Close() }, nil // a file system without locks has none
}
