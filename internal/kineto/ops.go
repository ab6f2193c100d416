// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// stepKey is the comparison key of every step.
const stepKey = "step"

// sortOps orders the operations by step, then by start.
func (t *Trace) sortOps() {
	t.order = make([]uint32, 0, t.ops.n)
	for i := range t.ops.n {
		if t.ops.at(i).kind != evStep {
			t.order = append(t.order, uint32(i))
		}
	}
	number := func(e *event) int64 {
		if e.step < 0 {
			return -1
		}
		return t.steps[e.step].number
	}
	slices.SortFunc(t.order, func(a, b uint32) int {
		x, y := t.ops.at(int(a)), t.ops.at(int(b))
		return cmp.Or(cmp.Compare(number(x), number(y)), cmp.Compare(x.ts, y.ts), cmp.Compare(y.dur, x.dur), cmp.Compare(a, b))
	})
}

// Ops yields the operations: first those outside every step, then step after
// step, each by start, and at the end of each step the step itself.
func (t *Trace) Ops() iter.Seq[model.Op] {
	return func(yield func(model.Op) bool) {
		steps := slices.Clone(t.steps)
		slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.number, b.number) })
		rest := t.order
		rest = t.yieldStep(rest, nil, yield)
		for i := range steps {
			if rest == nil {
				return
			}
			rest = t.yieldStep(rest, &steps[i], yield)
		}
	}
}

// yieldStep yields the operations of one step (nil: of none) from the front of
// order, then the step, and returns the rest; nil once the consumer has enough.
func (t *Trace) yieldStep(order []uint32, s *step, yield func(model.Op) bool) []uint32 {
	seen := map[string]int64{stepKey: 1} // the step's own operation is the first
	before := len(order)
	for len(order) > 0 {
		e := t.ops.at(int(order[0]))
		if (e.step < 0) != (s == nil) || (s != nil && t.steps[e.step].number != s.number) {
			break
		}
		op := t.op(e)
		key := op.ComparisonKey()
		op.Seq = seen[key]
		seen[key]++
		if !yield(op) {
			return nil
		}
		order = order[1:]
	}
	if s != nil && !yield(t.stepOp(s, int64(before-len(order)))) {
		return nil
	}
	return order
}

func (t *Trace) stepOp(s *step, ops int64) model.Op {
	op := model.Op{
		Kind: model.KindStep, Name: s.name, Key: stepKey, Step: model.Some(s.number),
		Start: t.base + s.start, End: t.base + s.last, StepOps: model.Some(ops),
	}
	if s.tid != 0 {
		op.ThreadID = model.Some(s.tid)
	}
	if op.Key == op.Name {
		op.Key = ""
	}
	return op
}

// op makes the operation of an event.
func (t *Trace) op(e *event) model.Op {
	n := &t.names[e.name]
	op := model.Op{Kind: t.opKind(e), Name: n.text, Key: n.key, Start: t.base + e.ts, End: t.base + e.end()}
	if e.step >= 0 {
		op.Step = model.Some(t.steps[e.step].number)
	}
	t.where(&op, e)
	switch {
	case op.Kind.IsComm():
		t.communication(&op, e)
	case op.Kind == model.KindCopy && e.val >= 0:
		op.WorkBytes = model.Some(e.val)
	}
	return op
}

// where fills in stream or thread, and the launch.
func (t *Trace) where(op *model.Op, e *event) {
	if e.flags&flagHost != 0 || e.kind == evScope || e.kind == evGloo {
		op.ThreadID = model.Some(e.tid)
	} else {
		op.Stream = model.Some(e.tid)
	}
	if e.corr != 0 {
		op.Correlation = model.Some(int64(e.corr))
	}
	if e.grid != 0 {
		op.WorkGrid = strings.Trim(strings.ReplaceAll(t.texts[e.grid], " ", ""), "[]")
	}
	if e.launch != 0 {
		l := t.launches.at(int(e.launch - 1))
		op.Launch = model.Some(t.base + l.ts)
		op.GraphCaptured = l.graph
	}
}

func (t *Trace) communication(op *model.Op, e *event) {
	m := &t.metas[e.meta]
	g := t.groupOf(e)
	op.Comm = g.comm
	c := &op.Collective
	c.DType, c.Algo, c.Proto = m.dtype, m.algo, m.proto
	c.Bytes, c.Root = known(m.bytes), known(m.root)
	switch {
	case e.flags&flagSeqComm != 0:
		c.Seq, c.SeqScope = model.Some(e.val), model.ScopeComm
	case e.flags&flagOrdinal != 0:
		c.Seq, c.SeqScope = model.Some(e.val), model.ScopeOrdinal
	}
	if op.Kind == model.KindCollective {
		c.Name = m.name
		op.Key = m.name
	} else {
		op.Key = m.name
		op.Peer, op.PeerLocal = t.peerOf(e)
	}
	if op.Key == op.Name {
		op.Key = ""
	}
}

func known(n int64) model.Optional[int64] {
	if n < 0 {
		return model.Optional[int64]{}
	}
	return model.Some(n)
}
