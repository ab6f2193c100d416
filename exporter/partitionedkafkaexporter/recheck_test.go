// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
)

var errAway = errors.New("brokers are away")

// shown is what a test sees of a recheck.
type shown struct {
	asked atomic.Int64
	fault atomic.Bool
}

func (s *shown) set(err error) { s.fault.Store(err != nil) }

// A fault that nothing tries again is over once the brokers answer.
func TestRecheck_NothingIsWritten_BrokersAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen shown
		answers := []error{errAway, nil}
		r := newRecheck(func(context.Context) error { return answers[seen.asked.Add(1)-1] }, seen.set)
		defer r.end()
		r.begin()
		r.known(errAway)
		time.Sleep(recheckAfter - time.Second)
		synctest.Wait()
		assert.Zero(t, seen.asked.Load())
		time.Sleep(recheckAfter)
		synctest.Wait()
		assert.EqualValues(t, 1, seen.asked.Load())
		assert.True(t, seen.fault.Load())
		time.Sleep(recheckAfter)
		synctest.Wait()
		assert.False(t, seen.fault.Load())
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.EqualValues(t, 2, seen.asked.Load(), "there is no fault any more")
	})
}

// What is written shows more than an answer to a question of before.
func TestRecheck_DataAreWritten_AnswerIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen shown
		answer := make(chan struct{})
		r := newRecheck(func(context.Context) error {
			seen.asked.Add(1)
			<-answer
			return nil
		}, seen.set)
		r.begin()
		r.known(errAway)
		time.Sleep(recheckAfter)
		synctest.Wait()
		assert.EqualValues(t, 1, seen.asked.Load())
		r.begin()
		r.known(errAway)
		close(answer)
		synctest.Wait()
		assert.True(t, seen.fault.Load())
		r.begin()
		r.known(nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.EqualValues(t, 1, seen.asked.Load())
		r.end()
		r.known(errAway)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.EqualValues(t, 1, seen.asked.Load(), "it has ended")
	})
}

// At the end, a question that brokers do not answer is given up.
func TestRecheck_End_WakesWhatIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecheck(func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, func(error) {})
		r.known(errAway)
		time.Sleep(recheckAfter)
		synctest.Wait()
		r.end()
	})
}

// A retry is given up by its caller, as at a rebalance: it shows nothing, and the fault is asked for all the same.
func TestRecheck_CallerGivesUp_BrokersAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen shown
		r := newRecheck(func(context.Context) error { seen.asked.Add(1); return nil }, seen.set)
		defer r.end()
		r.begin()
		r.known(errAway)
		r.begin()
		r.nothing()
		time.Sleep(recheckAfter)
		synctest.Wait()
		assert.EqualValues(t, 1, seen.asked.Load())
		assert.False(t, seen.fault.Load())
		r.begin()
		r.nothing()
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.EqualValues(t, 1, seen.asked.Load(), "there is no fault any more")
	})
}

// What brokers answered to a write, only a write ends: they know the topic all the time.
func TestRecheck_WriteWasRefused_NothingIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen shown
		r := newRecheck(func(context.Context) error { seen.asked.Add(1); return nil }, seen.set)
		defer r.end()
		r.begin()
		r.known(fmt.Errorf("write: %w", sarama.ErrNotEnoughReplicas))
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Zero(t, seen.asked.Load())
		assert.True(t, seen.fault.Load())
	})
}
