// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// record is what is kept of a step: enough to judge and to replay it.
type record struct {
	step         int64
	start, end   int64 // corrected Unix ns
	ranks        []rankRecord
	meets        []*meetingRecord // by arrival
	missing      []int64          // the first maxListed
	missingCount int
	apart        bool          // those missing share nothing with those seen
	index        map[int64]int // rank to place in ranks
	replays      []doneReplay  // of chains that end here
	unseen       float64       // what part of the step who was not seen can have cost at most
	steady       bool          // a replay with nothing mended gives what was recorded
	open         bool          // some meeting is
	leads        bool          // some member leads
	holed        bool          // something of some member's segment may be missing
	held         int64         // bytes
	seen, size   int           // members of collectives that were seen, and all, where it is known how many
}

// rankRecord is one rank of a recorded step; times in ns.
type rankRecord struct {
	rank              *model.Rank
	start, end        int64 // corrected
	role              role
	own               own
	tail              own // own time after the last exit
	caused            int64
	excess            own     // summed over the segments of the step
	beyond            float32 // s, where judged: own time of the step over peers' as the judge finds it
	lost, blind       float32 // shares of its communication that was lost, and of its step where that may have been
	attributed        int32   // meetings that it was in, and
	lasts             int32   // in which it was the last, and somebody waited
	worst             int32   // place of the one of these in which it caused most
	computeBy, idleBy ownTimes
	sigma, offset     time.Duration // of the clock
	undivided         int64         // idleness of which no launch says whose it is
	idleFor           [causes]int64 // idleness of the host by the cause that its scopes tell
	communicated      int64         // exposed, waits too
	// wire sums the excess of its wire waits, where wired: they and those of peers
	// were recorded. transfer is the exposed transfer of the same operations.
	wire, transfer int64

	wired       bool
	weighed     bool // some of its segments could be compared with peers'
	judged      bool
	tailUnknown bool // the last exit is no measurement
	met         bool // in some meeting of this step
	dark        bool // of its device nothing but communication was recorded
	unlaunched  bool // its launches were left out
	hostless    bool // the stamps of its host were left out
	strays      bool // its stamps are on no clock of the others
	scoped      bool // of its host some scope was recorded
}

// meetingRecord is one meeting of a recorded step. What a replay reads stands first.
type meetingRecord struct {
	members    []memberRecord
	arrived    int64 // corrected Unix ns
	step       int64
	last       int
	order      int32 // place in the record
	rule       waiters
	attributed bool
	open       bool // the last one seen need not be the last; where attributed, it nearly was
	name       string
	digest     string  // of the communicator's members, "" where unknown
	ranks      []int64 // of the members
	waited     int64   // by all members for the last, ns
	shown      shownMeeting
}

// memberRecord is one member of a recorded meeting; corrected Unix ns. What a replay reads
// stands first, in half of its 128 bytes: a window holds some hundred thousand.
type memberRecord struct {
	rank        int32 // place in the record's ranks
	anchored    anchored
	known       bool // the segment is known
	holed       bool // something of it may be missing
	lead        bool // no rendezvous before it was recorded
	weighed     bool // there are peers to compare it with
	overlapped  bool // it was launched while the rank's communication before it ran
	enter, exit int64
	segment     int64         // raw time from the anchor's exit to enter
	left        int64         // its exit in the latest replay
	anchor      *memberRecord // the rank's in the rendezvous before the segment, or nil
	peers       *peerGroup    // of other meetings, where this one has too few

	role   role
	place  uint64 // who share it are alike: role, and where the segment begins and ends
	took   int64  // own time in the segment
	excess own    // of it over the peers' median
	wire   *wire  // never nil
	*inSegment
}

// inSegment is what of a member is needed only while its step is analysed.
type inSegment struct {
	own      own   // own time in the segment
	stay     int64 // in the communication that overlapped
	limit    int64 // of excess in computing, where censored
	beside   int64 // how much longer than its peers it took from arrival to arrival; they at most took that long
	hidden   bool  // when it was ready to come is not known, only that it was by then
	censored bool  // its excess in computing may be more
}

// anchored says where a segment begins.
type anchored uint8

const (
	anchoredNowhere anchored = iota
	anchoredHere             // in a meeting of the step that comes before in a replay
	anchoredBefore           // in one of the step before
)

// wait returns how long member i waited for the last arriver, ns.
func (mr *meetingRecord) wait(i int) int64 {
	if !mr.attributed || i == mr.last {
		return 0
	}
	m := &mr.members[i]
	return max(0, min(mr.arrived, m.exit)-m.enter)
}

// analyse turns a closed step into its report and its record.
func (j *job) analyse(s *openStep) *StepReport {
	views := j.views(s)
	met, unmatched := j.match(views)
	if single := j.leaveOutMixed(s, views); len(single) < len(views) {
		views = single
		met, unmatched = j.join(views)
	}
	j.assignRoles(s.step, views, met)
	j.assignSpots(views)
	j.align(views, met)
	meetings := j.placer.place(met)
	j.doubtOrder(meetings)
	withdraw(meetings)
	j.unowed.count(meetings)
	waits := j.placer.lastArrivals(views)
	for i, v := range views {
		v.sweep(waits[i], &j.sweeper)
	}
	meetings = j.placer.byArrival()
	rec := j.record(s, views, meetings)
	rec.unseen = rec.exposed(views, meetings)
	j.e.stats.UnmatchedOps += int64(unmatched)
	j.walks.path, j.walks.met = nil, nil
	var lacks Missing
	if j.e.missing != nil {
		lacks = j.e.missing(j.id, j.incarnation, s.step)
	}
	switch {
	case lacks.Why != "":
		j.e.stats.StepsIncomplete++
	case j.behind(rec.step):
		j.e.stats.StepsBehind++
	default:
		j.unseen += rec.unseen
		j.drawSheet(rec, views, meetings)
		j.walkBack(rec, views, meetings)
		j.hearRhythm(rec, views)
		j.remember(rec)
	}
	rep := j.stepReport(s, views, rec)
	rep.Unmatched, rep.Lacks = unmatched, lacks
	rep.Path, rep.PathMeetings = j.walks.path, j.walks.met
	if lacks.Why == "" {
		j.addTotals(rep)
	}
	j.release(views)
	return rep
}

// lastArrivals gives for each communication of each rank the raw time at which
// its last member arrived. Where that is not known, the operation counts as
// transfer from its beginning: unexplained time must not look like a wait that
// somebody owes.
func (r *placer) lastArrivals(views []*rankView) [][]int64 {
	r.arrived, r.waits = r.arrived[:0], r.waits[:0]
	for _, v := range views {
		for k := range v.comms {
			r.arrived = append(r.arrived, v.comms[k].start)
		}
	}
	rest := r.arrived
	for _, v := range views {
		n := len(v.comms)
		r.waits, rest = append(r.waits, rest[:n]), rest[n:]
	}
	for _, m := range r.out {
		if !m.attributed {
			continue
		}
		for i := range m.parties {
			if p := &m.parties[i]; i != m.last {
				r.waits[p.at.index][p.pos] = m.arrived - p.at.shift(p.op)
			}
		}
	}
	return r.waits
}

func (j *job) record(s *openStep, views []*rankView, meetings []*meeting) *record {
	rec := &record{step: s.step, index: make(map[int64]int, len(views)), ranks: make([]rankRecord, 0, len(views))}
	rec.missing, rec.missingCount = j.missing(func(r int64) bool { return s.ranks[r] != nil })
	for i, v := range views {
		shift := int64(v.offset.Value)
		rec.index[v.rank.Rank] = i
		split := v.split()
		j.faults.lose(v)
		j.doubtUnit(v, s.step)
		rec.ranks = append(rec.ranks, rankRecord{
			dark: v.dark, unlaunched: v.unlaunched, hostless: v.hostless, strays: v.strays(), undivided: v.undivided, scoped: v.scoped(), idleFor: v.idleFor, communicated: int64(split.Transfer + split.Wait),
			lost: float32(v.lostShare()), blind: float32(v.blindShare()),
			rank: j.who(&v.rank, s.step), start: v.start + shift, end: v.end + shift,
			role: v.role, own: v.ownUntil(v.end), computeBy: v.computeBy, idleBy: v.idleBy, sigma: v.offset.Sigma, offset: v.offset.Value,
		})
	}
	j.recordMeetings(rec, views, meetings)
	rec.apart = rec.missingCount > 0 && !touched(views, meetings)
	if rec.apart {
		j.faults.worlds.apart++
	}
	j.faults.goAstray(rec, rec.bound())
	return rec
}

// bound fills when the step began and ended. A rank that met nobody stands on a
// clock of its own and belongs to another story, and so does one whose stamps stray.
func (rec *record) bound() (astray map[int]bool) {
	some, first := rec.someMet(), true
	astray = rec.astray()
	for i := range rec.ranks {
		r := &rec.ranks[i]
		if some && !r.met || astray[i] || r.strays {
			continue
		}
		if first || r.start < rec.start {
			rec.start = r.start
		}
		if first || r.end > rec.end {
			rec.end = r.end
		}
		first = false
	}
	return astray
}

func (j *job) recordMeetings(rec *record, views []*rankView, meetings []*meeting) {
	placed := j.placed(views)
	room := newMeetingRoom(meetings)
	step := &shownStep{trace: model.StepTraceID(j.incarnation, rec.step), incarnation: j.incarnation, step: rec.step}
	rec.meets = make([]*meetingRecord, 0, len(meetings))
	j.segments = slices.Grow(j.segments[:0], len(room.members))[:len(room.members)]
	clear(j.segments)
	rest := j.segments
	for _, m := range meetings {
		mr := room.next(m, step)
		mr.order = int32(len(rec.meets))
		for i := range m.parties {
			p := &m.parties[i]
			placed[p.at.index][p.pos] = seatAt{in: mr, at: int32(i)}
			member := &mr.members[i]
			member.rank, member.role, member.enter, member.exit = int32(p.at.index), p.at.role, m.enter[i], m.exit[i]
			member.wire, member.inSegment, rest = &noWire, &rest[0], rest[1:]
			wait, r := mr.wait(i), &rec.ranks[p.at.index]
			mr.waited += wait
			p.at.suffered += wait
			r.met = true
			if mr.attributed {
				r.attributed++
			}
		}
		if last := &rec.ranks[m.parties[m.last].at.index]; mr.waited > 0 {
			last.caused += mr.waited
			if last.lasts++; last.lasts == 1 || mr.waited > rec.meets[last.worst].waited {
				last.worst = mr.order
			}
		}
		rec.meets = append(rec.meets, mr)
	}
	for i, v := range views {
		v.findMet(placed[i])
	}
	overlapped := false
	for i, m := range meetings {
		j.anchors.anchor(m, rec.meets[i], placed)
		overlapped = rec.meets[i].overlap(m.parties) || overlapped
	}
	j.peering.weigh(rec)
	if overlapped {
		rec.balance()
		rec.uncover()
	}
	rec.steady = rec.stands()
	for _, mr := range rec.meets {
		rec.count(mr)
		for i := range mr.members {
			member := &mr.members[i]
			r := &rec.ranks[member.rank]
			r.excess = r.excess.plus(member.excess)
			r.weighed = r.weighed || member.weighed
			rec.leads, rec.holed = rec.leads || member.lead, rec.holed || member.holed
			member.took, member.inSegment = member.own.total(), nil
		}
	}
	rec.weighWires(meetings)
	for i, v := range views {
		last, measured := v.lastExit()
		rec.ranks[i].tail, rec.ranks[i].tailUnknown = v.ownBetween(last, v.end), !measured
		j.tails[v.rank.Rank] = j.makeTail(v, rec.step, placed[i])
	}
	// They hold all meetings of their step, and serve the next one only.
	maps.DeleteFunc(j.tails, func(_ int64, t *tail) bool { return t.step != rec.step && t.step != rec.step-1 })
}

// count notes who was seen of a meeting: to look for it in all of a window takes long.
func (rec *record) count(mr *meetingRecord) {
	rec.open = rec.open || mr.open
	if size := mr.shown.size; size > 0 && mr.rule != waitForSender {
		rec.seen, rec.size = rec.seen+min(size, len(mr.members)), rec.size+size
	}
}

// seatAt is a member of a meeting.
type seatAt struct {
	in  *meetingRecord
	at  int32
	nth int32 // of those of its rank that met others, how many came before
}

// member returns the record of the member, nil where there is none.
func (s seatAt) member() *memberRecord {
	if s.in == nil {
		return nil
	}
	return &s.in.members[s.at]
}

// placed returns room for the meeting of each communication, by rank.
func (j *job) placed(views []*rankView) [][]seatAt {
	n := 0
	for _, v := range views {
		n += len(v.comms)
	}
	j.seatsAt = slices.Grow(j.seatsAt[:0], n)[:n]
	clear(j.seatsAt)
	out, rest := make([][]seatAt, len(views)), j.seatsAt
	for i, v := range views {
		out[i], rest = rest[:len(v.comms)], rest[len(v.comms):]
	}
	return out
}

// lastExit returns when the rank's last communication ended, and whether that was
// measured.
func (v *rankView) lastExit() (last int64, measured bool) {
	last, measured = v.start, true
	for i := range v.comms {
		if op := &v.comms[i]; op.end >= last {
			last, measured = op.end, !op.inferred
		}
	}
	return last, measured
}

func (j *job) makeTail(v *rankView, step int64, placed []seatAt) *tail {
	t := j.tails[v.rank.Rank]
	if t == nil {
		t = &tail{}
	}
	last := v.met[max(0, len(v.met)-maxTail):]
	clear(t.ops)
	*t = tail{step: step, end: v.end, ops: slices.Grow(t.ops[:0], len(last))}
	v.tail = nil // its room is used again
	all := v.ownUntil(v.end)
	for _, m := range last {
		i := m.at
		op := &v.comms[i]
		var o *tailOp
		t.ops, o = oneMore(t.ops)
		o.spot, o.start, o.exit, o.inferred = op.spot, op.start, op.end, op.inferred
		o.after, o.member, o.holed = all.minus(v.ownUntil(op.end)), placed[i].member(), v.holed(op.end, v.end)
	}
	return t
}

// remember appends the record to the window, and lets the oldest go.
func (j *job) remember(rec *record) {
	if n := len(j.window); n > 0 {
		j.window[n-1].replays = nil
	}
	j.window = append(j.window, rec)
	j.newest = max(j.newest, rec.end)
	j.members += rec.members()
	rec.held = rec.bytes()
	j.sizes.window += rec.held
	j.dropOldest(max(0, len(j.window)-j.e.cfg.Window))
	over := 0
	for left := j.members; left > j.e.cfg.MaxWindowMembers && over < len(j.window)-minTrials; over++ {
		left -= j.window[over].members()
	}
	j.forget(over)
	j.steps++
	j.stepTime += time.Duration(rec.end - rec.start)
	j.judged = false
	j.meetings += len(rec.meets)
	for _, mr := range rec.meets {
		if mr.attributed {
			j.attributed++
		}
	}
	if j.unjudged++; j.unjudged >= cmp.Or(j.e.cfg.JudgeEvery, judgeEvery) {
		j.judge()
	}
}

// dropOldest lets the oldest steps of the window go.
func (j *job) dropOldest(n int) {
	if n == 0 {
		return
	}
	for _, old := range j.window[:n] {
		j.members -= old.members()
		j.sizes.window -= old.held
	}
	j.window = slices.Clone(j.window[n:])
	j.window[0].forgetBefore()
}

// judgeEvery is Config.JudgeEvery by default: a quarter of the default window, so that no
// episode of half a window is passed over.
const judgeEvery = 16

// members counts the members of all meetings.
func (rec *record) members() (n int) {
	for _, mr := range rec.meets {
		n += len(mr.members)
	}
	return n
}

// forgetBefore cuts the anchors that lie in steps before this one, so that those
// can be freed. The segments stay.
func (rec *record) forgetBefore() {
	for _, mr := range rec.meets {
		for i := range mr.members {
			if m := &mr.members[i]; m.anchored == anchoredBefore {
				m.anchor, m.anchored = nil, anchoredNowhere
			}
		}
	}
}
