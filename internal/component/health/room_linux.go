// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"syscall"
)

// Room returns how many bytes are free for this user on the disk of a directory, and how many it has.
func Room(dir string) (free, total uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("ask for the room of %s: %w", dir, err)
	}
	size := uint64(s.Bsize) //nolint:gosec // a block has a size
	return s.Bavail * size, s.Blocks * size, nil
}
