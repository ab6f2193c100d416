// SPDX-License-Identifier: Apache-2.0

// Package regular opens files that others may replace by pipes or devices. It imports no
// collector and holds nothing else.
package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Open opens a regular file on a disk for reading, following links to it. A pipe does not make
// it wait for a writer, and anything but such a file is refused.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the operation and the path
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = refuse(path, fmt.Errorf("got %s; want a regular file", Kind(info.Mode())))
	case ofKernel(f):
		err = refuse(path, errors.New("got a file of the kernel; want a regular file on a disk"))
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// refuse makes the error that the operating system would give.
func refuse(path string, why error) error { return &fs.PathError{Op: "open", Path: path, Err: why} }
