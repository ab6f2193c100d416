// SPDX-License-Identifier: Apache-2.0

package netstamp

import "golang.org/x/sys/unix"

// sharpen lets this thread sleep to the ns, and returns what undoes it.
func sharpen() (undo func()) {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) } // the default
}

func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return t.Nano()
}

// sleepUntil may return early, after a signal.
func sleepUntil(t int64) {
	until := unix.NsecToTimespec(t)
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &until, nil)
}
