// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/sequence"
)

// Pass has a batch passed on, and gives the service what became of it. Spans that the analysis has used which waits for
// the steps ([deliver.Used]) have arrived also where next returns an error: step traces or another component of the
// fan-out were refused, or the sender's time was over. The error is that of next.
func Pass(ctx context.Context, to Service, all []sequence.Arrival, next func(context.Context) error) error {
	to.Arriving(all)
	ctx, used := deliver.WatchUse(ctx)
	err := next(ctx)
	if err != nil && !used() {
		to.Refused(all)
		return err
	}
	to.Arrived(all)
	return err
}
