// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A line has the same kind whether or not one like it was read before.
func TestKinds_OfLinesThatDifferInDigits_AreTheirOwn(t *testing.T) {
	lines := []string{
		"", " x", "step 1 loss 2.1", "step 40 loss 2.13", "frame #12: f + 0x1f", "frame #3: f + 0xq", "[0]:", "[17]:", "[a]:", "#1 f from x", "#12 f from x", "# f",
		"error 3", "err 3", "set NCCL_DEBUG2=1", "set N1_D=1", "batch 1 failed, retrying with 8", "12 34", "12:34", "Thread 0x12 (most recent call first):", "exit1", "11error", "1", "0x", "0x9",
	}
	var k kinds
	for range 2 {
		for _, line := range lines {
			assert.Equal(t, kindOfLine([]byte(line)), k.of([]byte(line)), line)
		}
	}
}
