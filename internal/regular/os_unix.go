// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package regular

import (
	"os"
	"syscall"
)

const flags = os.O_RDONLY | syscall.O_NONBLOCK

func ofKernel(*os.File) bool { return false }
