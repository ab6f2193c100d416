// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	limits "github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// job is the state of one incarnation.
type job struct {
	e                     *Engine
	name, id, incarnation string
	used                  time.Time
	quiet                 bool // nothing has come of it for a while

	world    int64
	ranks    map[int64]*process
	keys     *interner
	forms    commForms
	matcher  matcher
	placer   placer
	peering  peering
	does     map[int64]*roleMemory // by rank
	pipes    pipes
	anchors  anchors
	numbers  streamTable
	sweeper  sweeper
	scratch  scratch
	seatsAt  []seatAt // scratch, as the next is
	segments []inSegment
	unused   []*rankView         // views of the last step
	spare    map[int64]*rankStep // of closed steps, by rank
	open     map[int64]*openStep
	look     map[int64]bool // steps that may have become due since closeDue looked
	waits    time.Time      // when the first of the complete steps has waited for its turn; zero: none waits
	taking   taking
	held     int // activities in open steps
	sizes    sizes
	closed   *limits.Ring[int64] // steps that were analysed: what comes late is counted, and opens none of them again

	clocks       clock.Solver
	clockHistory []clock.Meeting
	messages     []clock.Message // of the present step
	tails        map[int64]*tail // by rank
	window       []*record
	members      int // of all meetings in the window
	totals       map[int64]*RankTotal
	steps        int
	stepTime     time.Duration

	seats  map[int64]*judge.Seat
	sheet  sheetDrawer
	sheets func(*judge.Sheet) // who is told of each step's sheet

	meetings, attributed int
	unowed               Unowed
	unseen               float64 // sum over all steps of what who was not seen can have cost at most
	unjoined             Unjoined
	unjudged             int // steps since the last judgement
	looks                int // judgements so far, at most maxLooks

	judged bool      // nothing has come since the last judgement
	turn   int       // of the first finding; it goes down with each judgement
	past   []Verdict // closed, the latest
	newest int64     // end of the latest step, Unix ns
	// clean is when the latest step ended, Unix ns, when a finding at a place was closed as clean.
	clean   *limits.Map[string, int64]
	abstain *Abstention
	priced  bool // the abstention says what it costs

	rhythm    *rhythm // nil where it is not kept
	judgement *judge.Judge
	faults    faults
	walks     walks
}

// openStep gathers a step until every rank has delivered it.
type openStep struct {
	step  int64
	heard time.Time // when something of it came last
	done  time.Time // when it was found complete, where steps are judged in their order; zero: it is not
	ranks map[int64]*rankStep
	ready int  // of them
	whole bool // all of its ranks have delivered, and nothing has come since that was found
	large bool // it alone has more operations than all open steps may
}

// rankStep is what one rank delivered of a step.
type rankStep struct {
	rank       model.Rank
	start, end int64 // raw; of the step operation, else of what was seen
	marked     bool  // the step operation was seen
	again      int64 // operations that were delivered twice
	came, want int64 // operations received, and announced by the step operation
	longest    int64 // operation, ns
	phase      string
	acts       []activity
	comms      []commOp
	scopes     bool // some activity is a scope
	hosts      bool // some is the host's
	tidied     bool // sorted, and nothing in it twice
	ready      bool // marked, and as many came as were announced
	// badLaunches: some launch cannot be true, and is unknown.
	badLaunches bool
	freed       int // after how many steps it was not needed any more
	// Bytes: counted is its room as its job knows it, clocks and text those of texts in it.
	counted, clocks, text int64
}

// activity is an operation reduced to what the analysis of a step needs: 48
// bytes and no pointer, since a step can hold a million.
type activity struct {
	start, end int64
	launch     int64 // 0 where unknown
	lane       int64
	key        uint32 // what the device ran is told apart by name and shape, too
	seq        uint32
	work       float32 // tokens, else bytes; 0 where unknown
	microbatch int16   // -1 where unknown
	kind       actKind
	cause      cause // of a scope
}

type actKind uint8

const (
	actCompute actKind = iota
	actCopy
	actScope
	actHost
)

// judgeAlarm is what part of the limit the judge has. Its table of chance is that of normal
// noise, whose tails and memory few steps show badly; the order of ranks knows of neither
// tails nor tables, and is asked for all of it.
const judgeAlarm = 0.3

func newJob(e *Engine, r *model.Rank) *job {
	j := &job{
		e: e, name: r.JobName, id: r.JobID, incarnation: r.Incarnation, used: e.now(),
		ranks: map[int64]*process{}, keys: newInterner(), open: map[int64]*openStep{}, look: map[int64]bool{}, closed: limits.NewRing[int64](closedMemory), spare: map[int64]*rankStep{},
		tails: map[int64]*tail{}, totals: map[int64]*RankTotal{}, seats: map[int64]*judge.Seat{}, does: map[int64]*roleMemory{},
		clean: limits.NewMap(limits.MapConfig[string, int64]{Entries: maxPast}),
	}
	j.judgement = judge.New(judge.Config{
		Window: e.cfg.Window, MaxRanks: e.cfg.MaxRanks, MinExcessShare: e.cfg.MinExcessShare, MaxFalseAlarm: judgeAlarm * e.cfg.MaxFalseAlarm,
	}, j.placeOf)
	j.sheets = j.judgement.Add
	j.rhythm = newRhythm(j.keys, &e.cfg)
	return j
}

// admit registers the rank; false where the job has too many.
func (j *job) admit(r *model.Rank) bool {
	j.heed(r)
	if j.ranks[r.Rank] != nil {
		return true
	}
	if len(j.ranks) >= j.e.cfg.MaxRanks {
		return false
	}
	j.ranks[r.Rank] = &process{rank: *r, step: math.MinInt64}
	j.sizes.ranks += rankBytes + int64(j.e.cfg.Window)*seatBytes + rankText(r)
	j.outgrow(int64(len(j.ranks)), "ranks came")
	return true
}

func (j *job) add(r *model.Rank, op *model.Op) {
	if !op.Step.OK {
		j.e.stats.OpsWithoutStep++
		return
	}
	if t := &j.taking; t.rank != nil && t.step.step == op.Step.V {
		j.take(t.step, t.rank, r, op)
		return
	}
	if j.closed.Seen(op.Step.V) {
		j.e.stats.LateOps++
		return
	}
	s := j.open[op.Step.V]
	if s == nil {
		s = &openStep{step: op.Step.V, ranks: map[int64]*rankStep{}}
		j.open[op.Step.V] = s
		j.sizes.open += openStepBytes
	}
	s.heard = j.used
	rs := s.ranks[r.Rank]
	if rs == nil {
		rs = j.rankStep(r)
		s.ranks[r.Rank] = rs
	}
	if j.twice(rs, r) {
		return
	}
	j.endTaking()
	j.taking, j.look[s.step] = taking{s, rs}, true
	j.take(s, rs, r, op)
}

// taking is the step of a rank to which the operations of one batch were added last.
type taking struct {
	step *openStep
	rank *rankStep
}

// take adds an operation to a rank's step.
func (j *job) take(s *openStep, rs *rankStep, r *model.Rank, op *model.Op) {
	s.whole = false
	before := rs.size()
	switch {
	case j.refuse(r, op):
		rs.leaveOut(op)
	case before >= j.e.cfg.MaxOpsPerRankStep && op.Kind != model.KindStep:
		rs.leaveOut(op)
		j.e.stats.OpsDropped++
	default:
		j.doubtLaunch(rs, op)
		rs.add(op, j)
	}
	j.held += rs.size() - before
	s.count(rs)
}

// leaveOut takes the operation for one that came: a step does not wait for it.
func (rs *rankStep) leaveOut(op *model.Op) {
	if op.Kind != model.KindStep {
		rs.came++
	}
}

// count keeps the number of ranks that are ready.
func (s *openStep) count(rs *rankStep) {
	if ready := rs.marked && rs.came >= rs.want; ready != rs.ready {
		rs.ready = ready
		if ready {
			s.ready++
		} else {
			s.ready--
		}
	}
}

func (rs *rankStep) size() int { return len(rs.acts) + len(rs.comms) }

// rankStep returns an empty one, with the room of the rank's last that is not needed any
// more.
func (j *job) rankStep(r *model.Rank) *rankStep {
	who, text := r, rankText(r)
	if known := &j.ranks[r.Rank].rank; *known == *r {
		who, text = known, 0 // the texts of the first message are kept, and not those of each
	}
	rs := j.spare[r.Rank]
	if rs == nil {
		return &rankStep{rank: *who, text: text}
	}
	delete(j.spare, r.Rank)
	j.sizes.spare -= rs.counted
	*rs = rankStep{rank: *who, text: text, acts: rs.acts[:0], comms: rs.comms[:0], clocks: rs.clocks}
	return rs
}

// roomy is by how much a slice may be larger than what it held to be kept: one
// unusual step must not hold memory for good.
const roomy = 4

// spareSteps is for how many steps the room of a rank that does not come is kept.
const spareSteps = 16

// release takes back what an analysed step needed.
func (j *job) release(views []*rankView) {
	ops := 0
	for _, v := range views {
		rs := v.rankStep
		ops += rs.size()
		if cap(rs.acts) > roomy*len(rs.acts) {
			rs.acts = nil
		}
		if cap(rs.comms) > roomy*len(rs.comms) {
			rs.comms, rs.clocks = nil, 0
		}
		if cap(v.pieces) > roomy*len(v.pieces) {
			v.pieces, v.cum = nil, nil
		}
		v.rankStep, v.tail, v.clocks, v.placed = nil, nil, nil, nil
		v.computeBy, v.idleBy = nil, nil
		rs.freed = j.steps
		j.keepSpare(rs)
	}
	maps.DeleteFunc(j.spare, func(_ int64, rs *rankStep) bool {
		old := j.steps-rs.freed > spareSteps
		if old {
			j.sizes.spare -= rs.counted
		}
		return old
	})
	j.sizes.scratch = max(int64(ops)*scratchBytes, j.sizes.scratch)
	j.unused = append(j.unused, views...)
	j.unused = j.unused[:min(len(j.unused), len(j.ranks))]
	clear(j.seatsAt)
	if j.scratch.tooLarge(ops) {
		j.letGo()
		j.sizes.scratch = int64(ops) * scratchBytes
	}
}

// keepSpare keeps the room of a rank's closed step for its next.
func (j *job) keepSpare(rs *rankStep) {
	if before := j.spare[rs.rank.Rank]; before != nil {
		j.sizes.spare -= before.counted
	}
	rs.counted = rs.room()
	j.sizes.spare += rs.counted
	j.spare[rs.rank.Rank] = rs
}

// noteLarge counts the only open step where it holds too much. It is judged whole all the
// same: ranks of which a part was left out look slower or faster than they are.
func (j *job) noteLarge() {
	if j.held <= j.e.cfg.MaxOpenOps || len(j.open) > 1 {
		return
	}
	for _, s := range j.open {
		if !s.large {
			s.large = true
			j.e.stats.StepsLarge++
		}
	}
}

// shrink closes the oldest open steps while there are too many of them, or too
// many activities in them.
func (j *job) shrink() []*StepReport {
	var out []*StepReport
	tight := func() bool {
		return len(j.open) > j.e.cfg.MaxOpenSteps || (j.held > j.e.cfg.MaxOpenOps && len(j.open) > 1)
	}
	if j.e.cfg.Reorder > 0 && tight() { // those that wait for their turn lose nothing by it
		out = j.closeWhere(func(s *openStep) bool { return tight() && j.complete(s) })
	}
	for tight() {
		out = append(out, j.closeOldest()...)
	}
	return out
}

// missing lists the first ranks of the world that are not among seen, at most
// maxListed, and counts them all.
func (j *job) missing(seen func(int64) bool) (first []int64, count int) {
	for r := range j.world {
		if seen(r) {
			continue
		}
		count++
		if len(first) < maxListed {
			first = append(first, r)
		}
	}
	return first, count
}

func (j *job) report() JobReport {
	j.judge()
	out := JobReport{
		JobName: j.name, JobID: j.id, Incarnation: j.incarnation,
		Steps: j.steps, StepTime: j.stepTime, Abstained: j.abstained(),
		Meetings: j.meetings, Attributed: j.attributed, Unowed: j.unowedReport(), Unjoined: j.unjoined, Judged: len(j.window), OffUnit: j.faults.units.whole(), Apart: j.apart(), Problems: j.problems(),
	}
	j.rhythm.report(&out)
	out.Missing, out.MissingCount = j.missing(func(r int64) bool { return j.ranks[r] != nil })
	for _, t := range j.totals {
		out.Ranks = append(out.Ranks, *t)
	}
	slices.SortFunc(out.Ranks, func(a, b RankTotal) int { return cmp.Compare(a.Rank, b.Rank) })
	for _, e := range j.standing() {
		out.Verdicts = append(out.Verdicts, verdictOf(e))
	}
	out.Verdicts = append(out.Verdicts, j.past...)
	slices.SortStableFunc(out.Verdicts, func(a, b Verdict) int {
		return cmp.Compare(b.Finding.CostSeconds.V, a.Finding.CostSeconds.V)
	})
	return out
}

// apart lists the ranks that communicate but met nobody.
func (j *job) apart() (out []int64) {
	for r, t := range j.totals {
		if t.Meetings > 0 && t.Met == 0 && j.meetings > 0 {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	return out
}

// closedMemory is how many closed steps are remembered. What comes later than
// 4,096 steps would open a step of its own, and show up as one with missing ranks.
const closedMemory = 4096

// longest returns the longest step in the window.
func (j *job) longest() (d time.Duration) {
	for _, rec := range j.window {
		d = max(d, time.Duration(rec.end-rec.start))
	}
	return d
}
