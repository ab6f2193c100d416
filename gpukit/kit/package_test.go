// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	grace = 100 * time.Millisecond
	goleak.VerifyTestMain(m)
}
