// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"sync/atomic"

	"github.com/lockstep-otel/lockstep/internal/sequence"
)

// usedKey is that of an atomic.Bool in the context of a call.
type usedKey struct{}

// Pass has a batch passed on, and gives the service what became of it. Spans that an analysis has used have arrived also
// where next returns an error: step traces or another component of the fan-out were refused, or the sender's time was
// over. The error is that of next.
func Pass(ctx context.Context, to Service, all []sequence.Arrival, next func(context.Context) error) error {
	to.Arriving(all)
	used := &atomic.Bool{}
	err := next(context.WithValue(ctx, usedKey{}, used))
	if err != nil && !used.Load() {
		to.Refused(all)
		return err
	}
	to.Arrived(all)
	return err
}

// Used notes that the analysis which waits for the steps has used the spans of a call. Without Pass above it, nothing
// happens.
func Used(ctx context.Context) {
	if used, ok := ctx.Value(usedKey{}).(*atomic.Bool); ok {
		used.Store(true)
	}
}
