// SPDX-License-Identifier: Apache-2.0

package regular

import (
	"os"
	"slices"
	"syscall"
)

const flags = os.O_RDONLY | syscall.O_NONBLOCK

// kernels are the file systems whose files are the kernel's: proc, sysfs, tracefs, debugfs.
var kernels = []int64{0x9fa0, 0x62656572, 0x74726163, 0x64626720}

// ofKernel reports whether the kernel makes up what the file holds. Some of these call
// themselves regular files, and a process that reads them waits for the next message.
func ofKernel(f *os.File) bool {
	var fs syscall.Statfs_t
	err := syscall.Fstatfs(int(f.Fd()), &fs)
	return err == nil && slices.Contains(kernels, int64(fs.Type)) //nolint:unconvert // it has 32 bits on some machines
}
