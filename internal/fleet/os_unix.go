// SPDX-License-Identifier: Apache-2.0

//go:build unix

package fleet

import (
	"os"
	"syscall"
)

// openFlags: a pipe under the name of a file does not make us wait for its writer.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

const (
	errNotLink   = syscall.EINVAL  // what readlink says of what is none
	errNotFolder = syscall.ENOTDIR // what is there in place of a folder
)
