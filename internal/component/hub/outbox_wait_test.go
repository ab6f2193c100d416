// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// Without Wait, no sender waits for a next component.
func TestConsume_NextIsSlow_SenderDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := findingsRig(t, delivertest.TakesAfter(deliver.Patience/2)), time.Now()
		r.sendEach("a1", "b1")
		assert.Zero(t, time.Since(began))
		time.Sleep(deliver.Patience)
		r.stop()
		assert.Equal(t, []string{"a1", "b1"}, delivered(r.logs))
	})
}

// A sender waits until what came of its batch was taken or refused, so that it slows down with the next
// component; and for one that is stuck, no longer than its patience, once.
func TestConsumeWait_NextTakesItsTime_SenderWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		answer delivertest.Answer
		want   []time.Duration
	}{
		"slow":    {delivertest.TakesAfter(deliver.Patience / 2), []time.Duration{deliver.Patience / 2, deliver.Patience / 2}},
		"stuck":   {delivertest.TakesAfter(time.Hour), []time.Duration{deliver.Patience, 0, 0}},
		"refuses": {delivertest.Refuses(1000, assert.AnError), []time.Duration{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.Wait, r.conclude = true, findings
				r.logsToLogs(delivertest.NewNext(tc.answer))
				r.begin()
				var got []time.Duration
				for range tc.want {
					began := time.Now()
					r.mustSend("a1")
					got = append(got, time.Since(began))
				}
				assert.Equal(t, tc.want, got)
				_ = r.instances[0].Shutdown(context.Background())
			})
		})
	}
}

func TestConsumeWait_SenderLeaves_OutputIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Wait, r.conclude = true, findings
		r.logs = delivertest.NewNext(delivertest.TakesAfter(deliver.Patience))
		r.logsToLogs(r.logs)
		r.begin()
		ctx, cancel := context.WithTimeout(t.Context(), deliver.Patience/4)
		defer cancel()
		began := time.Now()
		require.NoError(t, r.send(ctx, "a1"), "the engine has used it")
		assert.Equal(t, deliver.Patience/4, time.Since(began))
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"a1"}, delivered(r.logs))
		r.stop()
	})
}
