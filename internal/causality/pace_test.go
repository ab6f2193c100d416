// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// chat is an engine that sees ten calls a second between clocks a and b, and the time
// that goes on with them.
type chat struct {
	*fakeClocks
	e       *Engine
	n       int64
	settled int
	ofA     int64 // by which clock a is ahead
}

func newChat() *chat {
	c := &chat{fakeClocks: &fakeClocks{}}
	cfg := testConfig()
	cfg.Now = func() time.Time { return time.Unix(0, base+c.n*100e6) }
	cfg.Settle = func() { c.settled++ }
	c.e = New(cfg, c)
	return c
}

// calls runs a batch for each call, all of whose stamps are ahead.
func (c *chat) calls(n int, ahead int64) {
	for range n {
		b := call(c.e, 6e6, -4e6)
		for i := range b.Spans {
			s := &b.Spans[i]
			s.Ref.Trace = traceID(uint64(c.n))
			s.Begin, s.Until = s.Begin+c.n*100e6+ahead+c.n, s.Until+c.n*100e6+ahead+c.n
		}
		b.Spans[0].Begin, b.Spans[0].Until = b.Spans[0].Begin+c.ofA, b.Spans[0].Until+c.ofA
		c.e.Run(b)
		c.n++
	}
}

const minute = int64(time.Minute)

// TestOneStampInTheFuture ends neither what is learned of its pair nor the solving.
func TestOneStampInTheFuture(t *testing.T) {
	for _, ahead := range []int64{2 * minute, 59 * minute, 365 * 24 * 60 * minute, -2 * minute, -365 * 24 * 60 * minute} {
		c := newChat()
		c.calls(300, 0)
		edges, settled := len(c.edges), c.settled
		c.calls(1, ahead)
		c.calls(300, 0)
		t.Logf("%d min ahead: %d edges and %d solutions in 30 s, %d and %d after", ahead/minute, edges, settled, len(c.edges)-edges, c.settled-settled)
		assert.Greater(t, 10*(len(c.edges)-edges), 8*edges)
		assert.Greater(t, 10*(c.settled-settled), 8*settled)
		assert.LessOrEqual(t, c.e.Stats().Evidence.Liars, int64(convinced))
	}
}

// TestClockIsSetAnew: it goes on from there, and is known again.
func TestClockIsSetAnew(t *testing.T) {
	for _, ahead := range []int64{2 * minute, 365 * 24 * 60 * minute, -2 * minute, -365 * 24 * 60 * minute} {
		c := newChat()
		c.calls(300, 0)
		edges := len(c.edges)
		c.calls(300, ahead)
		assert.Greater(t, 2*(len(c.edges)-edges), edges, ahead/minute)
		last := c.edges[len(c.edges)-1]
		assert.InDelta(t, base+c.n*100e6+ahead, last.At, 10e9, ahead/minute)
	}
}

// TestReferenceIsSetBack: clock a is ahead for four seconds. When it is right again, so
// are the edges, within the windows and the batches that it takes to see it.
func TestReferenceIsSetBack(t *testing.T) {
	for _, ahead := range []int64{minute / 12, minute / 2, 60 * minute} {
		c := newChat()
		c.calls(300, 0)
		c.ofA = ahead
		c.calls(40, 0)
		c.ofA = 0
		c.calls(150, 0)
		edges := len(c.edges)
		c.calls(100, 0)
		require.Greater(t, len(c.edges), edges+2, ahead/1e9)
		for _, e := range c.edges[edges:] {
			assert.LessOrEqual(t, e.Lower, int64(5e6), ahead/1e9)
			assert.GreaterOrEqual(t, e.Upper, int64(5e6), ahead/1e9)
			assert.Less(t, e.Width(), 20e6, ahead/1e9)
		}
	}
}

// TestSilentPairGoesOn: time passed for the others too.
func TestSilentPairGoesOn(t *testing.T) {
	c := newChat()
	c.calls(300, 0)
	edges := len(c.edges)
	c.n += 36_000 // an hour
	c.calls(100, 0)
	assert.Greater(t, len(c.edges), edges)
	assert.Zero(t, c.e.Stats().Evidence.Liars)
}

// TestSettlesSeldom: a hundred batches at one moment, each with two clocks that were
// never seen, are no hundred solutions; nothing is solved again without news.
func TestSettlesSeldom(t *testing.T) {
	c := newChat()
	for n := range 400 {
		b := call(c.e, 6e6, -4e6)
		b.Spans[0].Clock, b.Spans[1].Clock = c.e.Clock(fmt.Sprint("x", n)), c.e.Clock(fmt.Sprint("y", n))
		c.e.Run(b)
		if n == 0 {
			require.Equal(t, 1, c.settled, "the first batch is corrected by itself")
		}
	}
	assert.Greater(t, len(c.edges), 50)
	assert.Less(t, c.settled, 30)
	settled := c.settled
	c.e.Run(&Batch{})
	assert.Equal(t, settled, c.settled)
}

// TestBothClocksSetBack: what looks late, and is all that comes, is where the clocks are.
func TestBothClocksSetBack(t *testing.T) {
	c := newChat()
	c.calls(300, 0)
	edges := len(c.edges)
	c.calls(300, -2*minute)
	assert.Greater(t, 10*(len(c.edges)-edges), 6*edges)
	stats := c.e.Stats().Evidence
	assert.LessOrEqual(t, stats.Late, int64(4*patience))
	assert.LessOrEqual(t, stats.Liars, int64(convinced))
}
