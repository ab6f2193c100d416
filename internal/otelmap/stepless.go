// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// maxRanksSeen bounds the ranks that are watched for steps: those of the largest
// jobs. Ranks beyond are not told of.
const maxRanksSeen = 1 << 17

// stepSeen is what was seen of one rank.
type stepSeen struct {
	rank int64
	ops  int64
	step bool // of some operation
}

// seen notes whether the rank's operations have steps.
func (p *Problems) seen(key rankKey, ops []model.Op) {
	if p == nil {
		return
	}
	s := p.ranks[key]
	if s == nil {
		if len(p.seenOrder) >= maxRanksSeen {
			return
		}
		if p.ranks == nil {
			p.ranks = map[rankKey]*stepSeen{}
		}
		s = &stepSeen{rank: key.rank}
		p.ranks[key] = s
		p.seenOrder = append(p.seenOrder, s)
	}
	s.ops += int64(len(ops))
	for i := 0; i < len(ops) && !s.step; i++ {
		s.step = ops[i].Step.OK
	}
}

// Stepless tells of ranks that take part in no step of all that was read, where
// others do: no analysis that compares steps sees them, and they would vanish in
// silence. It is for the end of the input; a single batch may hold only what lies
// outside of steps.
func (p *Problems) Stepless() []model.Problem {
	var out []model.Problem
	for _, s := range p.seenOrder {
		if !s.step {
			what := fmt.Sprintf("compare rank %d: got no %s on any of %d operations; want it on those in a step", s.rank, semconv.Step, s.ops)
			out = append(out, model.Problem{Offset: -1, Rank: &s.rank, What: what})
		}
	}
	if len(out) == len(p.seenOrder) {
		return nil
	}
	return out
}
