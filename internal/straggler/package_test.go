// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // simulated jobs are garbage soon: a fifth of the CPU time otherwise
	goleak.VerifyTestMain(m)
}
