// SPDX-License-Identifier: Apache-2.0

package stepmap

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/straggler"
	"github.com/lockstep-otel/lockstep/internal/straggler/steptrace"
)

// longestKept is how many of a rank's longest operations in a step are kept for
// its story beside communication: enough to see what a late rank was doing.
const longestKept = 3

// Teller keeps the operations that the story of an open step may need, and
// writes the story when the step's report has come. It is not safe for
// concurrent use.
type Teller struct {
	limit   int // spans of a story
	maxHeld int // operations kept over all open steps
	held    int
	bytes   int64            // of all kept operations, about
	jobs    map[string]int64 // the same, by incarnation
	dropped int64
	steps   *bounded.Map[stepKey, *heldStep] // the oldest first
	now     func() time.Time
}

type stepKey struct {
	incarnation string
	step        int64
}

type heldStep struct {
	ranks map[int64]*heldRank
	size  int
	bytes int64
	first time.Time
}

type heldRank struct {
	rank    model.Rank
	ops     []model.Op // communication and the step
	longest []model.Op // of the rest, longest first
}

// NewTeller returns a teller of stories of at most limit spans, the root not
// counted, that keeps at most maxHeld operations.
func NewTeller(limit, maxHeld int, now func() time.Time) *Teller {
	return &Teller{limit: limit, maxHeld: maxHeld, steps: bounded.NewMap(bounded.MapConfig[stepKey, *heldStep]{Compare: byAge}), jobs: map[string]int64{}, now: now}
}

// Held returns how many operations are kept now.
func (t *Teller) Held() int { return t.held }

// Dropped returns how many operations were not kept for want of room, or were
// kept for a step that was never reported.
func (t *Teller) Dropped() int64 { return t.dropped }

// Keep keeps of the operations what a story may need.
func (t *Teller) Keep(rank *model.Rank, ops []model.Op) {
	for i := range ops {
		op := &ops[i]
		if !op.Step.OK {
			continue
		}
		if t.full() && !t.makeRoom(rank.Incarnation) {
			t.dropped++
			continue
		}
		s := t.step(stepKey{rank.Incarnation, op.Step.V})
		size, bytes := s.size, s.bytes
		s.keep(rank, op)
		t.held += s.size - size
		t.count(rank.Incarnation, s.bytes-bytes)
	}
}

func (t *Teller) step(key stepKey) *heldStep {
	s, ok := t.steps.Peek(key)
	if !ok {
		s = &heldStep{ranks: map[int64]*heldRank{}, first: t.now(), bytes: stepBytes}
		t.steps.Set(key, s)
		t.count(key.incarnation, stepBytes)
	}
	return s
}

func (s *heldStep) keep(rank *model.Rank, op *model.Op) {
	r := s.ranks[rank.Rank]
	if r == nil {
		r = &heldRank{rank: *rank}
		s.ranks[rank.Rank] = r
		s.bytes += rankSize(rank)
	}
	before := len(r.ops) + len(r.longest)
	switch {
	case op.Kind.IsComm() || op.Kind == model.KindStep:
		r.ops = append(r.ops, *op)
		s.bytes += opSize(op)
	case op.Kind != model.KindScope:
		s.bytes += r.keepLongest(op)
	}
	s.size += len(r.ops) + len(r.longest) - before
}

// keepLongest keeps the operation where it is among the longest, and returns by how many bytes more
// are kept.
func (r *heldRank) keepLongest(op *model.Op) (more int64) {
	n := len(r.longest)
	if n == longestKept {
		if op.Duration() <= r.longest[n-1].Duration() {
			return 0
		}
		more = -opSize(&r.longest[n-1])
	}
	more += opSize(op)
	at, _ := slices.BinarySearchFunc(r.longest, op, func(a model.Op, b *model.Op) int { return cmp.Compare(b.Duration(), a.Duration()) })
	r.longest = slices.Insert(r.longest, at, *op)
	r.longest = r.longest[:min(len(r.longest), longestKept)]
	return more
}

// Tell returns the story of the reported step, with its root, and forgets the
// step's operations.
func (t *Teller) Tell(rep *straggler.StepReport, findings []model.Finding) ptrace.Traces {
	held := t.take(stepKey{rep.Incarnation, rep.Step})
	if held == nil {
		held = &heldStep{}
	}
	story := steptrace.Select(rep, findings, held.context(), t.limit)
	td := ptrace.NewTraces()
	written := 0
	for i := range rep.Ranks {
		ops := held.chosen(rep.Step, &rep.Ranks[i], story)
		if len(ops) > 0 {
			otelmap.AppendOps(td, &rep.Ranks[i].Rank, ops)
		}
		written += len(ops)
	}
	otelmap.RootToTraces(&otelmap.Root{
		JobName: rep.JobName, JobID: rep.JobID, Incarnation: rep.Incarnation, Step: rep.Step, Start: rep.Start, End: rep.End,
		Omitted: story.Omitted + int64(len(story.Spans)-written), Limit: int64(t.limit),
	}, td)
	NewAnnotator([]*straggler.StepReport{rep}, findings, false).Annotate(td)
	return td
}

// Prune drops what was kept for steps that were opened before and never
// reported: a step closed long ago to which something came late.
func (t *Teller) Prune(before time.Time) {
	for key, s, ok := t.steps.Oldest(); ok && s.first.Before(before); key, s, ok = t.steps.Oldest() {
		t.drop(key)
	}
}

// drop drops what was kept for a step that is not reported.
func (t *Teller) drop(key stepKey) { t.dropped += int64(t.take(key).size) }

func (t *Teller) take(key stepKey) *heldStep {
	s, ok := t.steps.Delete(key)
	if ok {
		t.held -= s.size
		t.count(key.incarnation, -s.bytes)
	}
	return s
}

// context names the longest operations of every rank.
func (s *heldStep) context() map[int64][]model.SpanRef {
	out := make(map[int64][]model.SpanRef, len(s.ranks))
	for n, r := range s.ranks {
		for i := range r.longest {
			out[n] = append(out[n], r.rank.Ref(&r.longest[i]))
		}
	}
	return out
}

// chosen returns the rank's operations that belong to the story, each once. A
// rank whose step was never marked gets a step from the report, so that the tree
// has no gap.
func (s *heldStep) chosen(step int64, r *straggler.RankStep, story steptrace.Selection) []model.Op {
	var ops []model.Op
	seen := map[model.SpanRef]struct{}{}
	pick := func(op *model.Op) {
		ref := r.Rank.Ref(op)
		_, wanted := story.Spans[ref]
		if _, again := seen[ref]; wanted && !again {
			seen[ref] = struct{}{}
			ops = append(ops, *op)
		}
	}
	if kept := s.ranks[r.Rank.Rank]; kept != nil {
		for i := range kept.ops {
			pick(&kept.ops[i])
		}
		for i := range kept.longest {
			pick(&kept.longest[i])
		}
	}
	mark := stepOp(step, r)
	pick(&mark)
	return ops
}

// stepOp is the step of a rank as the report has it, on the rank's own clock.
func stepOp(step int64, r *straggler.RankStep) model.Op {
	shift := int64(r.Offset.Value)
	return model.Op{
		Kind: model.KindStep, Name: "step", Phase: r.Phase, Step: model.Some(step),
		Start: r.Start - shift, End: r.End - shift,
	}
}
