// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package thread

import (
	"errors"
	"time"
)

// configure leaves the priority as it is: here a process has one.
func configure(c Config) error {
	if len(c.Cores) > 0 {
		return errors.New("set cores: only Linux has them; want none")
	}
	return nil
}

func cpuTime() time.Duration { return 0 }
