// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer/consumererror"
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
