// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/mesh"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// answerWithin is after how long a request counts as lost. What is under way for
// longer was lost for all that a job can tell.
const answerWithin = time.Second

// maxTrips is the most round trips that a path keeps for a window; 65,536 are
// those of 1,000 a second in a minute, as long as a window may be.
const maxTrips = 1 << 16

// session is the probing of one peer on one path. The socket's mutex guards it.
type session struct {
	from     string // our end point
	peer     mesh.Member
	path     int
	ownClock string
	sender   *stamp.Sender
	count    *counts

	byClock map[string]*heard // since the last window, by the peer's clock
	last    lastAnswer
	held    int              // trips in byClock
	loss    stamp.Loss       // since the last window
	done    []stamp.Exchange // scratch
}

// clocksPerPeer is how many clocks a peer may name in a window: more than two are
// refused when it ends, but counted as what they are.
const clocksPerPeer = 16

// heard is what came of one clock.
type heard struct {
	trips    []trip
	crossed  contradictions
	answered int64 // requests
	left     leg   // the last answer
	foreign  bool
}

// lastAnswer is what a peer told last of when an answer left, and of which clock.
type lastAnswer struct {
	clock string
	left  leg
}

// received takes a reply and the exchanges that it completes.
func (s *session) received(reply []byte, at stamp.Stamp) {
	// A reply that is refused is counted by the sender, and may still end the wait
	// of others.
	var err error
	if s.done, err = s.sender.Received(reply, at, s.done[:0]); err != nil {
		s.count.culprits.add(replyReason(err), s.peer.Addr.Addr())
	}
	s.keep()
}

func (s *session) keep() {
	for i := range s.done {
		x := &s.done[i]
		if s.held >= maxTrips {
			s.count.tripsDropped.Add(1)
			continue
		}
		clock, t := s.trip(x)
		if _, _, ok := parseClock(clock); !ok && !isForeign(clock) || x.Faulty {
			clock, t = "", trip{sent: t.sent, roundTrip: -1} // answered, and that is all
		}
		h := s.byClock[clock]
		if h == nil {
			if len(s.byClock) >= clocksPerPeer {
				s.count.refuse(errManyClocks, 1, s.peer.Addr.Addr())
				continue
			}
			h = &heard{foreign: isForeign(clock)}
			if s.last.clock == clock {
				h.left = s.last.left // of a window before
			}
			s.byClock[clock] = h
		}
		s.sort(t, h)
		if h.left.ok {
			s.last = lastAnswer{clock, h.left}
		}
	}
}

// sort keeps a trip with those of its clock, unless it contradicts itself.
func (s *session) sort(t trip, h *heard) {
	h.answered++
	if !t.out.near() || !t.back.near() {
		s.count.farReadings.Add(1)
		return
	}
	told := t.judge()
	if h.again(&t) {
		told = crossed
	}
	switch told {
	case crossed:
		s.count.crossed.Add(1)
		s.count.culprits.add("clock.crossed", s.peer.Addr.Addr())
		h.crossed.add(t)
		return
	case early:
		s.count.early.Add(1)
	}
	h.trips = append(h.trips, t)
	s.held++
}

// trip reads an exchange. A reflector that does not know our TLV tells only what
// its time of day is, which is a clock of its own.
func (s *session) trip(x *stamp.Exchange) (clock string, t trip) {
	clock = x.PeerClock
	t2, t3 := x.T2, x.T3
	switch {
	case isForeign(clock):
		clock = "" // a name that only we give
	case clock == "":
		clock = foreignClock(s.peer.Addr)
		t2, t3 = timeOfDay(t2), timeOfDay(t3)
	}
	return clock, trip{seq: x.Seq, pair: x.Pair, sent: x.T1.Raw, out: newLeg(x.T1, t2), back: newLeg(x.T4, t3), roundTrip: -1}
}

// timeOfDay reads what stands in the packet itself as a stamp of the program, within
// the error that the packet claims.
func timeOfDay(s stamp.Stamp) stamp.Stamp {
	if s.Unix == 0 {
		return stamp.Stamp{}
	}
	return stamp.Stamp{Raw: s.Unix, Unix: s.Unix, Kind: stamp.KindUser, Width: s.Width}
}

// expire gives up what has waited for too long, by a reading of our clock.
func (s *session) expire(now int64) {
	var loss stamp.Loss
	s.done, loss = s.sender.Expire(now, s.done[:0])
	s.keep()
	s.loss.Forward += loss.Forward
	s.loss.Backward += loss.Backward
	s.loss.Unknown += loss.Unknown
}

// take hands out what came since the last call. now is a reading of our clock.
func (s *session) take(now int64) []pathTrips {
	s.expire(now)
	loss := s.loss
	s.loss = stamp.Loss{}
	unanswered := loss.Forward + loss.Backward + loss.Unknown
	p := pathTrips{
		pathKey: pathKey{from: s.from, to: endPoint(s.peer), path: s.path, clocks: clockPair{own: s.ownClock}},
		node:    s.peer.Node, at: s.peer.Addr.Addr(), lostOut: loss.Forward, lostBack: loss.Backward, unanswered: unanswered, sent: unanswered,
	}
	var out []pathTrips
	for clock, h := range s.byClock {
		slices.SortFunc(h.trips, func(a, b trip) int { return cmp.Compare(a.sent, b.sent) })
		c := p
		c.clocks.peer, c.trips, c.crossed, c.answered = clock, h.trips, h.crossed, h.answered
		c.sent += h.answered
		out = append(out, c)
		p.lostOut, p.lostBack, p.unanswered, p.sent = 0, 0, 0, 0 // told once
	}
	clear(s.byClock)
	s.held = 0
	if len(out) == 0 && p.sent > 0 {
		out = append(out, p)
	}
	return out
}

func endPoint(m mesh.Member) string { return m.Node + "/" + m.Addr.Addr().String() }
