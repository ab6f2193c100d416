// SPDX-License-Identifier: Apache-2.0

package steptrace

import (
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// Trace is the part of a step that is sent to a tracing backend.
type Trace struct {
	Ops     [][]model.Op // by rank, in the order of the report's ranks
	Omitted int64        // spans of the step that were left out
	Limit   int64        // most spans, the root not counted
}

// Take returns the trace of the reported step, and forgets the step's operations.
func (h *Holder) Take(rep *straggler.StepReport, findings []model.Finding) Trace {
	held := h.take(stepKey{rep.Incarnation, rep.Step})
	if held == nil {
		held = &heldStep{}
	}
	selected := Select(rep, findings, held.context(), h.limit)
	out := Trace{Ops: make([][]model.Op, len(rep.Ranks)), Limit: int64(h.limit)}
	taken := 0
	for i := range rep.Ranks {
		out.Ops[i] = held.chosen(rep.Step, &rep.Ranks[i], selected)
		taken += len(out.Ops[i])
	}
	out.Omitted = selected.Omitted + int64(len(selected.Spans)-taken)
	return out
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

// chosen returns the rank's operations that belong to the step trace, each once. A
// rank whose step was never marked gets a step from the report, so that the tree
// has no gap.
func (s *heldStep) chosen(step int64, r *straggler.RankStep, selected Selection) []model.Op {
	var ops []model.Op
	seen := map[model.SpanRef]struct{}{}
	pick := func(op *model.Op) {
		ref := r.Rank.Ref(op)
		_, wanted := selected.Spans[ref]
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
