// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// Those that came since the first attempt count, and those that newer ones replaced do not.
func TestFindings_RefusedForGoodInTheEnd_AreCountedAsTheyAreThen(t *testing.T) {
	for first, tc := range map[string]struct {
		then string
		lost int64
	}{
		"a1":       {"b1 c1 d1", 4},
		"a1 b1":    {"a2", 2},
		"a1 a2 a3": {"", 1},
	} {
		t.Run(first, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := findingsRig(t, func(_ context.Context, call int64) error {
					if call == 1 {
						return assert.AnError
					}
					return consumererror.NewPermanent(assert.AnError)
				})
				r.mustSend(first)
				synctest.Wait()
				r.mustSend(tc.then)
				time.Sleep(time.Minute)
				assert.Equal(t, tc.lost, r.counts.EventsLost.Load())
				r.stop()
				assert.Equal(t, tc.lost, r.counts.EventsLost.Load())
			})
		})
	}
}

// Both revisions of a finding of which none arrives count.
func TestLeave_NextIsStuck_EachRevisionIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = findings
		r.Flush = func(time.Time) Output { return findings("a2") }
		r.logsToLogs(delivertest.NewStuck(t))
		r.begin()
		r.sendEach("a1")
		err := r.instances[0].Shutdown(t.Context())
		require.ErrorContains(t, err, "2 are lost")
		require.ErrorContains(t, err, "3 items were not delivered", "a1 in the call that does not return, and both in one that is not made")
		assert.Equal(t, int64(2), r.counts.EventsLost.Load())
	})
}
