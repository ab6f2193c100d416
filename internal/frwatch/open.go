// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// States of operations that are not over.
const (
	stateScheduled = "scheduled"
	stateStarted   = "started"
	stateCompleted = "completed"
)

// Open returns the operations that a rank had open for longer than stall at a time (Unix
// ns), the oldest first, at most limit, and how many more there are.
func Open(s *model.RankState, at int64, stall time.Duration, limit int) (open []model.OpenOp, omitted int64) {
	var inFlight int64
	behind := map[int]int64{}
	for i := len(s.Ops) - 1; i >= 0; i-- {
		op := &s.Ops[i]
		if op.Done {
			continue
		}
		inFlight++
		if op.Created > 0 && at-op.Created >= int64(stall) {
			open = append(open, openOp(s, op, at, behind[op.Comm]))
		}
		behind[op.Comm]++
	}
	slices.SortStableFunc(open, func(a, b model.OpenOp) int { return cmp.Compare(a.Op.Start, b.Op.Start) })
	omitted = int64(max(len(open)-limit, 0))
	open = open[:len(open)-int(omitted)]
	for i := range open {
		open[i].InFlight = inFlight
	}
	return open, omitted
}

func openOp(s *model.RankState, op *model.StateOp, at, behind int64) model.OpenOp {
	state := stateScheduled
	if op.Started {
		state = stateStarted
	}
	o := model.OpenOp{
		Op: opOf(s, op, state), Time: at, Status: model.StatusOpen, Age: float64(at-op.Created) * 1e-9,
		Enqueueing: op.Enqueueing, Behind: behind, Send: op.Send, Receive: op.Receive,
		Silent: s.Silent, Scope: s.Scope, ScopeFor: s.ScopeFor,
	}
	if c := commOf(s, op.Comm); c != nil {
		for _, f := range c.Frontiers {
			if f.Func == "" || f.Func == op.Name {
				o.Enqueued, o.Started, o.Completed = f.Enqueued, f.Started, f.Completed
			}
		}
	}
	return o
}

func commOf(s *model.RankState, place int) *model.CommState {
	if place < 0 || place >= len(s.Comms) {
		return nil
	}
	return &s.Comms[place]
}

// opOf is an operation of a state as one of the model, from when it was enqueued.
func opOf(s *model.RankState, op *model.StateOp, state string) model.Op {
	o := model.Op{
		Kind: op.Kind, Name: op.Name, Start: op.Created, Launch: model.Some(op.Created),
		Collective: model.Collective{Seq: model.Some(op.Seq), Bytes: op.Bytes, Root: op.Root, DType: op.InType, State: state},
		Peer:       op.Peer, PeerLocal: op.PeerLocal, Group: op.Batch,
	}
	if op.Kind == model.KindCollective {
		o.Collective.Name = op.Name
	}
	if c := commOf(s, op.Comm); c != nil {
		o.Comm, o.Collective.SeqScope = c.Comm, c.Scope
	}
	if op.Stack > 0 && op.Stack <= len(s.Stacks) {
		o.Stack = s.Stacks[op.Stack-1]
	}
	return o
}
