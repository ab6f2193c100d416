// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// free releases the disk space of a file's beginning. A process that appends to the file sees no
// difference. If the file system cannot release the space, the file keeps it.
func free(file *os.File, until int64) {
	if until > 0 {
		_ = unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, until)
	}
}
