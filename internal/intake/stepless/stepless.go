// SPDX-License-Identifier: Apache-2.0

// Package stepless finds ranks whose operations belong to no step.
package stepless

import (
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// maxRanksSeen bounds the ranks that are watched for steps: those of the largest
// jobs. Ranks beyond are not reported.
const maxRanksSeen = 1 << 17

// Ranks are the ranks of a job, with whether they take part in steps, over many batches of operations. The
// zero value is ready.
type Ranks struct {
	ranks map[rankKey]*stepSeen
	order []*stepSeen
}

type rankKey struct {
	job, incarnation string
	rank             int64
}

// stepSeen is what was seen of one rank.
type stepSeen struct {
	rank int64
	ops  int64
	step bool // of some operation
}

// Add notes whether the operations of the ranks have steps.
func (r *Ranks) Add(ranks []model.RankOps) {
	for i := range ranks {
		of := &ranks[i].Rank
		r.add(rankKey{of.JobID, of.Incarnation, of.Rank}, ranks[i].Ops)
	}
}

func (r *Ranks) add(key rankKey, ops []model.Op) {
	s := r.ranks[key]
	if s == nil {
		if len(r.order) >= maxRanksSeen {
			return
		}
		if r.ranks == nil {
			r.ranks = map[rankKey]*stepSeen{}
		}
		s = &stepSeen{rank: key.rank}
		r.ranks[key] = s
		r.order = append(r.order, s)
	}
	s.ops += int64(len(ops))
	for i := 0; i < len(ops) && !s.step; i++ {
		s.step = ops[i].Step.OK
	}
}

// Problems returns one problem for each rank without a step, where other ranks have steps: an analysis that
// compares steps does not see such a rank. It is for the end of the input; a single batch may hold only
// operations outside of steps.
func (r *Ranks) Problems() []model.Problem {
	var out []model.Problem
	for _, s := range r.order {
		if !s.step {
			what := fmt.Sprintf("compare rank %d: got no %s on any of %d operations; want it on those in a step", s.rank, semconv.Step, s.ops)
			out = append(out, model.Problem{Offset: -1, Rank: &s.rank, What: what})
		}
	}
	if len(out) == len(r.order) {
		return nil
	}
	return out
}
