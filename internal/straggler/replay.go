package straggler

import "slices"

// replayed are the simulated exits of one meeting, in the order of its members.
type replayed []int64

// mending is what a replay takes to be as it is with the peers: the segments of
// some ranks, and the links behind some.
type mending struct{ ranks, links map[int64]bool }

// replay runs the recorded steps again, with the segments of the given ranks
// replaced by the median of their peers', and what the given ranks' links add to a
// transfer taken away, and returns how much earlier the steps end in all, in ns. A meeting is over when its last member has come and the
// transfer that was observed after the last arrival has passed. Nothing else
// moves: that no other rank becomes slower or faster by it is an assumption.
//
// Consecutive steps form one chain, so that time lost at the end of a step and
// seen at the beginning of the next counts once.
func replay(window []*record, mended mending) (saved int64) {
	for from := 0; from < len(window); {
		to := from + 1
		for to < len(window) && window[to].step == window[to-1].step+1 {
			to++
		}
		saved += replayChain(window[from:to], mending{}) - replayChain(window[from:to], mended)
		from = to
	}
	return saved
}

// replayChain returns when the last step of the chain ends.
func replayChain(chain []*record, mended mending) int64 {
	exits := map[*meetingRecord]replayed{}
	delta := map[int64]int64{} // how much later than recorded each rank runs
	for n, rec := range chain {
		for _, mr := range rec.meets {
			exits[mr] = mr.replay(exits, delta, mended)
		}
		if n > 0 {
			forget(exits, chain[n-1])
		}
	}
	return chain[len(chain)-1].replayEnd(delta, mended.ranks, chain[0].beginsRecording())
}

// beginsRecording reports whether the record's first segments begin with its
// step, and not with a rendezvous of the step before.
func (rec *record) beginsRecording() bool {
	return slices.ContainsFunc(rec.meets, func(mr *meetingRecord) bool {
		return slices.ContainsFunc(mr.members, func(m memberRecord) bool { return m.lead })
	})
}

// forget frees what no later step is anchored in.
func forget(exits map[*meetingRecord]replayed, rec *record) {
	for _, mr := range rec.meets {
		delete(exits, mr)
	}
}

func (mr *meetingRecord) replay(exits map[*meetingRecord]replayed, delta map[int64]int64, mended mending) replayed {
	arrivals := make([]int64, len(mr.members))
	for i := range mr.members {
		arrivals[i] = mr.arrival(i, exits, delta, mended.ranks)
	}
	out := make(replayed, len(mr.members))
	last, relief := arrivals[mr.last], mr.relief(mended.links)
	if mr.attributed {
		last = mr.release(arrivals)
	}
	for i, m := range mr.members {
		if mr.attributed {
			out[i] = max(last+m.exit-mr.arrived-relief, arrivals[i])
		} else {
			out[i] = arrivals[i] + m.exit - m.enter
		}
		delta[mr.ranks[i]] = out[i] - m.exit
	}
	return out
}

// release returns when nobody is waited for any more.
func (mr *meetingRecord) release(arrivals []int64) int64 {
	if mr.rule == waitAll {
		return slices.Max(arrivals)
	}
	return arrivals[mr.last]
}

func (mr *meetingRecord) arrival(i int, exits map[*meetingRecord]replayed, delta map[int64]int64, mended map[int64]bool) int64 {
	m := &mr.members[i]
	mend := mended[mr.ranks[i]]
	if !m.known {
		return m.enter + delta[mr.ranks[i]]
	}
	if m.lead {
		// Before the recording nothing is known but when the rank got here.
		if mend {
			return min(m.enter, mr.medianOthers(i, mended, func(o *memberRecord) int64 { return o.enter }))
		}
		return m.enter
	}
	from := m.enter - m.segment + delta[mr.ranks[i]]
	if ends := exits[m.anchor]; ends != nil && m.anchorAt >= 0 {
		from = ends[m.anchorAt]
	}
	segment := m.segment
	switch {
	case mend && m.overlapped:
		segment -= min(segment, max(0, m.excess.total()))
	case mend:
		segment = mr.medianOthers(i, mended, func(o *memberRecord) int64 { return o.segment })
	}
	return from + segment
}

// medianOthers returns the median over the member's peers that are not being
// mended; the member's own value where it has none.
func (mr *meetingRecord) medianOthers(i int, mended map[int64]bool, f func(*memberRecord) int64) int64 {
	var v []int64
	for k := range mr.members {
		if k != i && !mended[mr.ranks[k]] && mr.members[k].known && mr.members[k].role == mr.members[i].role {
			v = append(v, f(&mr.members[k]))
		}
	}
	if len(v) == 0 {
		return f(&mr.members[i])
	}
	return median(v)
}

// replayEnd returns when the record's last rank ends. With tails, what a mended
// rank did after its last rendezvous is replaced like a segment; a chain whose
// first segments begin in the step before has as many segments as steps already.
func (rec *record) replayEnd(delta map[int64]int64, mended map[int64]bool, withTails bool) int64 {
	tails := map[role][]int64{}
	for _, r := range rec.ranks {
		if !mended[r.rank.Rank] && !r.tailUnknown {
			tails[r.role] = append(tails[r.role], r.tail.total())
		}
	}
	some := slices.ContainsFunc(rec.ranks, func(r rankRecord) bool { return r.met })
	var end int64
	for _, r := range rec.ranks {
		if some && !r.met {
			continue
		}
		at := r.end + delta[r.rank.Rank]
		if withTails && mended[r.rank.Rank] && !r.tailUnknown && len(tails[r.role]) > 0 {
			at += median(tails[r.role]) - r.tail.total()
		}
		end = max(end, at)
	}
	return end
}

func median(v []int64) int64 {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return s[n/2]
	}
	return s[n/2-1] + (s[n/2]-s[n/2-1])/2
}
