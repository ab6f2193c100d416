// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// anchors finds where segments begin. What it fills is used again for the next
// meeting.
type anchors struct {
	roles []role
	peers []int
	backs []int
}

// anchor finds the beginning of the segment that led each member to the
// meeting: its own last rendezvous that every member of its role had left before
// it came here. That must be the same one in their programs, so that segments
// are alike; members of different groups (tensor parallel, say) have rendezvous
// of their own that play the same part. A member whose span of it was lost begins
// where it can, and is compared with nobody.
func (a *anchors) anchor(m *meeting, mr *meetingRecord, placed [][]seatAt) {
	a.roles = a.roles[:0]
	for i := range m.parties {
		if r := mr.members[i].role; !slices.Contains(a.roles, r) {
			a.roles = append(a.roles, r)
		}
	}
	for _, r := range a.roles {
		a.peers = a.peers[:0]
		for i := range m.parties {
			if mr.members[i].role == r {
				a.peers = append(a.peers, i)
			}
		}
		a.cohort(m, mr, placed)
	}
}

// cohort anchors the members of one role.
func (a *anchors) cohort(m *meeting, mr *meetingRecord, placed [][]seatAt) {
	at, ok := a.common(m)
	switch {
	case ok:
		for n, i := range a.peers {
			p := m.parties[i]
			if back := a.backs[n]; back > 0 {
				p.at.anchorAt(p, back, &mr.members[i], placed)
				mr.members[i].place = p.place(at)
			} else if back, spot := p.latest(); back > 0 {
				p.at.anchorAt(p, back, &mr.members[i], placed)
				mr.members[i].place = p.place(spot)
			}
		}
	case m.allFirst(a.peers):
		for _, i := range a.peers {
			p := m.parties[i]
			p.lead(&mr.members[i])
			mr.members[i].place = p.place(1)
		}
	}
}

// place tells segments apart by role, by where they begin and end in the program, and
// by what came before: own time is counted from there on.
func (p party) place(from uint64) uint64 {
	before, _, _ := p.at.before(p, 1)
	return mix(mix(uint64(p.at.role), p.op.spot, from), before, 8)
}

// latest returns the last operation before p that was over when p began.
func (p party) latest() (back int, spot uint64) {
	for back = 1; back <= maxTail; back++ {
		spot, exit, here := p.at.before(p, back)
		if !here {
			break
		}
		if exit <= p.op.start {
			return back, spot
		}
	}
	return 0, 0
}

// allFirst reports whether no rendezvous was recorded before this one.
func (m *meeting) allFirst(peers []int) bool {
	return !slices.ContainsFunc(peers, func(i int) bool {
		p := m.parties[i]
		return p.at.tail != nil || p.order() != 0
	})
}

// lead takes the start of the step as the beginning of the segment.
func (p party) lead(member *memberRecord) {
	member.lead, member.known = true, true
	member.segment = p.op.start - p.at.start
	member.own = p.at.ownBetween(p.at.start, p.op.start)
}

// common returns the last operation that most peers had before the meeting and all of
// those had left when they came, and fills how many places before the meeting it stands
// in the sequence of each, 0 for those who lack it.
func (a *anchors) common(m *meeting) (spot uint64, ok bool) {
	// Who did most before has lost least.
	first := m.parties[a.peers[0]]
	for _, i := range a.peers[1:] {
		if p := m.parties[i]; p.order() > first.order() {
			first = p
		}
	}
	for back := 1; back <= maxTail; back++ {
		spot, exit, here := first.at.before(first, back)
		if !here {
			return 0, false
		}
		if exit <= first.op.start && a.shared(m, &first, spot, back) {
			return spot, true
		}
	}
	return 0, false
}

// shared reports whether most peers had the operation before the meeting, and all of
// those had left it when they came, as the first had, in so many places before.
func (a *anchors) shared(m *meeting, first *party, spot uint64, back int) bool {
	a.backs = a.backs[:0]
	lack := 0
	for _, i := range a.peers {
		p := &m.parties[i]
		if p.at == first.at {
			a.backs = append(a.backs, back)
			continue
		}
		at, exit := p.find(spot, back)
		if at > 0 && exit > p.op.start {
			return false
		}
		if at == 0 {
			lack++
		}
		a.backs = append(a.backs, at)
	}
	return 2*lack < len(a.peers)
}

// find returns how many places before p an operation stands, and when it was over; 0
// where it is not found near the given place.
func (p party) find(spot uint64, near int) (back int, exit int64) {
	const reach = 8
	for d := range reach {
		for _, back := range [2]int{near - d, near + d} {
			if back < 1 || back > maxTail || (d == 0 && back != near) {
				continue
			}
			if s, exit, here := p.at.before(p, back); here && s == spot {
				return back, exit
			}
		}
	}
	return 0, 0
}

// findMet indexes the operations that met others. What a rank does with nobody,
// or with partners unknown, has no place in the others' programs.
func (v *rankView) findMet(placed []seatAt) {
	v.placed = placed
	for k := range placed {
		placed[k].nth = int32(len(v.met))
		if placed[k].in == nil {
			continue
		}
		op := &v.comms[k]
		m := metOp{spot: op.spot, exit: op.end, at: int32(k), inferred: op.inferred}
		if op.inferred {
			m.exit = op.start
		}
		v.met = append(v.met, m)
	}
}

// order returns the party's place among what its rank met others in, this step.
func (p party) order() int { return int(p.at.placed[p.pos].nth) }

// before returns the rank's operation that stands back places before p. Where its
// end is no measurement, the others are not to look for another one: it begins no
// segment (endsKnown). Those of the step before have spots of their own.
func (v *rankView) before(p party, back int) (spot uint64, exit int64, ok bool) {
	at := p.order() - back
	if at >= 0 {
		return v.met[at].spot, v.met[at].exit, true
	}
	if at += v.tailLen(); at < 0 {
		return 0, 0, false
	}
	t := &v.tail.ops[at]
	if t.inferred {
		return ^t.spot, min(t.exit, p.op.start), true
	}
	return ^t.spot, t.exit, true
}

func (v *rankView) tailLen() int {
	if v.tail == nil {
		return 0
	}
	return len(v.tail.ops)
}

// anchorAt fills the member's segment from the operation back places before it.
func (v *rankView) anchorAt(p party, back int, member *memberRecord, placed [][]seatAt) {
	if member.known = v.endsKnown(p, back); !member.known {
		return
	}
	if at := p.order() - back; at >= 0 {
		op := &v.met[at]
		member.holed = v.holed(op.exit, p.op.start)
		from := placed[v.index][op.at]
		if from.in.order < placed[v.index][p.pos].in.order {
			member.anchor, member.anchored = from.member(), anchoredHere
		}
		member.segment = p.op.start - op.exit
		member.own = v.ownBetween(max(op.exit, v.lastArrival(p, back)), p.op.start)
	} else {
		t := &v.tail.ops[at+v.tailLen()]
		member.holed = t.holed || v.holed(v.start, p.op.start)
		if t.member != nil {
			member.anchor, member.anchored = t.member, anchoredBefore
		}
		member.segment = p.op.start - t.exit
		// Between the end of one step and the start of the next nothing was
		// recorded: the host had launched nothing.
		between := own{idle: max(0, v.start-max(v.tail.end, t.exit))}
		member.own = t.after.plus(between).plus(v.ownBetween(max(v.start, v.tail.end), p.op.start))
		if here := v.lastArrival(p, back); here > 0 {
			member.own = v.ownBetween(here, p.op.start)
		}
	}
}

// endsKnown reports whether the ends of what the rank did with others from back
// places before p on are measurements: else it may have been free long before, or
// not yet.
func (v *rankView) endsKnown(p party, back int) bool {
	for at := p.order() - back; at < p.order(); at++ {
		if at >= 0 && v.met[at].inferred || at < 0 && v.tail.ops[at+v.tailLen()].inferred {
			return false
		}
	}
	return true
}

// lastArrival returns when the rank arrived at the operation before p where
// that one still ran, so that own time is not counted for both; else 0.
func (v *rankView) lastArrival(p party, back int) int64 {
	if back == 1 || p.order() == 0 {
		return 0
	}
	return v.comms[v.met[p.order()-1].at].start
}

// find returns the member of the given rank, or -1.
func (mr *meetingRecord) find(rank int64) int { return slices.Index(mr.ranks, rank) }

// peerGroup are the members of several meetings that do the same in their programs.
type peerGroup struct{ members []*memberRecord }

// peering finds peers and compares them. What it fills is used again for the next step,
// but for the groups.
type peering struct {
	groups hashNumbers // places
	sizes  []int32
	alike  map[uint64]int
	alone  []alone
	cohort cohort
	done   []bool
}

// alone is a member that has few peers in its own meeting, and its group.
type alone struct {
	in        *meetingRecord
	at, group int32
}

// fewPeers is how many members of a meeting that do the same are too few to compare
// them with one another alone.
const fewPeers = 2

// find finds peers in other meetings for those that have few in their own, as in
// a pipeline: who has the same role and does the same in the same spot of its program.
func (p *peering) find(rec *record) []peerGroup {
	if p.alike == nil {
		p.alike = map[uint64]int{}
	}
	p.groups.reset()
	p.sizes, p.alone = p.sizes[:0], p.alone[:0]
	for _, mr := range rec.meets {
		switch {
		case len(mr.members) <= fewPeers:
			for i := range mr.members {
				if mr.members[i].comparable() {
					p.add(mr, i)
				}
			}
		case !mr.uniform():
			p.addFew(mr)
		}
	}
	groups := make([]peerGroup, len(p.sizes))
	members := make([]*memberRecord, len(p.alone))
	for g, n := range p.sizes {
		groups[g].members, members = members[:0:n], members[n:]
	}
	for _, a := range p.alone {
		g, m := &groups[a.group], &a.in.members[a.at]
		g.members = append(g.members, m)
		m.peers = g
	}
	return groups
}

// addFew adds the members of a larger meeting that have few peers in it.
func (p *peering) addFew(mr *meetingRecord) {
	clear(p.alike)
	for i := range mr.members {
		if m := &mr.members[i]; m.comparable() {
			p.alike[m.place]++
		}
	}
	for i := range mr.members {
		if m := &mr.members[i]; m.comparable() && p.alike[m.place] <= fewPeers {
			p.add(mr, i)
		}
	}
}

func (p *peering) add(mr *meetingRecord, i int) {
	g := p.groups.number(mr.members[i].place)
	if int(g) == len(p.sizes) {
		p.sizes = append(p.sizes, 0)
	}
	p.sizes[g]++
	p.alone = append(p.alone, alone{mr, int32(i), g})
}

// comparable reports whether all that the member did in its segment is known.
func (m *memberRecord) comparable() bool { return m.known && !m.holed }

// uniform reports whether all members are alike.
func (mr *meetingRecord) uniform() bool {
	first := mr.members[0].place
	for i := range mr.members {
		if m := &mr.members[i]; !m.comparable() || m.place != first {
			return false
		}
	}
	return true
}

// each calls f with the i-th member's peers.
func (mr *meetingRecord) each(i int, f func(o *memberRecord)) {
	m := &mr.members[i]
	if m.peers != nil {
		for _, o := range m.peers.members {
			if o != m {
				f(o)
			}
		}
		return
	}
	for k := range mr.members {
		if o := &mr.members[k]; k != i && o.comparable() && o.place == m.place {
			f(o)
		}
	}
}

// weigh fills each member's excess: its own time in its segment over the median
// of its peers'.
func (p *peering) weigh(rec *record) {
	groups := p.find(rec)
	for g := range groups {
		p.cohort.empty()
		for _, m := range groups[g].members {
			p.cohort.add(m)
		}
		p.cohort.sort()
		for _, m := range groups[g].members {
			m.weigh(&p.cohort)
		}
	}
	for _, mr := range rec.meets {
		if len(mr.members) > fewPeers {
			p.weighMeeting(mr)
		}
	}
}

// weighMeeting compares the members that have enough peers in the meeting.
func (p *peering) weighMeeting(mr *meetingRecord) {
	n := len(mr.members)
	p.done = slices.Grow(p.done[:0], n)[:n]
	clear(p.done)
	for i := range mr.members {
		m := &mr.members[i]
		if p.done[i] || m.peers != nil || !m.comparable() {
			continue
		}
		p.cohort.empty()
		alike := func(k int) bool {
			o := &mr.members[k]
			return o.place == m.place && o.comparable()
		}
		for k := range mr.members {
			if alike(k) {
				p.cohort.add(&mr.members[k])
			}
		}
		p.cohort.sort()
		for k := i; k < n; k++ {
			if alike(k) {
				p.done[k] = true
				mr.members[k].weigh(&p.cohort)
			}
		}
	}
}

// weigh compares the member with its cohort, which counts it too.
func (m *memberRecord) weigh(c *cohort) {
	if len(c.idle) > 1 {
		m.excess = m.own.minus(c.typicalWithout(m.own))
		m.weighed = true
		m.weighOverlap(c)
	}
}

// cohort holds the own times of the members of one role, each part for itself:
// overlapped compute is slower than compute alone and not comparable with it.
type cohort struct {
	compute, overlapped, idle []int64
	between                   []int64 // of those whose communication overlapped
	some                      own     // bits of all, 0 where nobody had any
}

func (c *cohort) empty() {
	c.compute, c.overlapped, c.idle, c.between = c.compute[:0], c.overlapped[:0], c.idle[:0], c.between[:0]
	c.some = own{}
}

func (c *cohort) add(m *memberRecord) {
	o := &m.own
	if m.overlapped {
		c.between = append(c.between, m.between())
	}
	c.compute = append(c.compute, o.compute)
	c.overlapped = append(c.overlapped, o.overlapped)
	c.idle = append(c.idle, o.idle)
	c.some = own{c.some.compute | o.compute, c.some.overlapped | o.overlapped, c.some.idle | o.idle}
}

// sort sorts what is not all the same, as it is where nobody had any.
func (c *cohort) sort() {
	if c.some.compute != 0 {
		slices.Sort(c.compute)
	}
	if c.some.overlapped != 0 {
		slices.Sort(c.overlapped)
	}
	if c.some.idle != 0 {
		slices.Sort(c.idle)
	}
	slices.Sort(c.between)
}

func (c *cohort) typicalWithout(o own) own {
	return own{
		compute:    stats.MedianWithout(c.compute, o.compute),
		overlapped: stats.MedianWithout(c.overlapped, o.overlapped),
		idle:       stats.MedianWithout(c.idle, o.idle),
	}
}
