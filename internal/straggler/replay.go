// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// mending is what a replay takes to be as it is with the peers: the segments of
// some ranks, and the links behind some.
type mending struct {
	ranks, links map[int64]bool
	shrink       map[int64]float64 // part of a rank's own time that is taken away
	passages     []passage         // transfers that are shortened
	even         bool              // everybody's segments are as the mean of their role's
	apart        bool              // members that were not seen hold up the others as they did
	held         int64             // from so much idleness beyond its peers', ns per step, no host is idle longer than they
}

// passage tells transfers: of messages from one rank to another, -1 for any, or of a
// group, and which part of them is excess.
type passage struct {
	from, to     int64
	group        bool
	comm, digest string // of the group
	over         float64
}

// relief returns how much sooner the meeting would be over with the transfers shortened.
func (p *passage) relief(mr *meetingRecord) int64 {
	switch {
	case p.group:
		if mr.shown.form.comm != p.comm || mr.digest != p.digest {
			return 0
		}
	case mr.rule != waitForSender:
		return 0
	case p.from >= 0 && mr.ranks[mr.last] != p.from || p.to >= 0 && mr.ranks[1-mr.last] != p.to:
		return 0
	}
	return int64(p.over * float64(mr.took()))
}

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
		saved += replayedEnd(window[from:to], mending{}) - replayedEnd(window[from:to], mended)
		from = to
	}
	return saved
}

// doneReplay is when a chain ends that began with a step, with what was mended.
type doneReplay struct {
	first, end int64
	mended     mending
}

// maxReplayed bounds the replays that are remembered of chains that end alike. Every
// candidate is compared with the chain as it was, and told with what it costs again.
const maxReplayed = 8

// replayedEnd returns when the chain ends, which is found once.
func replayedEnd(chain []*record, mended mending) int64 {
	last := chain[len(chain)-1]
	for i := range last.replays {
		if d := &last.replays[i]; d.first == chain[0].step && d.mended.equal(&mended) {
			return d.end
		}
	}
	end := replayChain(chain, mended)
	if len(last.replays) < maxReplayed {
		last.replays = append(last.replays, doneReplay{chain[0].step, end, mended})
	}
	return end
}

func (m *mending) equal(o *mending) bool {
	return m.even == o.even && m.apart == o.apart && m.held == o.held && maps.Equal(m.ranks, o.ranks) && maps.Equal(m.links, o.links) &&
		maps.Equal(m.shrink, o.shrink) && slices.Equal(m.passages, o.passages)
}

// replayChain returns when the last step of the chain ends.
func replayChain(chain []*record, mended mending) int64 {
	if mended.nothing() && !slices.ContainsFunc(chain, func(rec *record) bool { return !rec.steady }) {
		return chain[len(chain)-1].lastEnd() // everything comes out as it was recorded
	}
	r := replayer{mended: &mended, first: chain[0].step, holed: slices.ContainsFunc(chain, func(rec *record) bool { return rec.holed })}
	for _, rec := range chain {
		r.enter(rec)
		for _, mr := range rec.meets {
			r.meet(mr)
		}
	}
	return r.end(chain[len(chain)-1], chain[0].beginsRecording())
}

// nothing reports whether nothing is mended.
func (m *mending) nothing() bool {
	return !m.even && m.held == 0 && len(m.ranks) == 0 && len(m.links) == 0 && len(m.shrink) == 0 && len(m.passages) == 0
}

// lastEnd returns when the last of those ranks ended that met others.
func (rec *record) lastEnd() (end int64) {
	some := rec.someMet()
	for i := range rec.ranks {
		if r := &rec.ranks[i]; r.met || !some {
			end = max(end, r.end)
		}
	}
	return end
}

// stands reports whether every segment begins when the rendezvous before it was over as the
// timeline has it. From step to step clocks may come to be placed otherwise.
func (rec *record) stands() bool {
	for _, mr := range rec.meets {
		for i := range mr.members {
			m := &mr.members[i]
			if m.anchored != anchoredNowhere && m.anchor.exit != m.enter-m.segment {
				return false
			}
		}
	}
	return true
}

// beginsRecording reports whether the record's first segments begin with its
// step, and not with a rendezvous of the step before.
func (rec *record) beginsRecording() bool {
	return slices.ContainsFunc(rec.meets, func(mr *meetingRecord) bool {
		for i := range mr.members {
			if mr.members[i].lead {
				return true
			}
		}
		return false
	})
}

// replayer is the state of a replay. When members leave a meeting stands with them.
type replayer struct {
	mended *mending
	first  int64 // step
	holed  bool  // something of some segment may be missing
	rec    *record
	ids    map[int64]int32 // by rank; what follows is by id
	id     []int32         // of each place in the present record
	ranks  []replayedRank

	arrivals []int64
	peers    []int64 // scratch
}

// replayedRank is a rank in a replay.
type replayedRank struct {
	delta  int64 // how much later than recorded it runs
	shrink float64
	heard  int32 // from whom it last received, or -1
	mend   bool
}

// enter begins a step.
func (r *replayer) enter(rec *record) {
	before := r.rec
	if r.rec = rec; before != nil && rec.sameRanks(before) {
		return
	}
	if r.ids == nil {
		r.ids = make(map[int64]int32, len(rec.ranks))
		r.ranks = make([]replayedRank, 0, len(rec.ranks))
	}
	r.id = r.id[:0]
	for i := range rec.ranks {
		rank := rec.ranks[i].rank.Rank
		id, ok := r.ids[rank]
		if !ok {
			id = int32(len(r.ranks))
			r.ids[rank] = id
			r.ranks = append(r.ranks, replayedRank{heard: -1, mend: r.mended.ranks[rank], shrink: r.mended.shrink[rank]})
		}
		r.id = append(r.id, id)
	}
}

// sameRanks reports whether the same ranks stand in the same places.
func (rec *record) sameRanks(o *record) bool {
	if len(rec.ranks) != len(o.ranks) {
		return false
	}
	for i := range rec.ranks {
		if rec.ranks[i].rank != o.ranks[i].rank {
			return false
		}
	}
	return true
}

// of returns the rank of a member.
func (r *replayer) of(m *memberRecord) *replayedRank { return &r.ranks[r.id[m.rank]] }

// meet computes when the members of a meeting leave it.
func (r *replayer) meet(mr *meetingRecord) {
	r.arrivals = slices.Grow(r.arrivals[:0], len(mr.members))[:len(mr.members)]
	var even map[role]int64
	if r.mended.even {
		even = mr.means(r.mended.ranks)
	}
	for i := range mr.members {
		r.arrivals[i] = r.arrival(mr, i, even)
	}
	if r.holed {
		r.passOn(mr)
	}
	last, relief := r.arrivals[mr.last], mr.relief(r.mended.links)
	for i := range r.mended.passages {
		relief = max(relief, r.mended.passages[i].relief(mr))
	}
	if r.joined(mr) {
		last = mr.release(r.arrivals)
	}
	for i := range mr.members {
		m := &mr.members[i]
		if r.joined(mr) {
			m.left = max(last+m.exit-mr.arrived-relief, r.arrivals[i])
		} else {
			m.left = r.arrivals[i] + m.exit - m.enter
		}
		r.of(m).delta = m.left - m.exit
	}
}

// joined reports whether the members of a meeting wait for each other in a replay. Those
// of which nothing was recorded are taken to hold up nobody, as most members do; or, where
// apart is asked for, to hold up all others for as long as they stayed.
func (r *replayer) joined(mr *meetingRecord) bool {
	return (mr.attributed || mr.open) && (!r.mended.apart || !r.rec.undecided(mr))
}

// passOn lets members of whose segment something is missing come as much earlier as
// those do whom they may have waited for: the others of a collective, whoever a sender
// received from last, and the sender of what is received. Else one lost span would hold
// for good what the mended ranks gain.
func (r *replayer) passOn(mr *meetingRecord) {
	if !r.joined(mr) {
		return
	}
	switch mr.rule {
	case waitForSender:
		src, dst := &mr.members[mr.last], &mr.members[1-mr.last]
		if from := r.of(src).heard; from >= 0 {
			r.earlier(mr, mr.last, r.ranks[from].delta)
		}
		r.earlier(mr, 1-mr.last, r.arrivals[mr.last]-src.enter)
		r.of(dst).heard = r.id[src.rank]
	case waitAll:
		var was, is int64
		some, holed := false, false
		for i := range mr.members {
			m := &mr.members[i]
			if m.holed {
				holed = true
				continue
			}
			if !some {
				was, is, some = m.enter, r.arrivals[i], true
			}
			was, is = max(was, m.enter), max(is, r.arrivals[i])
		}
		if !some || !holed {
			return
		}
		for i := range mr.members {
			r.earlier(mr, i, is-was)
		}
	}
}

// earlier lets a member come as much earlier, where something of its segment is missing.
func (r *replayer) earlier(mr *meetingRecord, i int, by int64) {
	if m := &mr.members[i]; m.holed && !r.of(m).mend {
		r.arrivals[i] = min(r.arrivals[i], m.enter+min(0, by))
	}
}

// release returns when nobody is waited for any more.
func (mr *meetingRecord) release(arrivals []int64) int64 {
	if mr.rule == waitAll {
		return slices.Max(arrivals)
	}
	return arrivals[mr.last]
}

func (r *replayer) arrival(mr *meetingRecord, i int, even map[role]int64) int64 {
	m := &mr.members[i]
	rank := r.of(m)
	if !m.known {
		return m.enter + rank.delta
	}
	if m.lead {
		// Before the recording nothing is known but when the rank got here.
		if rank.mend {
			return min(m.enter, r.medianOthers(mr, i, func(o *memberRecord) int64 { return o.enter }))
		}
		return m.enter - m.shrunk(rank.shrink)
	}
	from := m.enter - m.segment + rank.delta
	if m.anchored == anchoredHere || m.anchored == anchoredBefore && mr.step > r.first {
		from = m.anchor.left
	}
	segment := m.segment
	switch {
	case rank.mend && m.overlapped:
		segment -= min(segment, max(0, m.excess.total()))
	case rank.mend:
		segment = r.medianOthers(mr, i, func(o *memberRecord) int64 { return o.segment })
	case even != nil && !m.overlapped:
		segment = even[m.role]
	}
	if !rank.mend {
		segment -= m.shrunk(rank.shrink) + r.paused(m)
	}
	return from + segment
}

// paused returns for how long a pause of its host lengthened the segment.
func (r *replayer) paused(m *memberRecord) int64 {
	if r.mended.held == 0 || r.rec.ranks[m.rank].excess.idle < r.mended.held {
		return 0
	}
	return max(0, min(m.segment, m.excess.idle))
}

// medianOthers returns the median over the member's peers that are not being mended; the
// member's own value where it has none.
func (r *replayer) medianOthers(mr *meetingRecord, i int, f func(*memberRecord) int64) int64 {
	r.peers = r.peers[:0]
	mr.each(i, func(o *memberRecord) {
		if !r.of(o).mend {
			r.peers = append(r.peers, f(o))
		}
	})
	return medianOr(r.peers, f(&mr.members[i]))
}

// medianOr returns the median, own where there is nothing.
func medianOr(v []int64, own int64) int64 {
	if len(v) == 0 {
		return own
	}
	return stats.SelectMedianMidpoint(v)
}

// shrunk returns what is taken away of the segment where so large a part of its own time is.
func (m *memberRecord) shrunk(over float64) int64 {
	if over == 0 {
		return 0
	}
	return max(0, min(m.segment, int64(over*float64(m.took))))
}

// means returns the mean segment of each role, of those that are not being mended.
func (mr *meetingRecord) means(mended map[int64]bool) map[role]int64 {
	sum, n := map[role]int64{}, map[role]int64{}
	for i := range mr.members {
		if m := &mr.members[i]; m.known && !m.lead && !m.overlapped && !mended[mr.ranks[i]] {
			sum[m.role] += m.segment
			n[m.role]++
		}
	}
	for r := range sum {
		sum[r] /= n[r]
	}
	return sum
}

// end returns when the record's last rank ends. With tails, what a mended
// rank did after its last rendezvous is replaced like a segment; a chain whose
// first segments begin in the step before has as many segments as steps already.
func (r *replayer) end(rec *record, withTails bool) int64 {
	var tails map[role][]int64
	if withTails && len(r.mended.ranks) > 0 {
		tails = map[role][]int64{}
		for i := range rec.ranks {
			if t := &rec.ranks[i]; !r.ranks[r.id[i]].mend && !t.tailUnknown {
				tails[t.role] = append(tails[t.role], t.tail.total())
			}
		}
	}
	some := rec.someMet()
	var end int64
	for i := range rec.ranks {
		of := &rec.ranks[i]
		if some && !of.met {
			continue
		}
		at := of.end + r.ranks[r.id[i]].delta
		if peers := tails[of.role]; r.ranks[r.id[i]].mend && !of.tailUnknown && len(peers) > 0 {
			at += stats.SelectMedianMidpoint(peers) - of.tail.total()
		}
		end = max(end, at)
	}
	return end
}

// someMet reports whether some rank met another one in the step.
func (rec *record) someMet() bool {
	for i := range rec.ranks {
		if rec.ranks[i].met {
			return true
		}
	}
	return false
}
