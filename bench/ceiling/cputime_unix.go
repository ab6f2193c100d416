// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime returns what this process has used of all cores.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
