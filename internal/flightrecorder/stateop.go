// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/torchname"
)

// addOps keeps what is open, and the last few of each communicator that are over.
func (t *stater) addOps() {
	nth := t.countMessages()
	keep := make([]bool, len(t.d.Entries))
	open := 0
	for i := len(keep) - 1; i >= 0; i-- {
		if t.role(i) != plain {
			continue
		}
		if !t.done(i) {
			keep[i] = true
			open++
		} else {
			keep[i] = t.comm(&t.d.Entries[i]).keeps(t.info(&t.d.Entries[i]))
		}
	}
	open = 0
	for i := range keep {
		switch done := keep[i] && t.done(i); {
		case !keep[i]:
		case !done && open >= t.o.Open:
			t.s.Dropped++
		default:
			if !done {
				open++
			}
			op := t.op(i, done)
			if i < len(nth) && nth[i] >= 0 {
				op.Nth = model.Some(int64(nth[i]))
			}
			t.s.Ops = append(t.s.Ops, op)
		}
	}
}

// maxRooted bounds the operations that are over and are shown besides: a root is seldom further
// ahead of the others.
const maxRooted = 64

// keeps reports whether an operation that is over is shown, from the newest on: the last few, and
// all behind the last one that its members leave together. Until there, others may have open what
// this rank is through.
func (c *comm) keeps(n *nameInfo) bool {
	c.together = c.together || n.kind == model.KindCollective && !rooted[n.name]
	switch {
	case c.doneLeft > 0:
		c.doneLeft--
		return true
	case c.together || n.kind != model.KindCollective || c.rootedKept >= maxRooted:
		return false
	}
	c.rootedKept++
	return true
}

// rooted are the operations that some members leave before all have come.
var rooted = map[string]bool{model.Broadcast: true, model.Reduce: true, "gather": true, "scatter": true}

func (t *stater) op(i int, done bool) model.StateOp {
	e := &t.d.Entries[i]
	n := t.info(e)
	in, out := t.d.Sizes(e)
	inType, outType := t.d.Types(e)
	op := model.StateOp{
		Kind: n.kind, Name: n.name, Recorded: clip(t.d.Name(e)), Comm: t.comm(e).place, Seq: e.Coll, Batch: t.batchOf(i),
		In: clip(in.Text), Out: clip(out.Text), InElems: elems(in), OutElems: elems(out),
		InType: typeNames(inType), OutType: typeNames(outType),
		Created: e.Created, Done: done, Started: e.State == Started || e.StartSeen > 0, Stack: t.stack(e),
	}
	op.Thread, _ = t.d.Thread(e)
	op.Thread = clip(op.Thread)
	if e.Timeout > 0 {
		op.Timeout = model.Some(float64(e.Timeout) / 1e3)
	}
	if n.kind != model.KindCollective {
		t.message(&op, e, n)
	}
	return op
}

// message sets what only messages have.
func (t *stater) message(op *model.StateOp, e *Entry, n *nameInfo) {
	if e.P2P > 0 || e.IsP2P {
		op.Seq = e.P2P
	}
	members := t.comm(e).state.Members
	switch {
	case n.peer < 0:
	case n.peer < int64(len(members)):
		op.Peer = model.Some(members[n.peer])
	default:
		op.PeerLocal = model.Some(n.peer)
	}
}

// countMessages numbers the messages between two ranks in each direction, where none is
// missing; nil where some may be. What has no number is -1.
func (t *stater) countMessages() []int32 {
	if t.d.Partial != "" || t.s.OnlyActive || t.d.wrapped() {
		return nil
	}
	type channel struct {
		comm int
		kind model.OpKind
		peer int64
	}
	var nth []int32
	count := map[channel]int32{}
	for i := range t.d.Entries {
		e := &t.d.Entries[i]
		n := t.info(e)
		if n.kind == model.KindCollective || n.peer < 0 || t.role(i) != plain {
			continue
		}
		if nth == nil {
			nth = make([]int32, len(t.d.Entries))
			for j := range nth {
				nth[j] = -1
			}
		}
		c := channel{t.comm(e).place, n.kind, n.peer}
		nth[i] = count[c]
		count[c]++
	}
	return nth
}

func elems(s Shape) model.Optional[int64] {
	if s.Text == "" || s.Elems < 0 {
		return model.Optional[int64]{}
	}
	return model.Some(s.Elems)
}

// typeNames gives element types the model's names, as far as it has them.
func typeNames(s string) string {
	if d, ok := torchname.DTypeOf(s); ok {
		return d.Name
	}
	if !strings.Contains(s, ", ") {
		return clip(s)
	}
	parts := strings.Split(s, ", ")
	for i, p := range parts {
		if d, ok := torchname.DTypeOf(p); ok {
			parts[i] = d.Name
		}
	}
	return clip(strings.Join(parts, ", "))
}

// maxText bounds a text of a state: the sizes of some ten tensors. Of what is longer, the
// rest is told by its hash, so that what differs is seen to differ.
const maxText = 256

func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return strings.ToValidUTF8(s[:maxText], "") + "… (" + strconv.FormatUint(h.Sum64(), 16) + ")"
}

// stack returns the place of an entry's call stack among those of the state, + 1.
func (t *stater) stack(e *Entry) int {
	if e.stack == 0 {
		return 0
	}
	if n := t.stacks[e.stack]; n > 0 {
		return n
	}
	frames := t.d.Frames(e)
	if len(t.s.Stacks) >= t.o.Stacks || len(frames) == 0 {
		return 0
	}
	if t.stacks == nil {
		t.stacks = map[int32]int{}
	}
	t.s.Stacks = append(t.s.Stacks, stackText(frames))
	t.stacks[e.stack] = len(t.s.Stacks)
	return len(t.s.Stacks)
}
