package straggler

import "slices"

// anchor finds the beginning of the segment that led each member to the
// meeting: its own last rendezvous that every member had left before it came
// here. That must be the same one in all members' programs, so that segments
// are alike; members of different groups (tensor parallel, say) have rendezvous
// of their own that play the same role.
func anchor(m *meeting, mr *meetingRecord, placed [][]*meetingRecord) {
	back, ok := commonAnchor(m)
	for i, p := range m.parties {
		member := &mr.members[i]
		switch {
		case ok:
			p.at.anchorAt(p, back, member, placed)
		case p.at.tail == nil && p.pos == p.at.base:
			member.lead, member.known = true, true
			member.segment = p.op.Start - p.at.start
			member.own = p.at.ownBetween(p.at.start, p.op.Start)
		}
	}
	if !ok && !allLead(mr) {
		for i := range mr.members {
			mr.members[i].lead, mr.members[i].known = false, false
		}
	}
}

func allLead(mr *meetingRecord) bool {
	for i := range mr.members {
		if !mr.members[i].lead {
			return false
		}
	}
	return true
}

// commonAnchor returns how many places before the meeting its anchor stands in
// every member's sequence.
func commonAnchor(m *meeting) (back int, ok bool) {
	for back = 1; back <= maxTail; back++ {
		over, alike := true, true
		var sig signature
		for i, p := range m.parties {
			s, exit, here := p.at.before(p, back)
			if !here {
				return 0, false
			}
			if i == 0 {
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

// before returns the rank's operation that stands back places before p.
func (v *rankView) before(p party, back int) (sig signature, exit int64, ok bool) {
	at := p.pos - back
	switch {
	case at < 0:
		return signature{}, 0, false
	case at < v.base:
		t := &v.tail.ops[at]
		return t.sig, t.exit, true
	}
	op := &v.comms[at-v.base]
	return signatureOf(op), op.End, true
}

// anchorAt fills the member's segment from the operation back places before it.
func (v *rankView) anchorAt(p party, back int, member *memberRecord, placed [][]*meetingRecord) {
	member.known = true
	at := p.pos - back
	if at >= v.base {
		op := &v.comms[at-v.base]
		member.anchor = placed[v.index][at-v.base]
		member.segment = p.op.Start - op.End
		member.own = v.ownBetween(max(op.End, v.lastArrival(p, back)), p.op.Start)
	} else {
		t := &v.tail.ops[at]
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

// lastArrival returns when the rank arrived at the operation before p where
// that one still ran, so that own time is not counted for both; else 0.
func (v *rankView) lastArrival(p party, back int) int64 {
	if back == 1 || p.pos == v.base {
		return 0
	}
	return v.comms[p.pos-1-v.base].Start
}

// find returns the member of the given rank, or -1.
func (mr *meetingRecord) find(rank int64) int { return slices.Index(mr.ranks, rank) }
