// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// exchanges are the all_to_all's of a rank's step, by start. What a rank computes
// between two of them may be as much as its peers sent it.
type exchanges struct {
	of   []exchange
	over int64 // when the first ended
	at   int   // the first that does not begin before what was asked last
}

type exchange struct {
	start, end int64
	bytes      int64 // what the rank gave into it; 0 where unknown
}

// take finds the exchanges of a view.
func (x *exchanges) take(v *rankView) {
	x.of, x.at = x.of[:0], 0
	for i := range v.comms {
		op := &v.comms[i]
		if op.form.collective != model.AllToAll || op.form.kind != model.KindCollective {
			continue
		}
		e := exchange{op.start, op.end, max(op.bytes, op.carried, 0)}
		if op.inferred {
			e.end = op.start
		}
		x.of = append(x.of, e)
	}
	if len(x.of) == 0 {
		return
	}
	slices.SortFunc(x.of, func(a, b exchange) int { return cmp.Compare(a.start, b.start) })
	x.over = slices.MinFunc(x.of, func(a, b exchange) int { return cmp.Compare(a.end, b.end) }).end
}

// between reports whether an operation ran after one exchange and before another, and
// what the rank gave into the latter: it sends back the results of what it got. It is
// asked in order of start.
func (x *exchanges) between(start, end int64) (bytes int64, ok bool) {
	if len(x.of) < 2 || start < x.over {
		return 0, false
	}
	for x.at < len(x.of) && x.of[x.at].start <= start {
		x.at++
	}
	// A long operation may run beside the next ones.
	at := x.at
	for at < len(x.of) && x.of[at].start < end {
		at++
	}
	if at == len(x.of) {
		return 0, false
	}
	return x.of[at].bytes, true
}
