// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"slices"
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

// analysed is the error of a component that has used data, and could not send what came of them.
type analysed struct{ error }

func (a analysed) Unwrap() error { return a.error }

// Analysed marks an error of a component that has used the data of a call: what it could not send came of them.
func Analysed(err error) error { return analysed{err} }

// isAnalysed reports whether every branch that failed has used the data.
func isAnalysed(err error) bool {
	switch e := err.(type) { //nolint:errorlint // one error of the tree is looked at
	case analysed:
		return true
	case interface{ Unwrap() []error }:
		all := e.Unwrap()
		return len(all) > 0 && !slices.ContainsFunc(all, func(one error) bool { return !isAnalysed(one) })
	case interface{ Unwrap() error }:
		return isAnalysed(e.Unwrap())
	}
	return false
}
