// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"fmt"
	"time"
)

// Config bounds the engine and says when a finding ends by itself.
type Config struct {
	// MaxOpen is the most findings held open, and again the most closed ones
	// that are remembered so that their repetition is recognised.
	MaxOpen int
	// MaxBytes bounds, by estimate, the bytes of all findings, open and closed. The first job
	// whose findings hold more than those of all jobs that began after it makes room.
	MaxBytes int
	// CleanSteps closes a finding when findings of the same kind and job have
	// advanced this many steps beyond its last one.
	CleanSteps int64
	// CloseAfter closes a finding of which nothing was heard for so long.
	CloseAfter time.Duration
}

// NewDefaultConfig returns the defaults: 1,024 findings of about 2 KiB each are
// 4 MiB, open and closed together; 10 minutes outlast the pause of an
// evaluation or a checkpoint between two steps.
func NewDefaultConfig() Config {
	return Config{MaxOpen: 1024, MaxBytes: 64 << 20, CleanSteps: 100, CloseAfter: 10 * time.Minute}
}

// minBytes is more than the longest finding takes.
const minBytes = 1 << 20

// Validate reports the first field that is out of range.
func (c *Config) Validate() error {
	if c.MaxOpen < 1 {
		return fmt.Errorf("check max_open_findings: got %d; want at least 1", c.MaxOpen)
	}
	if c.MaxBytes < minBytes {
		return fmt.Errorf("check max_bytes: got %d; want at least %d", c.MaxBytes, minBytes)
	}
	if c.CleanSteps < 1 {
		return fmt.Errorf("check clean_steps: got %d; want at least 1", c.CleanSteps)
	}
	if c.CloseAfter <= 0 {
		return fmt.Errorf("check close_after: got %v; want more than 0", c.CloseAfter)
	}
	return nil
}
