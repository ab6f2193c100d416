// SPDX-License-Identifier: Apache-2.0

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
	keys  *interner
	stats *Stats
	dark  bool // nobody recorded what the device ran besides communication
	// unlaunched: its launches were left out.
	unlaunched bool
	hostless   bool  // the stamps of its host were left out
	twice      int   // operations for meetings that it was in already
	undivided  int64 // ns of idleness of which no launch says whose it is
	odd        int   // meetings that cannot have been, and could without it
	index      int   // among the step's ranks
	tail       *tail
	role       role
	streams    []stream
	holes      []span
	joined     int          // operations that are in one of the streams
	seen       []streamSeen // scratch of findHoles
	lost, told float64      // communication that is missing by its numbers, of so much that they tell of
	met        []metOp      // of what met others, in order
	placed     []seatAt     // for each of comms, its meeting
	clocks     *clock.Timeline
	offset     clock.Offset
	suffered   int64 // wait
	pieces     []piece
	parts      [parts]int64 // sums of the pieces, ns
	scope      scopeMap
	cum        []own // own time up to the start of each piece
	asked      int   // the piece in which own time was asked for last
	// computeBy and idleBy are exclusive own time by operation, and by the
	// scope that the host was in, in ns.
	computeBy, idleBy ownTimes
	idleFor           [causes]int64 // idleness of the host by the cause that its scopes tell, ns
}

// metOp is what segments need of a communication that met others: they look for it among
// all of its rank's, in the order of meetings.
type metOp struct {
	spot     uint64
	exit     int64 // its start, where inferred
	at       int32 // place in comms
	inferred bool  // the exit is no measurement
}

// tail is what the next step must know of a rank's last communication.
type tail struct {
	step int64
	end  int64 // raw end of the step
	ops  []tailOp
}

// tailOp is one communication operation of the previous step.
type tailOp struct {
	spot   uint64
	start  int64 // raw, as exit is
	exit   int64
	after  own // own time from the exit to the end of the step
	member *memberRecord
	// inferred: the exit is no measurement; holed: something after it may be missing.
	inferred, holed bool
}

// maxTail is how many operations of the previous step can serve as the
// beginning of a segment; those before them are over when these are.
const maxTail = 32

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
	j.leaveOutAbsurd(s)
	out := make([]*rankView, 0, len(s.ranks))
	for _, rs := range s.ranks {
		rs.tidy()
		j.e.stats.DuplicateOps += rs.again
		v := j.view()
		v.rankStep, v.keys, v.stats = rs, j.keys, &j.e.stats
		v.dark = !rs.witnessed()
		rs.cover()
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b *rankView) int { return cmp.Compare(a.rank.Rank, b.rank.Rank) })
	for i, v := range out {
		v.index = i
	}
	j.doubtLaunches(s.step, out)
	j.doubtMarks(s.step, out)
	for _, v := range out {
		if t := j.tails[v.rank.Rank]; t != nil && t.step == s.step-1 {
			v.follow(t)
		}
	}
	knowPeers(out)
	return out
}

// follow lets the rank's step begin no earlier than the one before ended: the host enqueues a
// step while the device still runs that one, and an instant belongs to the earlier.
func (v *rankView) follow(t *tail) {
	v.tail = t
	if v.hostless {
		v.start = t.end // nothing says when its host began
	}
	v.start = min(max(v.start, t.end), v.end)
}

// view returns an empty view with the room of one that is not needed any more.
func (j *job) view() *rankView {
	n := len(j.unused)
	if n == 0 {
		return &rankView{}
	}
	v := j.unused[n-1]
	j.unused = j.unused[:n-1]
	*v = rankView{pieces: v.pieces[:0], cum: v.cum[:0], met: v.met[:0], streams: v.streams[:0], holes: v.holes[:0], seen: v.seen[:0], scope: v.scope[:0]}
	return v
}

// tidy sorts the operations and drops those that were delivered twice.
func (rs *rankStep) tidy() {
	if rs.tidied {
		return
	}
	rs.tidied = true
	before := rs.size()
	if !inOrder(rs.acts) {
		slices.SortFunc(rs.acts, func(a, b activity) int { return a.compare(&b) })
		rs.acts = slices.Compact(rs.acts)
	}
	// The order of launches is the program's; starts of two that run side by
	// side can swap.
	sorted, twice := true, false
	for i := 1; i < len(rs.comms); i++ {
		sorted = sorted && rs.comms[i-1].compare(&rs.comms[i]) <= 0
		twice = twice || rs.comms[i-1].start == rs.comms[i].start || rs.comms[i-1].order() == rs.comms[i].order()
	}
	if !sorted {
		slices.SortStableFunc(rs.comms, func(a, b commOp) int { return a.compare(&b) })
	}
	if !sorted || twice {
		rs.comms = slices.CompactFunc(rs.comms, func(a, b commOp) bool {
			return a.start == b.start && a.seq == b.seq && a.lane == b.lane && a.form.key == b.form.key || a.again(&b)
		})
	}
	rs.end = max(rs.start, rs.end)
	rs.again += int64(before - rs.size())
}

// again reports whether both are one operation, delivered twice: its start on the device may have
// been placed by another fit of the clocks, and its number among those of its key by another order
// of threads, but not its launch and its rendezvous.
func (o *commOp) again(p *commOp) bool {
	return o.launch != 0 && o.launch == p.launch && o.form == p.form && o.lane == p.lane &&
		o.numbered && p.numbered && o.number == p.number && o.peer == p.peer && o.peerLocal == p.peerLocal
}

// compare orders communication as the program issued it.
func (o *commOp) compare(p *commOp) int {
	if a, b := o.order(), p.order(); a != b {
		return cmp.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(o.start, p.start), cmp.Compare(o.seq, p.seq))
}

// compare orders activities by start, the longer first.
func (a *activity) compare(b *activity) int {
	if a.start != b.start {
		return cmp.Compare(a.start, b.start)
	}
	return cmp.Or(cmp.Compare(b.end, a.end), cmp.Compare(a.lane, b.lane), cmp.Compare(a.key, b.key), cmp.Compare(a.seq, b.seq))
}

// inOrder reports whether the activities are sorted and all different.
func inOrder(acts []activity) bool {
	for i := 1; i < len(acts); i++ {
		if acts[i-1].start >= acts[i].start && acts[i-1].compare(&acts[i]) >= 0 {
			return false
		}
	}
	return true
}

// clockOf returns the clock that stamped the operation.
func (v *rankView) clockOf(op *commOp) string {
	if op.clock != "" {
		return op.clock
	}
	return v.ownClock()
}

// ownClock returns the clock that stamps the rank's operations where they name none.
func (v *rankView) ownClock() string {
	if v.rank.ClockID != "" {
		return v.rank.ClockID
	}
	return v.rank.HostName
}

// shift returns what places the operation's stamps on the timeline, in ns.
func (v *rankView) shift(op *commOp) int64 {
	if op.clock == "" {
		return int64(v.offset.Value)
	}
	o, _ := v.clocks.Offset(op.clock)
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
	messages := j.messages[:0]
	fresh := 0
	for _, g := range met {
		if g.kind == model.KindCollective {
			if !g.relates() {
				continue
			}
			j.clockHistory = append(j.clockHistory, clockMeeting(g))
			fresh++
		} else if m, ok := clockMessage(g); ok {
			messages = append(messages, m)
		}
	}
	j.messages = messages
	j.forgetMeetings(fresh)
	fresh = min(fresh, len(j.clockHistory))
	clocks := make([]string, len(views))
	for i, v := range views {
		clocks[i] = v.ownClock()
	}
	opt := clock.Options{Clocks: clocks, Off: !j.e.cfg.Clock}
	t := j.clocks.Solve(j.clockHistory, messages, opt)
	if j.inConflict(t, clocks) {
		// Offsets that were true once are not any more: only this step counts.
		j.e.stats.ClockConflicts++
		j.clockHistory = slices.Clone(j.clockHistory[len(j.clockHistory)-fresh:])
		t = j.clocks.Solve(j.clockHistory, messages, opt)
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

// relates reports whether members have different clocks: others tell nothing of
// clocks, and would take the room of those that do.
func (g *gathering) relates() bool {
	first := g.parties[0]
	return slices.ContainsFunc(g.parties[1:], func(p party) bool { return p.at.clockOf(p.op) != first.at.clockOf(first.op) })
}

// forgetMeetings keeps those of the last step, which may hold groups of many ranks that
// each relate others, and some before.
func (j *job) forgetMeetings(fresh int) {
	arrivals, keep := 0, len(j.clockHistory)
	for keep > 0 && len(j.clockHistory)-keep < max(clockMemory, fresh) {
		arrivals += len(j.clockHistory[keep-1].Arrivals)
		if arrivals > clockArrivals && keep < len(j.clockHistory) {
			break
		}
		keep--
	}
	j.clockHistory = slices.Delete(j.clockHistory, 0, keep)
}

func clockMeeting(g *gathering) clock.Meeting {
	m := clock.Meeting{Name: g.name(), Bytes: g.bytes(), Synchronising: model.Synchronising(g.name()), Root: -1}
	// All members of a complete all_to_all leave together too, though nothing
	// forces them to.
	m.EndsCoincide = m.Synchronising || (g.name() == model.AllToAll && g.complete())
	if g.waiters() == waitForRoot {
		m.Root = g.root()
	}
	m.Arrivals = make([]clock.Arrival, 0, len(g.parties))
	for i := range g.parties {
		p := &g.parties[i]
		m.Arrivals = append(m.Arrivals, clock.Arrival{Clock: p.at.clockOf(p.op), Enter: p.op.start, Exit: p.op.end, ExitUnknown: p.op.inferred})
	}
	return m
}

// clockMessage returns what a message tells of two clocks; false where it is of one.
func clockMessage(g *gathering) (clock.Message, bool) {
	send, recv := &g.parties[0], &g.parties[1]
	if send.op.form.kind != model.KindSend {
		send, recv = recv, send
	}
	if send.op.form.kind != model.KindSend || recv.op.form.kind != model.KindRecv || recv.op.inferred {
		return clock.Message{}, false
	}
	from, to := send.at.clockOf(send.op), recv.at.clockOf(recv.op)
	if from == to {
		return clock.Message{}, false
	}
	return clock.Message{SendClock: from, RecvClock: to, SendStart: send.op.start, RecvEnd: recv.op.end}, true
}
