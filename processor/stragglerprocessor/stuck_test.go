// SPDX-License-Identifier: Apache-2.0

package stragglerprocessor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// One batch that the next component does not take holds up neither others nor the end.
func TestConsume_NextNeverReturns_OthersAndTheEndGoOn(t *testing.T) {
	for name, change := range map[string]func(*Config){"in the same call": nil, "held": hold(1000, time.Hour)} {
		t.Run(name, func(t *testing.T) {
			stuck := delivertest.NewStuck(t)
			p := start(t, stuck, change)
			first := make(chan struct{})
			go func() {
				defer close(first)
				_ = p.ConsumeTraces(context.Background(), ofAll(0))
			}()
			<-stuck.Entered
			if change != nil {
				consume(t, p, ofRank(1, 0)) // it is held: nothing is passed on
			}
			err := delivertest.Shutdown(t, p.Shutdown)
			if change == nil {
				require.NoError(t, err, "there is nothing left to pass on")
				return
			}
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.EqualValues(t, 3, p.(*annotating).spansLost.Load(), "those of the rank that was held")
		})
	}
}

// A tick that the next component does not take does not keep the processor from its end.
func TestShutdown_TickIsStuck_KeepsItsDeadline(t *testing.T) {
	stuck := delivertest.NewStuck(t)
	p := start(t, stuck, func(c *Config) {
		hold(1000, time.Millisecond)(c)
		c.Analysis.Deadline = 2 * time.Millisecond
	})
	consume(t, p, ofRank(0, 0))
	<-stuck.Entered
	consume(t, p, ofRank(1, 0))
	require.ErrorIs(t, delivertest.Shutdown(t, p.Shutdown), context.DeadlineExceeded)
	assert.EqualValues(t, 6, p.(*annotating).spansLost.Load())
}

// What the next component is given when the collector stops, it gets if it takes little time.
func TestShutdown_NextIsSlow_NothingIsLost(t *testing.T) {
	slow := delivertest.NewSlow(50 * time.Millisecond)
	p := start(t, slow, func(c *Config) {
		hold(1000, time.Millisecond)(c)
		c.Analysis.Deadline = 2 * time.Millisecond
	})
	consume(t, p, ofRank(0, 0))
	<-slow.Entered
	require.NoError(t, p.Shutdown(context.Background()))
	assert.Zero(t, p.(*annotating).spansLost.Load())
}
