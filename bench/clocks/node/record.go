// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/lockstep-otel/lockstep/bench/clocks/plan"
	"github.com/lockstep-otel/lockstep/internal/clock/pair"
)

// maxInputs is how many inputs of one pair of clocks are kept of a window.
const maxInputs = 1 << 15

// recorder keeps what estimators are given until it is reported.
type recorder struct{ pairs []*plan.Fed }

// of records one pair of clocks.
func (r *recorder) of(own, peer string) func(pair.Input) {
	fed := &plan.Fed{Own: own, Peer: peer, Fresh: true}
	r.pairs = append(r.pairs, fed)
	return func(in pair.Input) {
		if len(fed.Inputs) >= maxInputs && in.Kind != pair.InputClose {
			fed.Cut++
			return
		}
		fed.Inputs = append(fed.Inputs, [4]int64{int64(in.Kind), in.A, in.B, in.Width})
	}
}

// take returns what was given since it was called before. Estimators that were given
// nothing are gone or idle, and told of when they are given something again.
func (r *recorder) take() (out []plan.Fed) {
	for _, fed := range r.pairs {
		if len(fed.Inputs) > 0 {
			out = append(out, *fed)
			fed.Fresh, fed.Inputs, fed.Cut = false, nil, 0
		}
	}
	return out
}
