// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// tellEvery is how often it is told of an operation that stays open.
const tellEvery = 30 * time.Second

// maxTold bounds the operations that are remembered.
const maxTold = 1 << 16

// Opens remembers which open operations were told of: of one that is open in several dumps
// of a rank it is told now and then, and when it has ended. The zero value is ready.
type Opens struct {
	// Forgotten counts the operations that were forgotten while open, for want of room, those first that
	// were told of longest ago: they are told of again as new, and not when they end.
	Forgotten int64

	told *bounded.Map[openKey, toldOpen] // nil: none was
}

// remembered are the operations that were told of, by when.
func (o *Opens) remembered() *bounded.Map[openKey, toldOpen] {
	if o.told == nil {
		o.told = bounded.NewMap(bounded.MapConfig[openKey, toldOpen]{
			Entries: maxTold, Order: bounded.ByUse,
			Evicted: func(openKey, toldOpen, bounded.Reason) { o.Forgotten++ },
		})
	}
	return o.told
}

type openKey struct {
	job  string
	rank int64
	comm string
	kind model.OpKind
	name string
	seq  int64
}

type toldOpen struct {
	at time.Time
	op model.OpenOp
}

// Tell returns what is to be told now of a rank's open operations, in the order of open, and
// of those that have ended.
func (o *Opens) Tell(now time.Time, s *model.RankState, open []model.OpenOp) []model.OpenOp {
	var out []model.OpenOp
	for _, op := range open {
		key := openKey{s.Rank.JobID, s.Rank.Rank, op.Op.Comm.ID, op.Op.Kind, op.Op.Name, op.Op.Collective.Seq.V}
		was, known := o.remembered().Peek(key)
		switch {
		case known && now.Sub(was.at) < tellEvery:
			continue
		case known:
			op.Status = model.StatusUpdated
		}
		o.told.Set(key, toldOpen{now, op})
		out = append(out, op)
	}
	return append(out, o.ended(now, s)...)
}

// Refused takes back that a rank's operations were told of: the next state of the rank that
// has them tells of them again.
func (o *Opens) Refused(s *model.RankState, ops []model.OpenOp) {
	for _, op := range ops {
		key := openKey{s.Rank.JobID, s.Rank.Rank, op.Op.Comm.ID, op.Op.Kind, op.Op.Name, op.Op.Collective.Seq.V}
		switch op.Status {
		case model.StatusUpdated, model.StatusClosed:
			o.remembered().Set(key, toldOpen{op: op})
		default:
			o.remembered().Delete(key)
		}
	}
}

// ended returns those that were told of and are over, by now at the latest. One that a state does not have may have
// been overwritten: nothing is told of it.
func (o *Opens) ended(now time.Time, s *model.RankState) (out []model.OpenOp) {
	for i := range s.Ops {
		op := &s.Ops[i]
		c := commOf(s, op.Comm)
		if !op.Done || c == nil {
			continue
		}
		key := openKey{s.Rank.JobID, s.Rank.Rank, c.Comm.ID, op.Kind, op.Name, op.Seq}
		was, known := o.remembered().Peek(key)
		if !known || was.op.Op.Start != op.Created {
			continue
		}
		o.told.Delete(key)
		was.op.Time, was.op.Age = now.UnixNano(), seconds(now.UnixNano()-op.Created)
		was.op.Status, was.op.Op.Collective.State = model.StatusClosed, stateCompleted
		out = append(out, was.op)
	}
	return out
}
