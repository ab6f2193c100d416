// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, last := 0, 0
		i := NewInterval(time.Second, func(time.Time) { calls++ })
		i.Start()
		i.Start()
		time.Sleep(3500 * time.Millisecond)
		i.Stop(func() { last++ })
		i.Stop(func() { last++ })
		i.Start()
		time.Sleep(10 * time.Second)
		assert.Equal(t, []int{3, 1}, []int{calls, last})
	})
}

func TestIntervalStopWithoutStart(t *testing.T) {
	last := 0
	i := NewInterval(time.Second, func(time.Time) { t.Error("called") })
	i.Stop(func() { last++ })
	i.Start()
	assert.Equal(t, 1, last)
}
