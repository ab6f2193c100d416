// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// farthest bounds readings, 109 years from either side of a clock's origin, so that
// differences of two, and what is made of them, stay within int64.
const farthest = int64(3) << 60

// leg is one message of a trip with its two stamps: what our clock read at our end
// of it, and what the peer's read at the peer's.
type leg struct {
	ok         bool
	ours, peer int64 // readings
	width      int64 // ns, of both stamps together
	kind       uint8 // the worse of both
}

func newLeg(ours, peer stamp.Stamp) leg {
	return leg{
		ok: ours.OK() && peer.OK(), ours: ours.Raw, peer: peer.Raw,
		width: int64(ours.Width) + int64(peer.Width), kind: min(ours.Kind, peer.Kind),
	}
}

// near reports whether the readings of a leg, if there are any, are within reach.
func (l *leg) near() bool {
	return !l.ok || max(l.ours, l.peer) <= farthest && min(l.ours, l.peer) >= -farthest
}

// trip is one probe: a request out, and a reply back.
type trip struct {
	seq       uint32 // number of the request
	pair      uint32 // of two probes sent back to back; 0: of none
	sent      int64  // reading of our clock
	out, back leg
	// roundTrip is how long both messages were under way, in ns, by differences
	// of one clock each; negative where a stamp is missing or they contradict.
	roundTrip int64
}

// verdict is what a trip's own four stamps say of one another.
type verdict int

const (
	// sound: nothing, or no more than that they agree.
	sound verdict = iota
	// early: the reply left before the request had arrived. That makes both
	// samples of the offset weaker than they could be and neither false, be it the
	// arrival that is late or the departure that is early; there is no round trip.
	early
	// crossed: the peer held the request for longer than we waited for the reply. Then
	// one of the samples is false.
	crossed
)

// judge compares the stamps, to their widths and to a difference in rate of 1,000
// ppm. The legs' readings are near.
func (t *trip) judge() verdict {
	if !t.out.ok || !t.back.ok {
		return sound
	}
	waited, held := t.back.ours-t.out.ours, t.back.peer-t.out.peer
	slack := t.out.width + t.back.width + 2
	switch {
	case held > waited+max(0, waited)/1000+slack:
		return crossed
	case held < -slack:
		return early
	}
	t.roundTrip = max(0, waited-held)
	return sound
}

// direction selects the legs of one direction.
type direction func(*trip) *leg

func outLeg(t *trip) *leg  { return &t.out }
func backLeg(t *trip) *leg { return &t.back }

// spacing is by how much two legs drew together or apart under way.
func spacing(a, b *leg) int64 { return abs((b.peer - a.peer) - (b.ours - a.ours)) }

func abs(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

// stampName returns the name of a kind of stamps.
func stampName(kind uint8) string {
	switch kind {
	case stamp.KindHardware:
		return model.StampHardware
	case stamp.KindKernel:
		return model.StampKernel
	default:
		return model.StampUser
	}
}
