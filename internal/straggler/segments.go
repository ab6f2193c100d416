package straggler

import "slices"

// anchor finds the beginning of the segment that led each member to the
// meeting: its own last rendezvous that every member of its role had left before
// it came here. That must be the same one in their programs, so that segments
// are alike; members of different groups (tensor parallel, say) have rendezvous
// of their own that play the same part.
func anchor(m *meeting, mr *meetingRecord, placed [][]*meetingRecord) {
	for _, peers := range m.byRole() {
		if back, ok := m.commonAnchor(peers); ok {
			for _, i := range peers {
				m.parties[i].at.anchorAt(m.parties[i], back, &mr.members[i], placed)
			}
		} else if m.allFirst(peers) {
			for _, i := range peers {
				m.parties[i].lead(&mr.members[i])
			}
		}
	}
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
	member.segment = p.op.Start - p.at.start
	member.own = p.at.ownBetween(p.at.start, p.op.Start)
}

// commonAnchor returns how many places before the meeting its anchor stands in
// the sequence of every one of the parties.
func (m *meeting) commonAnchor(peers []int) (back int, ok bool) {
	for back = 1; back <= maxTail; back++ {
		over, alike := true, true
		var sig signature
		for n, i := range peers {
			p := m.parties[i]
			s, exit, here := p.at.before(p, back)
			if !here {
				return 0, false
			}
			if n == 0 {
				sig = s
			}
			alike = alike && s == sig
			over = over && exit <= p.op.Start
		}
		if over && alike {
			return back, true
		}
	}
	return 0, false
}

// findMet indexes the operations that met others. What a rank does with nobody,
// or with partners unknown, has no place in the others' programs.
func (v *rankView) findMet(placed []*meetingRecord) {
	v.metAt = make([]int, len(v.comms))
	for k, mr := range placed {
		v.metAt[k] = len(v.met)
		if mr != nil {
			v.met = append(v.met, k)
		}
	}
}

// order returns the party's place among what its rank met others in, this step.
func (p party) order() int { return p.at.metAt[p.pos] }

// before returns the rank's operation that stands back places before p. Where its
// end is no measurement, the others are not to look for another one: it begins no
// segment (endsKnown).
func (v *rankView) before(p party, back int) (sig signature, exit int64, ok bool) {
	at := p.order() - back
	if at >= 0 {
		op := &v.comms[v.met[at]]
		if op.EndInferred {
			return signatureOf(op), op.Start, true
		}
		return signatureOf(op), op.End, true
	}
	if at += v.tailLen(); at < 0 {
		return signature{}, 0, false
	}
	t := &v.tail.ops[at]
	if t.inferred {
		return t.sig, min(t.exit, p.op.Start), true
	}
	return t.sig, t.exit, true
}

func (v *rankView) tailLen() int {
	if v.tail == nil {
		return 0
	}
	return len(v.tail.ops)
}

// anchorAt fills the member's segment from the operation back places before it.
func (v *rankView) anchorAt(p party, back int, member *memberRecord, placed [][]*meetingRecord) {
	if member.known = v.endsKnown(p, back); !member.known {
		return
	}
	if at := p.order() - back; at >= 0 {
		op := &v.comms[v.met[at]]
		member.anchor = placed[v.index][v.met[at]]
		member.segment = p.op.Start - op.End
		member.own = v.ownBetween(max(op.End, v.lastArrival(p, back)), p.op.Start)
	} else {
		t := &v.tail.ops[at+v.tailLen()]
		member.anchor = t.meet
		member.segment = p.op.Start - t.exit
		// Between the end of one step and the start of the next nothing was
		// recorded: the host had launched nothing.
		between := own{idle: max(0, v.start-max(v.tail.end, t.exit))}
		member.own = t.after.plus(between).plus(v.ownBetween(max(v.start, v.tail.end), p.op.Start))
		if here := v.lastArrival(p, back); here > 0 {
			member.own = v.ownBetween(here, p.op.Start)
		}
	}
	if member.anchor != nil {
		member.anchorAt = member.anchor.find(v.rank.Rank)
	}
}

// endsKnown reports whether the ends of what the rank did with others from back
// places before p on are measurements: else it may have been free long before, or
// not yet.
func (v *rankView) endsKnown(p party, back int) bool {
	for at := p.order() - back; at < p.order(); at++ {
		if at >= 0 && v.comms[v.met[at]].EndInferred || at < 0 && v.tail.ops[at+v.tailLen()].inferred {
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
	return v.comms[v.met[p.order()-1]].Start
}

// find returns the member of the given rank, or -1.
func (mr *meetingRecord) find(rank int64) int { return slices.Index(mr.ranks, rank) }

// weigh fills each member's excess: its own time in its segment over the median
// of its peers'. The two sides of a message do different things, so that neither
// is the other's peer.
func (mr *meetingRecord) weigh() {
	if mr.rule == waitForSender {
		return
	}
	cohorts := map[role]*cohort{}
	for i := range mr.members {
		if m := &mr.members[i]; m.known {
			c := cohorts[m.role]
			if c == nil {
				c = &cohort{}
				cohorts[m.role] = c
			}
			c.add(m.own)
		}
	}
	for _, c := range cohorts {
		c.sort()
	}
	for i := range mr.members {
		if m := &mr.members[i]; m.known && len(cohorts[m.role].idle) > 1 {
			m.excess = m.own.minus(cohorts[m.role].medianWithout(m.own))
			m.weighed = true
			mr.weighOverlap(i)
		}
	}
}

// cohort holds the own times of the members of one role, each part for itself:
// overlapped compute is slower than compute alone and not comparable with it.
type cohort struct{ compute, overlapped, idle []int64 }

func (c *cohort) add(o own) {
	c.compute = append(c.compute, o.compute)
	c.overlapped = append(c.overlapped, o.overlapped)
	c.idle = append(c.idle, o.idle)
}

func (c *cohort) sort() {
	slices.Sort(c.compute)
	slices.Sort(c.overlapped)
	slices.Sort(c.idle)
}

func (c *cohort) medianWithout(o own) own {
	return own{
		compute:    medianWithout(c.compute, o.compute),
		overlapped: medianWithout(c.overlapped, o.overlapped),
		idle:       medianWithout(c.idle, o.idle),
	}
}

// medianWithout returns the median of the sorted values less one that equals x.
func medianWithout[T int64 | float64](sorted []T, x T) T {
	skip, _ := slices.BinarySearch(sorted, x)
	at := func(i int) T {
		if i >= skip {
			i++
		}
		return sorted[i]
	}
	n := len(sorted) - 1
	if n%2 == 1 {
		return at(n / 2)
	}
	return at(n/2-1) + (at(n/2)-at(n/2-1))/2
}
