// SPDX-License-Identifier: Apache-2.0

package kair

import (
	"hash/fnv"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// Kind is what an event is, as far as it matters here.
type Kind uint8

// Kinds of events.
const (
	Compute Kind = iota
	Copy
	Comm
	Receive // a side of a message that waits for the other
	Host    // an operation or scope of the host
)

// Event is an operation of a worker, reduced to what the statistics need. Times are
// ns on one clock of all workers.
type Event struct {
	Start, End int64
	Launch     int64 // 0 where unknown
	Lane       int64
	Meet       uint64 // equal for operations that met; 0 for none
	Key        uint32
	Seq        uint32
	Kind       Kind
}

// Worker is one rank's share of a step.
type Worker struct {
	Rank   int64
	Role   uint64 // equal for workers that run the same program
	Events []Event
}

// KindOf returns the kind of an operation; false where it is no event.
func KindOf(k model.OpKind) (Kind, bool) {
	switch k {
	case model.KindCompute:
		return Compute, true
	case model.KindCopy:
		return Copy, true
	case model.KindCollective, model.KindSend:
		return Comm, true
	case model.KindRecv:
		return Receive, true
	case model.KindHost, model.KindScope:
		return Host, true
	}
	return 0, false
}

// MeetOf returns what operations that met have in common; 0 where that is not known.
func MeetOf(rank *model.Rank, op *model.Op) uint64 {
	key, ok := model.Rendezvous(rank, op)
	if !ok {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(op.Comm.Digest))
	return max(1, key.Hash()^h.Sum64())
}

// names numbers operation keys; number 0 is that of all for which there was no room.
type names struct {
	ids  map[string]uint32
	list []string
	most int
}

func newNames(most int) *names {
	return &names{ids: map[string]uint32{model.OpOther: 0}, list: []string{model.OpOther}, most: most}
}

func (n *names) id(s string, overflowed *int64) uint32 {
	s = cut.Bytes(s, cut.MaxName)
	if i, ok := n.ids[s]; ok {
		return i
	}
	if len(n.list) >= n.most {
		*overflowed++
		return 0
	}
	i := uint32(len(n.list))
	n.ids[s] = i
	n.list = append(n.list, s)
	return i
}

func (n *names) name(i uint32) string { return n.list[i] }
