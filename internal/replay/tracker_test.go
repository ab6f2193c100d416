// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

func over(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestNotOverWithoutInput(t *testing.T) {
	var tracker Tracker
	assert.False(t, over(tracker.Done()), "a collector without finite input runs on")
}

func TestOverWhenTheLastEnds(t *testing.T) {
	var tracker Tracker
	done := tracker.Done()
	first, second := tracker.Register("b"), tracker.Register("a")
	assert.Equal(t, []string{"a", "b"}, tracker.Pending())

	first()
	first()
	assert.False(t, over(done), "ending one input twice is not ending two")
	assert.Equal(t, []string{"a"}, tracker.Pending())

	second()
	assert.True(t, over(done))
	assert.True(t, over(tracker.Done()), "who asks late hears it too")
}

func TestInputsOfOneNameCountApart(t *testing.T) {
	var tracker Tracker
	first, second := tracker.Register("torch_trace"), tracker.Register("torch_trace")
	first()
	assert.False(t, over(tracker.Done()))
	second()
	assert.True(t, over(tracker.Done()))
}

func TestLateInputDoesNotReopen(t *testing.T) {
	var tracker Tracker
	tracker.Register("a")()
	late := tracker.Register("b")
	assert.True(t, over(tracker.Done()))
	late()
	assert.True(t, over(tracker.Done()))
}

func TestResetForgets(t *testing.T) {
	t.Cleanup(Reset)
	Reset()
	old := Register("a")
	before := Done()
	Reset()
	now := Register("b")
	old()
	assert.False(t, over(Done()))
	assert.Equal(t, []string{"b"}, Pending())
	now()
	assert.True(t, over(Done()))
	assert.True(t, over(before), "the old replay ended on its own")
}

func TestConcurrentUse(t *testing.T) {
	var tracker Tracker
	hold := tracker.Register("hold")
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() { tracker.Register("x")() })
	}
	group.Wait()
	assert.False(t, over(tracker.Done()))
	hold()
	assert.True(t, over(tracker.Done()))
}
