// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/intake/stepless"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// OpsToTraces returns the operations of one rank as spans under one resource.
// An operation's parent is its rank's step span, whose parent is the step's
// root; an operation without a step has no parent.
func OpsToTraces(r *model.Rank, ops []model.Op) ptrace.Traces {
	td := ptrace.NewTraces()
	AppendOps(td, r, ops)
	return td
}

// AppendOps adds the operations of one rank to td, under a resource of its own.
func AppendOps(td ptrace.Traces, r *model.Rank, ops []model.Op) {
	rs := td.ResourceSpans().AppendEmpty()
	RankToResource(r, rs.Resource())
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName(ScopeName)
	ss.Spans().EnsureCapacity(len(ops))
	steps := stepIDs{}
	for i := range ops {
		opToSpan(r, &ops[i], &steps, ss.Spans().AppendEmpty())
	}
}

// stepIDs remembers the ids of the latest step of one rank: hashing them anew for
// each operation would double the cost of mapping.
type stepIDs struct {
	step   optionalInt
	trace  model.TraceID
	parent pcommon.SpanID
	known  bool
}

// of fills the ids of an operation, and its parent's.
func (c *stepIDs) of(r *model.Rank, op *model.Op) (span pcommon.SpanID, parent pcommon.SpanID) {
	if !c.known || c.step != op.Step {
		*c = stepIDs{step: op.Step, trace: r.Trace(op), known: true}
		if op.Step.OK {
			c.parent = pcommon.SpanID(model.StepSpanID(c.trace, r.Rank))
		}
	}
	if op.Kind == model.KindStep {
		return pcommon.SpanID(model.StepSpanID(c.trace, r.Rank)), pcommon.SpanID(model.RootSpanID(c.trace))
	}
	return pcommon.SpanID(model.OpSpanID(c.trace, r.Rank, op.Lane(), op.ComparisonKey(), op.Seq)), c.parent
}

func spanKind(k model.OpKind) ptrace.SpanKind {
	switch k {
	case model.KindSend:
		return ptrace.SpanKindProducer
	case model.KindRecv:
		return ptrace.SpanKindConsumer
	default:
		return ptrace.SpanKindInternal
	}
}

// TracesToOps reads the operations of td, grouped by rank in order of first
// sight. It never fails: spans that are no operations, or that can not be true,
// are left out, and whatever could not be read is counted in the problems. A
// rank without any step beside ranks that have some is a problem, too.
func TracesToOps(td ptrace.Traces) ([]model.RankOps, []model.Problem) {
	var p Problems
	ranks := ReadOps(td, &p)
	var seen stepless.Ranks
	seen.Add(ranks)
	return ranks, append(p.List(), seen.Problems()...)
}

// ReadOps is TracesToOps for callers that count problems over many batches, of
// which some hold only what lies outside of steps.
func ReadOps(td ptrace.Traces, p *Problems) []model.RankOps {
	g := rankGroups{index: map[rankKey][]int{}}
	g.addTraces(td, p)
	return slices.DeleteFunc(g.ranks, func(r model.RankOps) bool { return len(r.Ops) == 0 })
}

// StepSummaries has the summaries of a rank's steps by the index of the step among the rank's operations.
type StepSummaries map[int]*model.Summary

// ReadOpsAndSummaries is [ReadOps], and returns the summaries on the step spans of each rank; nil where a
// rank has none.
func ReadOpsAndSummaries(td ptrace.Traces, p *Problems) (ranks []model.RankOps, summaries []StepSummaries) {
	found := map[int]StepSummaries{}
	g := rankGroups{index: map[rankKey][]int{}, summaries: found}
	g.addTraces(td, p)
	for i := range g.ranks {
		if len(g.ranks[i].Ops) > 0 {
			ranks, summaries = append(ranks, g.ranks[i]), append(summaries, found[i])
		}
	}
	return ranks, summaries
}

type rankKey struct {
	job, incarnation string
	rank             int64
}

type rankGroups struct {
	ranks     []model.RankOps
	room      []int // of the same ranks: operations at most
	index     map[rankKey][]int
	summaries map[int]StepSummaries // by the index of the rank; nil: summaries are left aside
}

func (g *rankGroups) addTraces(td ptrace.Traces, p *Problems) {
	sources := g.sources(td)
	for i, rs := range td.ResourceSpans().All() {
		g.addResource(rs, sources[i], p)
	}
}

// addSummary notes the summary on the span of the operation that rank i got last.
func (g *rankGroups) addSummary(i int, s ptrace.Span, p *Problems) {
	if g.summaries == nil || g.ranks[i].Ops[len(g.ranks[i].Ops)-1].Kind != model.KindStep || !hasSummary(s) {
		return
	}
	if g.summaries[i] == nil {
		g.summaries[i] = StepSummaries{}
	}
	sum := ReadSummary(s, p)
	g.summaries[i][len(g.ranks[i].Ops)-1] = &sum
}

// source is a resource that names a rank and has operations.
type source struct {
	rank  model.Rank
	noted bool // some of its attributes are problems
	to    int  // number of the rank
}

// sources looks at all resources before their operations are read, so that a rank of several resources
// is given room once: growing copies what was read. It returns nil for resources without operations.
func (g *rankGroups) sources(td ptrace.Traces) []*source {
	out := make([]*source, td.ResourceSpans().Len())
	for i, rs := range td.ResourceSpans().All() {
		n := mostOps(rs)
		if n == 0 {
			continue
		}
		var noted Problems
		rank, homeless := readRank(rs.Resource(), &noted)
		if homeless != nil {
			continue
		}
		out[i] = &source{rank: rank, noted: len(noted.order) > 0, to: g.group(&rank)}
		g.room[out[i].to] += n
	}
	return out
}

// mostOps returns how many operations a resource has at most: its spans from the first operation on.
func mostOps(rs ptrace.ResourceSpans) (n int) {
	for _, ss := range rs.ScopeSpans().All() {
		left := ss.Spans().Len()
		for _, s := range ss.Spans().All() {
			if n > 0 || IsOp(s) {
				n += left
				break
			}
			left--
		}
	}
	return n
}

// addResource reads the operations of a resource, and notes problems in the order of the input.
func (g *rankGroups) addResource(rs ptrace.ResourceSpans, from *source, p *Problems) {
	var homeless *fault
	if from == nil || from.noted {
		_, homeless = readRank(rs.Resource(), p)
	}
	for _, ss := range rs.ScopeSpans().All() {
		for _, s := range ss.Spans().All() {
			switch {
			case !IsOp(s):
				p.foreign(s)
			case homeless != nil:
				p.fault(nil, homeless)
			default:
				if g.addOp(from, s, p) {
					g.addSummary(from.to, s, p)
				}
			}
		}
	}
}

// maxProcesses bounds how many processes that call themselves one rank are kept apart:
// the first is believed, the others are counted.
const maxProcesses = 8

// group returns where operations of the resource go. Two resources may be one rank seen
// by two sources; two processes that call themselves one rank stay apart.
func (g *rankGroups) group(r *model.Rank) int {
	key := rankKey{r.JobID, r.Incarnation, r.Rank}
	known := g.index[key]
	for n, i := range known {
		if g.ranks[i].Rank.MayBe(r) || n == maxProcesses-1 {
			return i
		}
	}
	g.index[key] = append(known, len(g.ranks))
	g.ranks, g.room = append(g.ranks, model.RankOps{Rank: *r}), append(g.room, 0)
	return len(g.ranks) - 1
}

// addOp files an operation of a resource. It keeps the clock of the resource that it came with. It returns false for
// an operation that is left out.
func (g *rankGroups) addOp(from *source, s ptrace.Span, p *Problems) bool {
	to, r := &g.ranks[from.to], &from.rank
	if to.Ops == nil {
		to.Ops = make([]model.Op, 0, g.room[from.to])
	}
	to.Ops = append(to.Ops, model.Op{})
	op := &to.Ops[len(to.Ops)-1]
	readOp(s, op, p.opNotes(&r.Rank))
	if f := faultOf(s, op); f != nil {
		p.fault(&r.Rank, f)
		to.Ops = to.Ops[:len(to.Ops)-1]
		return false
	}
	if f := unitFault(op); f != nil {
		p.doubt(&r.Rank, f)
	}
	if op.ClockID == "" && r.ClockID != to.Rank.ClockID {
		op.ClockID = r.ClockID
	}
	return true
}

// IsOp reports whether a span is an operation of ours.
func IsOp(s ptrace.Span) bool {
	_, ok := KindOf(s)
	return ok
}

// KindOf returns the kind of an operation; false where the span is none, or of a
// kind that is not known.
func KindOf(s ptrace.Span) (model.OpKind, bool) {
	v, ok := s.Attributes().Get(semconv.OpKind)
	if !ok || v.Type() != pcommon.ValueTypeStr {
		return "", false
	}
	kind := model.OpKind(v.Str())
	return kind, knownKind(kind)
}

// SpanToOp reads one operation span of the given rank.
func SpanToOp(s ptrace.Span, r *model.Rank, p *Problems) model.Op {
	var op model.Op
	readOp(s, &op, p.opNotes(&r.Rank))
	return op
}

func readOp(s ptrace.Span, op *model.Op, n notes) {
	op.Name, op.Start, op.End = s.Name(), int64(s.StartTimestamp()), int64(s.EndTimestamp())
	if len(op.Name) > cut.MaxName {
		op.Name = cut.Bytes(op.Name, cut.MaxName)
		n.shortened("span name")
	}
	opFields.read(op, s.Attributes(), n)
	readLinks(s, op)
}
