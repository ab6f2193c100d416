// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"syscall"
	"time"
)

// peakOf returns the maximum resident set of a finished process, bytes.
func peakOf(p *os.ProcessState) int64 {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return int64(usage.Maxrss) << 10 //nolint:unconvert // it is int32 on 32-bit machines; the unit is KiB
}

// processTime returns what this process has used of processors.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
