// SPDX-License-Identifier: Apache-2.0

package probe

import "github.com/lockstep-otel/lockstep/internal/stamp"

// again reports whether a trip's answer left at a reading that was told of something else
// as well: its request's arrival, or the answer before on this path. Between two of these a
// program runs, for µs, and no clock by which kernels and NICs stamp shows the same; so the
// stamps are told again, or the clock stands still. Two arrivals may well be one reading,
// and so may be all that other reflectors tell, and that programs read, to whatever
// resolution they have.
func (h *heard) again(t *trip) bool {
	if h.foreign || !t.back.fine() {
		return false
	}
	before := h.left
	h.left = t.back
	return t.out.fine() && t.out.peer == t.back.peer || before.ok && before.peer == t.back.peer
}

// fine: no program's clock, which may count in ms, was read for any of the stamps.
func (l *leg) fine() bool { return l.ok && l.kind >= stamp.KindKernel }
