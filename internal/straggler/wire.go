// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// wire is what a member of a meeting says of the link behind it: how long its
// sends were under way.
type wire struct {
	known bool  // it sent, and there are peers that did to compare it with
	raw   int64 // the wait that the source summed, ns
	steps int64 // the sent steps that this is the sum over
	peer  int64 // global rank on the link with the longest wait; -1 where unknown
	// stay is how long the operation ran, and exposed how much of that after
	// the last arrival with no computing of its own beside it.
	stay, exposed int64
	// excess is how much longer the meeting took than with the wire waits per step
	// of this member's peers, at most; negative where it waited less than they.
	excess int64
	usual  float64 // the median of its peers' rates, ns per step
	peers  int     // the others that sent
}

// noWire is that of a member of which no wait was recorded. It is never written.
var noWire = wire{peer: -1}

// rate returns the wait per sent step, ns. Who sends more, such as an inner node
// of a tree, waits longer in all without a slower link.
func (w *wire) rate() float64 { return float64(w.raw) / float64(w.steps) }

// weighWires fills the wire waits of the step's meetings and compares each with
// those of its peers: in a collective the members of one role that send, for a message
// the messages that other ranks of the sender's role sent in the same place.
func (rec *record) weighWires(meetings []*meeting) {
	if !slices.ContainsFunc(meetings, (*meeting).wired) {
		for k, m := range meetings {
			if m.attributed && m.rule == waitAll { // of messages nothing else is asked
				m.takeWires(rec.meets[k])
			}
		}
		return
	}
	sends := map[sendPlace][]*memberRecord{}
	sent := map[int32]int{} // messages of each rank so far
	for _, k := range byStart(meetings) {
		m, mr := meetings[k], rec.meets[k]
		if !m.attributed {
			continue
		}
		m.takeWires(mr)
		switch m.rule {
		case waitAll:
			weighRoles(mr.members)
		case waitForSender:
			from := &mr.members[m.last]
			at := sendPlace{from.role, sent[from.rank]}
			if from.wire.known {
				from.wire.exposed = m.exposed[1-m.last]
				from.wire.known = !m.parties[1-m.last].op.inferred
			}
			sent[from.rank]++
			sends[at] = append(sends[at], from)
		}
	}
	for _, peers := range sends {
		weighPeers(peers)
	}
	rec.sumWires()
}

// sendPlace tells which messages of different ranks are the same in their
// programs.
type sendPlace struct {
	role role
	n    int
}

// byStart returns the meetings' indices in the order in which they were begun.
func byStart(meetings []*meeting) []int {
	out := make([]int, len(meetings))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, func(a, b int) int {
		ma, mb := meetings[a], meetings[b]
		return cmp.Compare(ma.enter[ma.last], mb.enter[mb.last])
	})
	return out
}

// wired reports whether waits on the wire were recorded of some party.
func (m *meeting) wired() bool {
	for i := range m.parties {
		if m.parties[i].op.wired {
			return true
		}
	}
	return false
}

// takeWires reads the wire waits of those who sent. A receiver has none: what it
// waits for is its sender's. An end that was not seen says nothing of how long
// the waits were under way.
func (m *meeting) takeWires(mr *meetingRecord) {
	for i := range m.parties {
		p := &m.parties[i]
		m.exposed[i] = 0
		from := max(p.op.start, m.arrived-p.at.shift(p.op))
		if p.op.end > from {
			m.exposed[i] = p.op.end - from
			if p.at.parts[partOverlapped] > 0 {
				m.exposed[i] -= p.at.ownBetween(from, p.op.end).overlapped
			}
		}
		if m.rule == waitForSender && i != m.last {
			continue
		}
		seconds, steps := p.op.wire, p.op.wireSteps
		if p.op.wired && seconds >= 0 && seconds < maxWait && steps > 0 && !p.op.inferred {
			mr.members[i].wire = &wire{
				known: true, raw: int64(seconds * 1e9), steps: steps, peer: m.peerOf(*p),
				stay: p.op.duration(), exposed: m.exposed[i],
			}
		}
	}
}

// maxWait bounds a wait that is believed, in seconds: a day. Beyond it the number
// is no wait, and would overflow sums.
const maxWait = 86400

// peerOf returns the global rank on the other side of the party's slowest link.
func (m *meeting) peerOf(p party) int64 {
	if p.op.peer >= 0 && int64(p.op.peer) != p.at.rank.Rank {
		return int64(p.op.peer)
	}
	for _, q := range m.parties {
		if q.at != p.at && p.op.peerLocal >= 0 && q.op.commRank == p.op.peerLocal {
			return q.at.rank.Rank
		}
	}
	return -1
}

func weighRoles(members []memberRecord) {
	byRole := map[role][]*memberRecord{}
	for i := range members {
		if m := &members[i]; m.wire.known {
			byRole[m.role] = append(byRole[m.role], m)
		}
	}
	for _, peers := range byRole {
		weighPeers(peers)
	}
}

// minSenders is how many other senders a link is compared with, at least. Two
// links only show that they differ: the slower may be the usual one, and the other
// a shorter way.
const minSenders = 2

func weighPeers(peers []*memberRecord) {
	var rates []float64
	for _, m := range peers {
		if m.wire.known {
			rates = append(rates, m.wire.rate())
		}
	}
	slices.Sort(rates)
	for _, m := range peers {
		if !m.wire.known {
			continue
		}
		if m.wire.known = len(rates) > minSenders; m.wire.known {
			m.wire.peers, m.wire.usual = len(rates)-1, stats.MedianWithout(rates, m.wire.rate())
			m.wire.excess = m.wire.over(m.wire.usual)
		}
	}
}

// over returns by how much the wire wait lengthened the operation beyond a usual
// one, given per step. Waits of several channels and chunks that were under way
// together sum to more than the operation lasted, and are scaled to it.
func (w *wire) over(usual float64) int64 {
	x := w.raw - int64(usual*float64(w.steps))
	if w.raw > w.stay && w.raw > 0 {
		x = int64(float64(x) * float64(w.stay) / float64(w.raw))
	}
	return min(x, w.exposed)
}

// sumWires adds up each rank's excess over the step. Operations that ran side by
// side cannot have cost more than the time in which there was any.
func (rec *record) sumWires() {
	for _, mr := range rec.meets {
		for i := range mr.members {
			m := &mr.members[i]
			if !m.wire.known {
				continue
			}
			r := &rec.ranks[m.rank]
			r.wired = true
			r.wire += m.wire.excess
			r.transfer += m.wire.exposed
		}
	}
	for i := range rec.ranks {
		r := &rec.ranks[i]
		r.transfer = min(r.transfer, r.communicated)
		r.wire = min(r.wire, r.transfer)
	}
}

// relief returns how much sooner the meeting would be over with the given ranks'
// links as fast as their peers': the next slowest holds it up then.
func (mr *meetingRecord) relief(links map[int64]bool) int64 {
	if len(links) == 0 {
		return 0
	}
	var all, rest int64
	for i := range mr.members {
		x := mr.members[i].wire.excess
		all = max(all, x)
		if !links[mr.ranks[i]] {
			rest = max(rest, x)
		}
	}
	return all - rest
}

// wireRelief returns how much sooner the transfer would be over with the given ranks'
// links as fast as their peers', whether or not anything ran beside it.
func (mr *meetingRecord) wireRelief(links map[int64]bool) int64 {
	if len(links) == 0 || !mr.attributed {
		return 0
	}
	took := mr.took()
	var all, rest int64
	for i := range mr.members {
		w := mr.members[i].wire
		if !w.known || w.raw <= 0 {
			continue
		}
		x := float64(w.raw) - w.usual*float64(w.steps)
		by := min(int64(max(0, x)*min(1, float64(took)/float64(w.raw))), took)
		all = max(all, by)
		if !links[mr.ranks[i]] {
			rest = max(rest, by)
		}
	}
	return all - rest
}

// took returns how long the transfer took after the last arrival.
func (mr *meetingRecord) took() (ns int64) {
	for i := range mr.members {
		ns = max(ns, mr.members[i].exit-mr.arrived)
	}
	return ns
}
