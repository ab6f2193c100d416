// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/sequence"
)

// calls is a service that notes what became of a batch.
type calls struct {
	Service
	noted []string
}

func (c *calls) Arriving([]sequence.Arrival) { c.noted = append(c.noted, "arriving") }
func (c *calls) Refused([]sequence.Arrival)  { c.noted = append(c.noted, "refused") }
func (c *calls) Arrived([]sequence.Arrival)  { c.noted = append(c.noted, "arrived") }

func TestPass_BatchHasArrived_WhereItWasAcceptedOrUsed(t *testing.T) {
	for _, of := range []struct {
		err  error
		used bool
		want string
	}{{nil, false, "arrived"}, {nil, true, "arrived"}, {assert.AnError, false, "refused"}, {assert.AnError, true, "arrived"}} {
		c := &calls{}
		err := Pass(t.Context(), c, nil, func(ctx context.Context) error {
			if of.used {
				deliver.Used(ctx)
			}
			return of.err
		})
		require.Equal(t, of.err, err, "the error is the sender's")
		assert.Equal(t, []string{"arriving", of.want}, c.noted)
	}
}
