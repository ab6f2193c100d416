// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestDoubtEnds: what nothing refutes may be a clock that was just set, but not for
// ever. What is wrong by far more is something else.
func TestDoubtEnds(t *testing.T) {
	const window = 2 * time.Second
	d, begins := &doubt{}, true
	for now := time.Duration(0); now <= fitWindows*window; now += window / 2 {
		assert.True(t, d.goesOn(now, window, 5e6, begins))
		begins = false
	}
	assert.False(t, d.goesOn((fitWindows+1)*window, window, 5e6, false))
	assert.False(t, d.goesOn((fitWindows+2)*window, window, 9e6, false))
	assert.True(t, d.goesOn((fitWindows+3)*window, window, 50e6, false), "by far more")
	assert.True(t, d.goesOn((3*fitWindows)*window, window, 50e6, false), "and once more, much later")
}

// wrongOnce runs calls of which every n-th is changed, and counts what is said.
func (c *chat) wrongOnce(calls, every int, change func(*Batch)) (classes [Introduced + 1]int) {
	for n := range calls {
		b := call(c.e, 6e6, -4e6)
		c.n++
		for i := range b.Spans {
			s := &b.Spans[i]
			s.Ref.Trace = traceID(uint64(c.n) + 1<<40)
			s.Begin, s.Until = s.Begin+c.n*100e6, s.Until+c.n*100e6
		}
		if n%every == 0 {
			change(b)
		}
		c.e.Run(b)
		for _, v := range b.Verdicts {
			classes[v.Class]++
		}
	}
	return classes
}

func knownChat() *chat {
	c := newChat()
	c.of = map[string]fakeClock{"a": {bound: 1e6}, "b": {offset: -5e6, bound: 1e6}}
	c.calls(300, 0)
	return c
}

// TestProgramIsWrong: now and then a program stamps a start early. The call's end, a
// few ms later, came back sooner than it could have if a clock had been set. So each is
// said, however long ago the one before is.
func TestProgramIsWrong(t *testing.T) {
	for _, every := range []int{1, 4, 300, 590, 610} {
		for _, wrong := range []int64{50e6, 300e6, 1e9} {
			classes := knownChat().wrongOnce(10*every, every, func(b *Batch) { b.Spans[1].Begin -= wrong })
			assert.Equal(t, 10, classes[Violation], "by %d ns, one in %d", wrong, every)
		}
	}
}

// TestClockIsSetAfterAViolation: what a program did before is no sign that a clock was
// not set since.
func TestClockIsSetAfterAViolation(t *testing.T) {
	c := knownChat()
	assert.Equal(t, 1, c.wrongOnce(1, 1, func(b *Batch) { b.Spans[1].Begin -= 300e6 })[Violation])
	for _, by := range []int64{-300e6, 300e6} {
		classes := c.wrongOnce(50, 1, func(b *Batch) { b.Spans[1].Begin, b.Spans[1].Until = b.Spans[1].Begin+by, b.Spans[1].Until+by })
		assert.Zero(t, classes[Violation])
		assert.Equal(t, 50, classes[Undecided])
		c.wrongOnce(200, 1, func(*Batch) {})
	}
}

// oneWay is a batch of messages from a to b that take 1 ms, but for those that arrive as
// much before they were sent as is said.
func (c *chat) oneWay(n int, early map[int]int64) (classes [Introduced + 1]int) {
	b := &Batch{}
	for i := range n {
		one := call(c.e, 6e6, -4e6)
		one.Spans[0].Is, one.Spans[1].Is = Producer, Consumer
		for j := range one.Spans {
			s := &one.Spans[j]
			s.Ref.Trace = traceID(uint64(c.n)<<20 + uint64(i) + 1<<40)
			s.Begin, s.Until = s.Begin+c.n*100e6+int64(i)*1e6, s.Until+c.n*100e6+int64(i)*1e6
		}
		one.Spans[1].Begin -= early[i]
		b.Spans = append(b.Spans, one.Spans...)
	}
	c.n++
	c.e.Run(b)
	for _, v := range b.Verdicts {
		classes[v.Class]++
	}
	return classes
}

// TestOthersAreRight: where nothing comes back, most of the messages that come next
// tell whether a clock was set.
func TestOthersAreRight(t *testing.T) {
	assert.Equal(t, 1, knownChat().oneWay(40, map[int]int64{20: 20e6})[Violation])
	assert.Equal(t, 1, knownChat().oneWay(40, map[int]int64{39: 20e6})[Undecided], "nothing comes next")
	set := map[int]int64{}
	for i := 20; i < 40; i++ {
		set[i] = 20e6
	}
	assert.Equal(t, 20, knownChat().oneWay(40, set)[Undecided])
	set[30] = -25e6
	assert.Equal(t, 19, knownChat().oneWay(40, set)[Undecided], "one took long")
}

// TestDoubtsAreBounded: beyond the limit relations are undecided, and counted.
func TestDoubtsAreBounded(t *testing.T) {
	c := knownChat()
	for n := range maxDoubts {
		c.e.doubts.held[direction{&Clock{index: n}, &Clock{}}] = doubt{since: c.e.doubts.now, last: c.e.doubts.now}
	}
	assert.Equal(t, 1, c.oneWay(1, map[int]int64{0: 20e6})[Undecided])
	assert.EqualValues(t, 1, c.e.Stats().Evidence.Doubted)
	c.e.passed += (fitWindows + 1) * c.e.doubts.window
	assert.Equal(t, 1, c.oneWay(1, map[int]int64{0: 20e6})[Undecided])
	assert.EqualValues(t, 1, c.e.Stats().Evidence.Doubted)
	assert.Len(t, c.e.doubts.held, 1)
}
