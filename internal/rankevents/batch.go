// SPDX-License-Identifier: Apache-2.0

package rankevents

import "github.com/lockstep-otel/lockstep/internal/model"

// Batch is what a rank hands on: operations in order, each step's own behind
// those of the step.
type Batch struct {
	Rank      model.Rank
	Ops       []model.Op
	Summaries []Summary // of the operations of kind step, in their order
	Open      []model.OpenOp
	States    []model.RankState
	// Members are states that say which communicators the rank is a member of, and nothing else.
	Members []model.RankState
	Resumes []model.Resume

	Fingerprints []model.Fingerprint
	Missing      []model.MissingSteps
}

func (b *Batch) empty() bool {
	return len(b.Ops)+len(b.Open)+len(b.States)+len(b.Members)+len(b.Resumes)+len(b.Fingerprints)+len(b.Missing) == 0
}

// Emit takes a batch; it is valid until Emit returns.
type Emit func(*Batch)

func (r *Rank) flush() {
	if r.batch.empty() {
		return
	}
	r.batch.Rank = r.Identity()
	r.stats.Emitted += int64(len(r.batch.Ops))
	r.emit(&r.batch)
	r.batch.Ops, r.batch.Summaries, r.batch.Open = r.batch.Ops[:0], r.batch.Summaries[:0], r.batch.Open[:0]
	r.batch.States = r.batch.States[:0]
	r.batch.Members, r.batch.Resumes = r.batch.Members[:0], r.batch.Resumes[:0]
	r.batch.Fingerprints, r.batch.Missing = r.batch.Fingerprints[:0], r.batch.Missing[:0]
}

// next returns room for one operation more in the batch; while records are replayed, room
// that is not handed on.
func (r *Rank) next() *model.Op {
	if r.silent {
		r.unsent = model.Op{}
		return &r.unsent
	}
	if len(r.batch.Ops) >= r.node.cfg.BatchOps {
		r.flush()
	}
	if len(r.batch.Ops) < cap(r.batch.Ops) {
		r.batch.Ops = r.batch.Ops[:len(r.batch.Ops)+1]
		op := &r.batch.Ops[len(r.batch.Ops)-1]
		*op = model.Op{}
		return op
	}
	r.batch.Ops = append(r.batch.Ops, model.Op{})
	return &r.batch.Ops[len(r.batch.Ops)-1]
}
