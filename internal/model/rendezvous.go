// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/binary"
	"hash/fnv"
	"strconv"
)

// RendezvousKey joins the operations of different ranks that are one
// collective, or the two sides of one message. It is comparable; Bytes is its
// wire form. Matching, sampling and partitioning all use this one key.
type RendezvousKey struct {
	Incarnation string
	Comm        string
	Scope       SeqScope
	// Name is set where the sequence was counted per function.
	Name string
	// Step is set where the sequence was counted within a step.
	Step Optional[int64]
	Seq  int64
	// Src and Dst are set for point-to-point operations.
	Src, Dst Optional[int64]
}

// Rendezvous returns the key of an operation, and false where the operation can
// not be joined: it is local, has no number, or a number that nobody shares.
func Rendezvous(r *Rank, op *Op) (RendezvousKey, bool) {
	c := &op.Collective
	if !op.Kind.IsComm() || !c.Seq.OK || c.SeqScope == ScopeProcess || c.SeqScope == "" {
		return RendezvousKey{}, false
	}
	k := RendezvousKey{Incarnation: r.Incarnation, Comm: op.Comm.ID, Scope: c.SeqScope, Seq: c.Seq.V}
	if c.SeqScope == ScopeOrdinal {
		k.Step = op.Step
	}
	if op.Kind == KindCollective {
		if c.SeqScope != ScopeComm {
			k.Name = c.Name
		}
		return k, true
	}
	return pointToPoint(k, r, op)
}

func pointToPoint(k RendezvousKey, r *Rank, op *Op) (RendezvousKey, bool) {
	if !op.Peer.OK {
		return RendezvousKey{}, false
	}
	self, peer := Some(r.Rank), op.Peer
	if op.Kind == KindSend {
		k.Src, k.Dst = self, peer
	} else {
		k.Src, k.Dst = peer, self
	}
	return k, true
}

// Bytes returns the key's wire form: its parts in the order of the struct, each
// behind a 0x00, absent parts empty.
func (k RendezvousKey) Bytes() []byte { return k.Append(make([]byte, 0, 96)) }

// Append appends the wire form to b.
func (k RendezvousKey) Append(b []byte) []byte {
	for _, s := range []string{k.Incarnation, k.Comm, string(k.Scope), k.Name} {
		b = append(append(b, s...), separator)
	}
	for _, o := range []Optional[int64]{k.Step, Some(k.Seq), k.Src, k.Dst} {
		if o.OK {
			b = strconv.AppendInt(b, o.V, 10)
		}
		b = append(b, separator)
	}
	return b
}

// Hash returns a 64-bit hash of Bytes for sampling: all ranks keep or drop the
// same rendezvous.
func (k RendezvousKey) Hash() uint64 {
	h := fnv.New64a()
	_, _ = h.Write(k.Bytes())
	sum := h.Sum(nil)
	return binary.BigEndian.Uint64(sum)
}
