// SPDX-License-Identifier: Apache-2.0

package stamp

// Part is a packet's place in a coded pair.
type Part uint8

// Places of a packet.
const (
	Single Part = 0
	First  Part = ClockFirst
	Second Part = ClockSecond
)

// Exchange is a request and its reply. T1 and T4 are stamps of the sender's clock,
// T2 and T3 of PeerClock; a stamp whose OK is false has no raw reading, but its
// Unix, unless 0, is what the packet itself says, within its Width.
type Exchange struct {
	Seq  uint32
	Pair uint32 // of Part First and Second
	Part Part
	Path uint8

	T1 Stamp // the request left
	T2 Stamp // it arrived
	T3 Stamp // the reply left
	T4 Stamp // it arrived

	ReflectorSeq uint32
	// Stateful: ReflectorSeq is the reflector's own count of replies.
	Stateful  bool
	PeerClock string // "" where the reflector did not say
	// Faulty: what the reply said of its clock must not be used, or was taken away.
	Faulty bool
	TTL    uint8 // of the request, on arrival
}

// Loss counts requests that were not answered in time.
type Loss struct {
	Forward  int64 // the request was lost, or the reflector refused it
	Backward int64 // the reply was lost
	Unknown  int64 // no telling which
}

// losses tells the directions apart by the count of a stateful reflector: of a
// run of requests without a reply, as many replies were lost as the count skips.
type losses struct {
	run   int64
	since int64  // ns, when the run's first was sent
	last  uint32 // reflector's count before the run
	known bool
}

func (l *losses) lost(at int64) {
	if l.run == 0 {
		l.since = at
	}
	l.run++
}

// answered closes the run before an answered request.
func (l *losses) answered(seq uint32, stateful bool, sum *Loss) {
	skipped := int64(int32(seq-l.last)) - 1
	switch {
	case l.run == 0:
	case !stateful || !l.known || skipped < 0:
		sum.Unknown += l.run
	default:
		back := min(skipped, l.run)
		sum.Backward += back
		sum.Forward += l.run - back
	}
	l.run, l.last, l.known = 0, seq, stateful
}

// give up on a run that nothing was answered after.
func (l *losses) giveUp(sum *Loss) {
	sum.Unknown += l.run
	l.run, l.known = 0, false
}
