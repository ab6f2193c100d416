package straggler

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// job is the state of one incarnation.
type job struct {
	e                     *Engine
	name, id, incarnation string
	used                  time.Time
	quiet                 bool // nothing has come of it for a while

	world  int64
	ranks  map[int64]*model.Rank
	keys   *interner
	open   map[int64]*openStep
	held   int // activities in open steps
	closed closedSteps

	clockHistory []clock.Meeting
	tails        map[int64]*tail // by rank
	window       []*record
	members      int // of all meetings in the window
	totals       map[int64]*RankTotal
	steps        int
	stepTime     time.Duration

	episodes             int64
	meetings, attributed int
	unjudged             int // steps since the last judgement
	looks                int // judgements so far, at most maxLooks

	judged   bool // nothing has come since the last judgement
	verdicts []*standing
	past     []Verdict // closed, the latest
	abstain  *Abstention
}

// openStep gathers a step until every rank has delivered it.
type openStep struct {
	step  int64
	heard time.Time // when something of it came last
	ranks map[int64]*rankStep
}

// rankStep is what one rank delivered of a step.
type rankStep struct {
	rank       model.Rank
	start, end int64 // raw; of the step operation, else of what was seen
	marked     bool  // the step operation was seen
	came, want int64 // operations received, and announced by the step operation
	phase      string
	acts       []activity
	comms      []model.Op
}

// activity is an operation reduced to what the analysis of a step needs: 48
// bytes and no pointer, since a step can hold a million.
type activity struct {
	start, end int64
	launch     int64 // 0 where unknown
	lane       int64
	key        uint32
	seq        uint32
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

func newJob(e *Engine, r *model.Rank) *job {
	return &job{
		e: e, name: r.JobName, id: r.JobID, incarnation: r.Incarnation, used: e.now(),
		ranks: map[int64]*model.Rank{}, keys: newInterner(), open: map[int64]*openStep{},
		tails: map[int64]*tail{}, totals: map[int64]*RankTotal{},
	}
}

// admit registers the rank; false where the job has too many.
func (j *job) admit(r *model.Rank) bool {
	if size := r.WorldSize.Or(0); size > int64(j.e.cfg.MaxRanks) {
		j.e.stats.WorldsCapped++
		j.world = int64(j.e.cfg.MaxRanks)
	} else {
		j.world = max(j.world, size)
	}
	if _, ok := j.ranks[r.Rank]; !ok {
		if len(j.ranks) >= j.e.cfg.MaxRanks {
			return false
		}
		known := *r
		j.ranks[r.Rank] = &known
	}
	return true
}

func (j *job) add(r *model.Rank, op *model.Op) {
	if !op.Step.OK {
		j.e.stats.OpsWithoutStep++
		return
	}
	if j.closed.has(op.Step.V) {
		j.e.stats.LateOps++
		return
	}
	s := j.open[op.Step.V]
	if s == nil {
		s = &openStep{step: op.Step.V, ranks: map[int64]*rankStep{}}
		j.open[op.Step.V] = s
	}
	s.heard = j.used
	rs := s.ranks[r.Rank]
	if rs == nil {
		rs = &rankStep{rank: *r}
		s.ranks[r.Rank] = rs
	}
	if rs.size() >= j.e.cfg.MaxOpsPerRankStep && op.Kind != model.KindStep {
		rs.came++
		j.e.stats.OpsDropped++
		return
	}
	before := rs.size()
	rs.add(op, j)
	j.held += rs.size() - before
}

func (rs *rankStep) size() int { return len(rs.acts) + len(rs.comms) }

func (rs *rankStep) add(op *model.Op, j *job) {
	if op.Kind == model.KindStep {
		rs.start, rs.end, rs.marked, rs.phase, rs.want = op.Start, op.End, true, op.Phase, op.StepOps.Or(0)
		return
	}
	rs.came++
	switch {
	case op.Kind.IsComm():
		rs.comms = append(rs.comms, *op)
	default:
		kind, ok := activityKind(op.Kind)
		if !ok {
			return
		}
		a := activity{
			start: op.Start, end: max(op.Start, op.End), launch: op.Launch.Or(0), lane: op.Lane(),
			key: j.keys.id(op.ComparisonKey(), &j.e.stats), seq: uint32(op.Seq), kind: kind,
		}
		if kind == actScope {
			a.cause = causeOf(op)
		}
		rs.acts = append(rs.acts, a)
	}
	if !rs.marked {
		if rs.size() == 1 {
			rs.start, rs.end = op.Start, op.End
		}
		rs.start, rs.end = min(rs.start, op.Start), max(rs.end, op.End)
	}
}

func activityKind(k model.OpKind) (actKind, bool) {
	switch k {
	case model.KindCompute:
		return actCompute, true
	case model.KindCopy:
		return actCopy, true
	case model.KindScope:
		return actScope, true
	case model.KindHost:
		return actHost, true
	}
	return 0, false
}

func (j *job) complete(s *openStep) bool {
	if j.world == 0 || int64(len(s.ranks)) < j.world {
		return false
	}
	for _, rs := range s.ranks {
		if !rs.marked || !rs.allCame() {
			return false
		}
	}
	return true
}

// marked reports whether the step operation of every rank was seen.
func (j *job) marked(s *openStep) bool {
	for _, rs := range s.ranks {
		if !rs.marked {
			return false
		}
	}
	return j.world > 0 && int64(len(s.ranks)) >= j.world
}

// allCame reports whether as many operations came as the step operation
// announced, not counting those that came twice.
func (rs *rankStep) allCame() bool {
	if rs.came < rs.want {
		return false
	}
	before := rs.size()
	rs.tidy()
	rs.came -= int64(before - rs.size())
	return rs.came >= rs.want
}

// shrink closes the oldest open steps while there are too many of them, or too
// many activities in them.
func (j *job) shrink() []*StepReport {
	var out []*StepReport
	for len(j.open) > j.e.cfg.MaxOpenSteps || (j.held > j.e.cfg.MaxOpenOps && len(j.open) > 1) {
		oldest := slices.Min(j.openSteps())
		j.e.stats.StepsEvicted++
		out = append(out, j.closeWhere(func(s *openStep) bool { return s.step == oldest })...)
	}
	return out
}

func (j *job) openSteps() []int64 {
	steps := make([]int64, 0, len(j.open))
	for n := range j.open {
		steps = append(steps, n)
	}
	slices.Sort(steps)
	return steps
}

func (j *job) closeWhere(when func(*openStep) bool) []*StepReport {
	var out []*StepReport
	for _, n := range j.openSteps() {
		s := j.open[n]
		if !when(s) {
			continue
		}
		delete(j.open, n)
		j.closed.add(n)
		for _, rs := range s.ranks {
			j.held -= rs.size()
		}
		out = append(out, j.analyse(s))
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
		Steps: j.steps, StepTime: j.stepTime, Abstained: j.abstain,
		Meetings: j.meetings, Attributed: j.attributed, Judged: len(j.window), Apart: j.apart(),
	}
	out.Missing, out.MissingCount = j.missing(func(r int64) bool { return j.ranks[r] != nil })
	for _, t := range j.totals {
		out.Ranks = append(out.Ranks, *t)
	}
	slices.SortFunc(out.Ranks, func(a, b RankTotal) int { return cmp.Compare(a.Rank, b.Rank) })
	for _, s := range j.verdicts {
		if s.verdict.Finding.Status != model.StatusClosed {
			out.Verdicts = append(out.Verdicts, s.verdict)
		}
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

// closedSteps remembers which steps have been analysed, so that what comes late
// is counted and not taken for a new step.
type closedSteps struct {
	recent map[int64]struct{}
	order  []int64
}

// closedMemory is how many closed steps are remembered. What comes later than
// 4,096 steps would open a step of its own, and show up as one with missing ranks.
const closedMemory = 4096

func (c *closedSteps) has(n int64) bool {
	_, ok := c.recent[n]
	return ok
}

func (c *closedSteps) add(n int64) {
	if c.recent == nil {
		c.recent = map[int64]struct{}{}
	}
	if len(c.order) >= closedMemory {
		delete(c.recent, c.order[0])
		c.order = c.order[1:]
	}
	c.recent[n] = struct{}{}
	c.order = append(c.order, n)
}

// interner numbers operation keys.
type interner struct {
	ids   map[string]uint32
	names []string
}

// maxKeys bounds the distinct operation keys of a job; further ones are counted
// and share the key otherKey.
const (
	maxKeys  = 1 << 16
	otherKey = model.OpOther
)

func newInterner() *interner {
	return &interner{ids: map[string]uint32{otherKey: 0}, names: []string{otherKey}}
}

func (in *interner) id(s string, stats *Stats) uint32 {
	if i, ok := in.ids[s]; ok {
		return i
	}
	if len(in.names) >= maxKeys {
		stats.PlacesOverflowed++
		return 0
	}
	i := uint32(len(in.names))
	in.ids[s] = i
	in.names = append(in.names, s)
	return i
}

func (in *interner) name(i uint32) string { return in.names[i] }

// longest returns the longest step in the window.
func (j *job) longest() (d time.Duration) {
	for _, rec := range j.window {
		d = max(d, time.Duration(rec.end-rec.start))
	}
	return d
}
