// SPDX-License-Identifier: Apache-2.0

package thread

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// configure sets the priority and the processors of the calling thread.
func configure(c Config) error {
	// Of PRIO_PROCESS, Linux takes the id of a thread.
	if err := unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), c.Nice); err != nil {
		return fmt.Errorf("set nice %d: %w; want at least the nice value of the process", c.Nice, err)
	}
	if len(c.Cores) == 0 {
		return nil
	}
	var may, want unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return fmt.Errorf("read cores of process: %w", err)
	}
	for _, core := range c.Cores {
		if !may.IsSet(core) {
			return fmt.Errorf("set cores: got core %d, which is not there or which the process may not use", core)
		}
		want.Set(core)
	}
	if err := unix.SchedSetaffinity(0, &want); err != nil {
		return fmt.Errorf("set cores %v: %w", c.Cores, err)
	}
	return nil
}

// cpuTime returns the processor time that the calling thread has used.
func cpuTime() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		return 0
	}
	return time.Duration(at.Nano())
}
