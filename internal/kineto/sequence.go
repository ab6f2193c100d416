// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// ordinal names a sequence that is counted by us, within a step.
type ordinal struct {
	comm, name string
	peer       int64
}

// number gives every communication operation its number in a sequence: the one
// that PyTorch counted per process group, where no two operations share it; else
// an ordinal within the step, in the order of launches.
func (t *Trace) number() {
	comms := t.commEvents()
	t.markShared(comms)
	slices.SortFunc(comms, func(a, b uint32) int {
		x, y := t.ops.at(int(a)), t.ops.at(int(b))
		return cmp.Or(cmp.Compare(x.step, y.step), cmp.Compare(t.enqueued(x), t.enqueued(y)), cmp.Compare(x.ts, y.ts), cmp.Compare(a, b))
	})
	next := map[ordinal]int64{}
	at := int32(-1)
	for _, i := range comms {
		e := t.ops.at(int(i))
		if e.step != at {
			at = e.step
			clear(next)
		}
		if e.flags&flagSeqComm != 0 {
			continue
		}
		k, ok := t.ordinalOf(e)
		if !ok || e.step < 0 {
			e.flags |= flagLost
			continue
		}
		e.val = next[k]
		next[k]++
		e.flags |= flagOrdinal
	}
	t.noteAssumed()
}

func (t *Trace) commEvents() []uint32 {
	var out []uint32
	for i := range t.ops.n {
		if e := t.ops.at(i); e.kind == evComm || e.kind == evGloo {
			out = append(out, uint32(i))
		}
	}
	return out
}

// markShared decides whose Seq is used. Operations of one coalescing group have
// one Seq, which then names none of them. Messages are counted apart.
func (t *Trace) markShared(comms []uint32) {
	order := func(a, b uint32) int {
		x, y := t.ops.at(int(a)), t.ops.at(int(b))
		m, n := &t.metas[x.meta], &t.metas[y.meta]
		return cmp.Or(cmp.Compare(m.pg, n.pg), cmp.Compare(boolInt(m.noSeq), boolInt(n.noSeq)), cmp.Compare(x.val, y.val))
	}
	slices.SortFunc(comms, order)
	for i, c := range comms {
		e := t.ops.at(int(c))
		m := &t.metas[e.meta]
		if e.val < 0 || m.noSeq || m.pg == 0 || m.name == "" {
			continue
		}
		if (i > 0 && order(comms[i-1], c) == 0) || (i+1 < len(comms) && order(c, comms[i+1]) == 0) {
			t.stats.SharedSeq++
			continue
		}
		e.flags |= flagSeqComm
	}
}

// ordinalOf returns the sequence of an operation; false for one of which is not
// known what it is, or with whom.
func (t *Trace) ordinalOf(e *event) (ordinal, bool) {
	name := t.collective(e)
	k := ordinal{comm: t.groupOf(e).comm.ID, name: name, peer: -1}
	switch name {
	case "", model.SendRecv:
		return k, false
	case nameSend, nameRecv:
		peer, _ := t.peerOf(e)
		k.peer = peer.Or(-1)
		return k, peer.OK
	}
	return k, true
}

// peerOf returns the other side's global rank, else its rank in the group.
func (t *Trace) peerOf(e *event) (global, local model.Optional[int64]) {
	m := &t.metas[e.meta]
	switch g := t.groupOf(e); {
	case m.peer >= 0:
		return model.Some(m.peer), local
	case m.local < 0:
		return global, local
	case m.local < int64(len(g.ranks)):
		return model.Some(g.ranks[m.local]), local
	case g.comm.ID == worldID:
		return model.Some(m.local), local
	}
	return global, model.Some(m.local)
}
