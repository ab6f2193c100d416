// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"syscall"
)

// untilFails writes until a write fails, and remembers why.
type untilFails struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (u *untilFails) Write(p []byte) (int, error) {
	if u.err != nil {
		return 0, u.err
	}
	n, err := u.w.Write(p)
	u.err = err
	return n, err
}

// failed returns what the command ends with where its output could not be
// written; a reader that has seen enough needs no message.
func (u *untilFails) failed() error {
	switch {
	case u.err == nil:
		return nil
	case errors.Is(u.err, syscall.EPIPE):
		return statusError(exitBrokenPipe)
	}
	return fmt.Errorf("write output: %w", u.err)
}
