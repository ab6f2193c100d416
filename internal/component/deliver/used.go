// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"sync/atomic"
)

// usedKey is that of a *use in the context of a call.
type usedKey struct{}

// use is whether the data of a call were used, for one that asks and for those that asked before.
type use struct {
	noted atomic.Bool
	outer *use
}

// WatchUse returns a context for a call, and whether an analysis has used the data of the call, whatever error it
// returned: step traces may have been refused, or the sender's time was over.
func WatchUse(ctx context.Context) (_ context.Context, used func() bool) {
	u := &use{}
	u.outer, _ = ctx.Value(usedKey{}).(*use)
	return context.WithValue(ctx, usedKey{}, u), u.noted.Load
}

// Used notes that an analysis has used the data of a call. Where nothing asks, nothing happens.
func Used(ctx context.Context) {
	u, _ := ctx.Value(usedKey{}).(*use)
	for ; u != nil; u = u.outer {
		u.noted.Store(true)
	}
}
