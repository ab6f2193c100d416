// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestScaledUnitSuitsTheLongest(t *testing.T) {
	assert.Equal(t, "ms", scaleFor(12*time.Millisecond).name)
	assert.Equal(t, "µs", scaleFor(9*time.Millisecond).name)
	assert.Equal(t, "s", scaleFor(time.Minute).name)
	assert.Equal(t, "12.35", scaleFor(time.Second).format(12345*time.Microsecond))
	assert.Equal(t, "0.00", scaleFor(time.Second).format(-time.Nanosecond), "no negative zero")
	assert.Equal(t, "-20", scaleFor(time.Millisecond).format(-20*time.Microsecond))
}
