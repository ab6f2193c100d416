// SPDX-License-Identifier: Apache-2.0

package netstamp

import "golang.org/x/sys/unix"

func readRaw() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &t); err != nil {
		return 0
	}
	return t.Nano()
}

// readTrue takes as long as readRaw.
func readTrue() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &t); err != nil {
		return 0
	}
	return t.Nano()
}
