package straggler

import (
	"cmp"
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
	index        map[int64]int // rank to place in ranks
}

// rankRecord is one rank of a recorded step; times in ns.
type rankRecord struct {
	rank              *model.Rank
	start, end        int64 // corrected
	role              role
	own               own
	tail              own  // own time after the last exit
	tailUnknown       bool // that exit is no measurement
	caused            int64
	excess            own  // summed over the segments of the step
	weighed           bool // some of them could be compared with peers'
	computeBy, idleBy map[uint32]int64
	sigma, offset     time.Duration // of the clock
	met               bool          // in some meeting of this step
	dark              bool          // of its device nothing but communication was recorded
	scoped            bool          // of its host some scope was recorded
	idleFor           [causes]int64 // idleness of the host by the cause that its scopes tell
	communicated      int64         // exposed, waits too
	// wire sums the excess of its wire waits, where wired: they and those of peers
	// were recorded. transfer is the exposed transfer of the same operations.
	wired          bool
	wire, transfer int64
}

// meetingRecord is one meeting of a recorded step.
type meetingRecord struct {
	name       string
	comm       string
	rule       waiters
	attributed bool
	last       int
	arrived    int64 // corrected Unix ns
	step       int64
	ranks      []int64 // of the members
	members    []memberRecord
	shown      *Meeting // for reports
}

// memberRecord is one member of a recorded meeting; corrected Unix ns.
type memberRecord struct {
	rank        int // place in the record's ranks
	role        role
	enter, exit int64
	wait        int64
	known       bool           // the segment is known
	anchor      *meetingRecord // the rendezvous before the segment, or nil
	anchorAt    int            // member of it
	lead        bool           // no rendezvous before it was recorded
	segment     int64          // raw time from the anchor's exit to enter
	own         own            // own time in the segment
	excess      own            // of it over the peers' median
	weighed     bool           // there are peers to compare it with
	overlapped  bool           // it was launched while the rank's communication before it ran
	stay        int64          // in that
	hidden      bool           // when it was ready to come is not known, only that it was by then
	censored    bool           // its excess in computing may be more, up to limit
	limit       int64
	beside      int64 // how much longer than its peers it took from arrival to arrival; they at most took that long
	wire        wire
}

// analyse turns a closed step into its report and its record.
func (j *job) analyse(s *openStep) *StepReport {
	views := j.views(s)
	met, unmatched := j.match(views)
	assignRoles(views, met)
	j.align(views, met)
	meetings := make([]*meeting, len(met))
	for i, g := range met {
		meetings[i] = j.place(g)
	}
	withdraw(meetings)
	waits := lastArrivals(views, meetings)
	for i, v := range views {
		v.sweep(waits[i])
	}
	slices.SortStableFunc(meetings, func(a, b *meeting) int { return cmp.Compare(a.arrived, b.arrived) })
	rec := j.record(s, views, meetings)
	j.e.stats.UnmatchedOps += int64(unmatched)
	j.remember(rec)
	rep := j.stepReport(s, views, rec, meetings)
	rep.Unmatched = unmatched
	j.addTotals(rep)
	return rep
}

// lastArrivals gives for each communication of each rank the raw time at which
// its last member arrived. Where that is not known, the operation counts as
// transfer from its beginning: unexplained time must not look like a wait that
// somebody owes.
func lastArrivals(views []*rankView, meetings []*meeting) [][]int64 {
	out := make([][]int64, len(views))
	for i, v := range views {
		out[i] = make([]int64, len(v.comms))
		for k := range v.comms {
			out[i][k] = v.comms[k].Start
		}
	}
	for _, m := range meetings {
		for i, p := range m.parties {
			if m.attributed && i != m.last {
				out[p.at.index][p.pos] = m.arrived - p.at.shift(p.op)
			}
		}
	}
	return out
}

func (j *job) record(s *openStep, views []*rankView, meetings []*meeting) *record {
	rec := &record{step: s.step, index: map[int64]int{}}
	rec.missing, rec.missingCount = j.missing(func(r int64) bool { return s.ranks[r] != nil })
	for i, v := range views {
		shift := int64(v.offset.Value)
		rec.index[v.rank.Rank] = i
		split := v.split()
		rec.ranks = append(rec.ranks, rankRecord{
			dark: v.dark, scoped: v.scoped(), idleFor: v.idleFor, communicated: int64(split.Transfer + split.Wait),
			rank: j.ranks[v.rank.Rank], start: v.start + shift, end: v.end + shift,
			role: v.role, own: v.ownUntil(v.end), computeBy: v.computeBy, idleBy: v.idleBy, sigma: v.offset.Sigma, offset: v.offset.Value,
		})
	}
	j.recordMeetings(rec, views, meetings)
	rec.bound()
	return rec
}

// bound fills when the step began and ended. A rank that met nobody stands on a
// clock of its own and belongs to another story.
func (rec *record) bound() {
	some := slices.ContainsFunc(rec.ranks, func(r rankRecord) bool { return r.met })
	first := true
	for i := range rec.ranks {
		r := &rec.ranks[i]
		if some && !r.met {
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
}

func (j *job) recordMeetings(rec *record, views []*rankView, meetings []*meeting) {
	placed := make([][]*meetingRecord, len(views)) // by rank, then by communication
	for i, v := range views {
		placed[i] = make([]*meetingRecord, len(v.comms))
	}
	for _, m := range meetings {
		mr := &meetingRecord{
			name: m.name(), comm: m.key.Comm, step: rec.step, rule: m.rule, attributed: m.attributed, last: m.last,
			arrived: m.arrived, members: make([]memberRecord, len(m.parties)), shown: m.show(),
		}
		for i, p := range m.parties {
			placed[p.at.index][p.pos] = mr
			mr.ranks = append(mr.ranks, p.at.rank.Rank)
			w := int64(m.wait(i))
			mr.members[i] = memberRecord{rank: p.at.index, role: p.at.role, enter: m.enter[i], exit: m.exit[i], wait: w}
			rec.ranks[m.parties[m.last].at.index].caused += w
			rec.ranks[p.at.index].met = true
		}
		rec.meets = append(rec.meets, mr)
	}
	for i, v := range views {
		v.findMet(placed[i])
	}
	for i, m := range meetings {
		anchor(m, rec.meets[i], placed)
		rec.meets[i].overlap(m.parties)
		rec.meets[i].weigh()
	}
	rec.balance()
	rec.uncover()
	for _, mr := range rec.meets {
		for _, member := range mr.members {
			r := &rec.ranks[member.rank]
			r.excess = r.excess.plus(member.excess)
			r.weighed = r.weighed || member.weighed
		}
	}
	rec.weighWires(meetings)
	for i, v := range views {
		last, measured := v.lastExit()
		rec.ranks[i].tail, rec.ranks[i].tailUnknown = v.ownBetween(last, v.end), !measured
		j.tails[v.rank.Rank] = v.makeTail(rec.step, placed[i])
	}
}

// lastExit returns when the rank's last communication ended, and whether that was
// measured.
func (v *rankView) lastExit() (last int64, measured bool) {
	last, measured = v.start, true
	for i := range v.comms {
		if op := &v.comms[i]; op.End >= last {
			last, measured = op.End, !op.EndInferred
		}
	}
	return last, measured
}

func (v *rankView) makeTail(step int64, placed []*meetingRecord) *tail {
	t := &tail{step: step, end: v.end}
	for _, i := range v.met[max(0, len(v.met)-maxTail):] {
		op := &v.comms[i]
		t.ops = append(t.ops, tailOp{sig: signatureOf(op), start: op.Start, exit: op.End, after: v.ownBetween(op.End, v.end), meet: placed[i], inferred: op.EndInferred})
	}
	return t
}

// remember appends the record to the window, and lets the oldest go.
func (j *job) remember(rec *record) {
	j.window = append(j.window, rec)
	j.members += rec.members()
	drop := max(0, len(j.window)-j.e.cfg.Window)
	for _, old := range j.window[:drop] {
		j.members -= old.members()
	}
	for j.members > j.e.cfg.MaxWindowMembers && drop < len(j.window)-minTrials {
		j.members -= j.window[drop].members()
		j.e.stats.StepsForgotten++
		drop++
	}
	if drop > 0 {
		j.window = slices.Clone(j.window[drop:])
		j.window[0].forgetBefore()
	}
	j.steps++
	j.stepTime += time.Duration(rec.end - rec.start)
	j.judged = false
	j.meetings += len(rec.meets)
	for _, mr := range rec.meets {
		if mr.attributed {
			j.attributed++
		}
	}
	if j.unjudged++; j.unjudged >= judgeEvery {
		j.judge()
	}
}

// judgeEvery is how many steps may pass without a judgement where they come in
// one go: a quarter of the default window, so that no episode of half a window is
// passed over.
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
			if m := &mr.members[i]; m.anchor != nil && m.anchor.step < rec.step {
				m.anchor = nil
			}
		}
	}
}

// show returns the meeting as reports carry it, members by arrival.
func (m *meeting) show() *Meeting {
	out := &Meeting{Key: m.key, Name: m.name(), CommID: m.key.Comm, Size: m.size(), Attributed: m.attributed}
	end := int64(0)
	for i, p := range m.parties {
		out.Members = append(out.Members, Member{
			Rank: p.at.rank.Rank, Span: p.at.rank.Ref(p.op), Enter: m.enter[i], Exit: m.exit[i], Wait: m.wait(i),
		})
		if !p.op.EndInferred {
			end = max(end, m.exit[i])
		}
	}
	out.Transfer = time.Duration(max(0, end-m.arrived))
	out.LastRank = m.parties[m.last].at.rank.Rank
	slices.SortStableFunc(out.Members, func(a, b Member) int { return cmp.Compare(a.Enter, b.Enter) })
	return out
}
