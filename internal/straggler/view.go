package straggler

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// rankView is one rank during the analysis of one step.
type rankView struct {
	*rankStep
	keys   *interner
	stats  *Stats
	dark   bool // nobody recorded what the device ran besides communication
	index  int  // among the step's ranks
	tail   *tail
	role   role
	met    []int // places in comms of what met others, in order
	metAt  []int // for each of comms, its place in met
	clocks *clock.Timeline
	offset clock.Offset
	pieces []piece
	cum    []own // own time up to the start of each piece
	// computeBy and idleBy are exclusive own time by operation, and by the
	// scope that the host was in, in ns.
	computeBy, idleBy map[uint32]int64
	idleFor           [causes]int64 // idleness of the host by the cause that its scopes tell, ns
}

// tail is what the next step must know of a rank's last communication.
type tail struct {
	step int64
	end  int64 // raw end of the step
	ops  []tailOp
}

// tailOp is one communication operation of the previous step.
type tailOp struct {
	sig   signature
	start int64 // raw, as exit is
	exit  int64
	after own // own time from the exit to the end of the step
	meet  *meetingRecord
	// inferred: the exit is no measurement
	inferred bool
}

// maxTail is how many operations of the previous step can serve as the
// beginning of a segment; those before them are over when these are.
const maxTail = 32

// signature tells whether operations of different ranks play the same role in
// their programs.
type signature struct {
	kind model.OpKind
	name string
	size int64
}

func signatureOf(op *model.Op) signature {
	return signature{kind: op.Kind, name: op.Collective.Name, size: op.Comm.Size.Or(0)}
}

// own is time that a rank spent by itself, in ns.
type own struct {
	compute    int64 // computing and copying, no communication beside it
	overlapped int64 // computing beside communication, which slows both
	idle       int64 // the host had launched nothing
}

func (o own) plus(p own) own {
	return own{o.compute + p.compute, o.overlapped + p.overlapped, o.idle + p.idle}
}

func (o own) minus(p own) own {
	return own{o.compute - p.compute, o.overlapped - p.overlapped, o.idle - p.idle}
}

func (o own) total() int64 { return o.compute + o.overlapped + o.idle }

// busy is the part of the time in which the rank worked.
func (o own) busy() int64 { return o.compute + o.overlapped }

// views prepares the step's ranks, in order of rank.
func (j *job) views(s *openStep) []*rankView {
	out := make([]*rankView, 0, len(s.ranks))
	for _, rs := range s.ranks {
		rs.tidy()
		v := &rankView{rankStep: rs, keys: j.keys, stats: &j.e.stats, computeBy: map[uint32]int64{}, idleBy: map[uint32]int64{}}
		if v.dark = !rs.witnessed(); v.dark {
			rs.cover()
		}
		if t := j.tails[rs.rank.Rank]; t != nil && t.step == s.step-1 {
			v.tail = t
			// The host enqueues a step while the device still runs the one
			// before: an instant belongs to the earlier.
			v.start = min(max(v.start, t.end), v.end)
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b *rankView) int { return cmp.Compare(a.rank.Rank, b.rank.Rank) })
	for i, v := range out {
		v.index = i
	}
	return out
}

// tidy sorts the operations and drops those that were delivered twice.
func (rs *rankStep) tidy() {
	slices.SortFunc(rs.acts, func(a, b activity) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(a.lane, b.lane),
			cmp.Compare(a.key, b.key), cmp.Compare(a.seq, b.seq))
	})
	rs.acts = slices.Compact(rs.acts)
	// The order of launches is the program's; starts of two that run side by
	// side can swap.
	order := func(op *model.Op) int64 { return op.Launch.Or(op.Start) }
	slices.SortStableFunc(rs.comms, func(a, b model.Op) int {
		return cmp.Or(cmp.Compare(order(&a), order(&b)), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Seq, b.Seq))
	})
	rs.comms = slices.CompactFunc(rs.comms, func(a, b model.Op) bool {
		return a.Start == b.Start && a.Seq == b.Seq && a.ComparisonKey() == b.ComparisonKey() && a.Lane() == b.Lane()
	})
	rs.end = max(rs.start, rs.end)
}

// clockOf returns the clock that stamped the operation.
func (v *rankView) clockOf(op *model.Op) string {
	if op.ClockID != "" {
		return op.ClockID
	}
	if v.rank.ClockID != "" {
		return v.rank.ClockID
	}
	return v.rank.HostName
}

// shift returns what places the operation's stamps on the timeline, in ns.
func (v *rankView) shift(op *model.Op) int64 {
	if op.ClockID == "" {
		return int64(v.offset.Value)
	}
	o, _ := v.clocks.Offset(op.ClockID)
	return int64(o.Value)
}

// clockMemory is how many recent meetings the offsets are estimated from. An
// offset's sigma falls with the root of their number, down to the systematic
// half that stays: four times as many would lower it by 4 %.
const clockMemory = 64

// clockArrivals bounds the members over all remembered meetings, and with them
// the time to solve. Jobs of over 1,024 ranks keep fewer meetings.
const clockArrivals = 1 << 16

// align solves the timeline from this step's meetings and the recent ones.
func (j *job) align(views []*rankView, met []*gathering) *clock.Timeline {
	var messages []clock.Message
	fresh := 0
	for _, g := range met {
		if g.kind == model.KindCollective {
			j.clockHistory = append(j.clockHistory, clockMeeting(g))
			fresh++
		} else if m, ok := clockMessage(g); ok {
			messages = append(messages, m)
		}
	}
	j.forgetMeetings()
	fresh = min(fresh, len(j.clockHistory))
	clocks := make([]string, len(views))
	for i, v := range views {
		clocks[i] = v.clockOf(&model.Op{})
	}
	opt := clock.Options{Clocks: clocks, Off: !j.e.cfg.Clock}
	t := clock.Solve(j.clockHistory, messages, opt)
	if j.inConflict(t, clocks) {
		// Offsets that were true once are not any more: only this step counts.
		j.e.stats.ClockConflicts++
		j.clockHistory = slices.Clone(j.clockHistory[len(j.clockHistory)-fresh:])
		t = clock.Solve(j.clockHistory, messages, opt)
	}
	for i, v := range views {
		v.clocks = t
		v.offset, _ = t.Offset(clocks[i])
	}
	return t
}

func (j *job) inConflict(t *clock.Timeline, clocks []string) bool {
	return slices.ContainsFunc(clocks, func(c string) bool {
		o, _ := t.Offset(c)
		return o.Conflict
	})
}

func (j *job) forgetMeetings() {
	arrivals, keep := 0, len(j.clockHistory)
	for keep > 0 && len(j.clockHistory)-keep < clockMemory {
		arrivals += len(j.clockHistory[keep-1].Arrivals)
		if arrivals > clockArrivals && keep < len(j.clockHistory) {
			break
		}
		keep--
	}
	j.clockHistory = slices.Clone(j.clockHistory[keep:])
}

func clockMeeting(g *gathering) clock.Meeting {
	m := clock.Meeting{Name: g.name(), Bytes: g.bytes(), Synchronising: model.Synchronising(g.name()), Root: -1}
	// All members of a complete all_to_all leave together too, though nothing
	// forces them to.
	m.EndsCoincide = m.Synchronising || (g.name() == model.AllToAll && g.complete())
	if g.waiters() == waitForRoot {
		m.Root = g.root()
	}
	for _, p := range g.parties {
		m.Arrivals = append(m.Arrivals, clock.Arrival{Clock: p.at.clockOf(p.op), Enter: p.op.Start, Exit: p.op.End, ExitUnknown: p.op.EndInferred})
	}
	return m
}

func clockMessage(g *gathering) (clock.Message, bool) {
	s := g.root()
	r := slices.IndexFunc(g.parties, func(p party) bool { return p.op.Kind == model.KindRecv })
	if s < 0 || r < 0 {
		return clock.Message{}, false
	}
	send, recv := g.parties[s], g.parties[r]
	if recv.op.EndInferred {
		return clock.Message{}, false
	}
	return clock.Message{
		SendClock: send.at.clockOf(send.op), RecvClock: recv.at.clockOf(recv.op),
		SendStart: send.op.Start, RecvEnd: recv.op.End,
	}, true
}
