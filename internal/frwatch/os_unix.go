// SPDX-License-Identifier: Apache-2.0

//go:build unix

package frwatch

import (
	"errors"
	"os"
	"syscall"
)

const (
	// A name that became a link since it was looked at is not followed, and a pipe does
	// not make us wait for its writer.
	readFlags = os.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	// Nor for its reader.
	pipeFlags = os.O_WRONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
)

func isLink(err error) bool { return errors.Is(err, syscall.ELOOP) }

// noReader: nobody has the pipe open for reading.
func noReader(err error) bool { return errors.Is(err, syscall.ENXIO) }

// writeNow writes what there is room for at once: that of a file waits for room.
func writeNow(f *os.File, b []byte) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		_, failed = syscall.Write(int(fd), b)
		return true
	})
	return errors.Join(err, failed)
}
