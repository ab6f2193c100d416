// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

const (
	// keptCrossings is how many crossed trips a path keeps for a window; all are
	// counted.
	keptCrossings = 64
	// crossedShare: where more than one in crossedShare trips is crossed, and fewestCrossed
	// at least, the peer's stamps or ours are wrong, and the others should know. A step
	// or a stamp that went wrong once crosses fewer.
	crossedShare  = 10
	fewestCrossed = 3
)

// contradictions are the crossed trips of a clock.
type contradictions struct {
	n    int64
	kept []trip
}

func (c *contradictions) add(t trip) {
	c.n++
	if len(c.kept) < keptCrossings {
		c.kept = append(c.kept, t)
	}
}

// record weighs crossed trips against all, of this window and, by half each, of
// those before: there may be one trip a window.
type record struct{ all, crossed int64 }

func (r *record) add(all, crossed int64) {
	r.all, r.crossed = r.all/2+all, r.crossed/2+crossed
}

func (r *record) wrong() bool {
	return r.crossed >= fewestCrossed && r.crossed*crossedShare > r.all
}

// edge tells of the contradiction with bounds that cross: those of the trip with the
// median of the excess. Where that was told again, and its bounds do not cross, the edge
// says that it contradicts others. No solution takes it, but the graph remembers who was
// part of it.
func (c *contradictions) edge(at clockPair) model.ClockEdge {
	slices.SortFunc(c.kept, func(a, b trip) int { return cmp.Compare(a.excess(), b.excess()) })
	t := stats.MedianHigh(c.kept)
	lower, upper := t.bounds()
	if lower <= upper {
		return model.ClockEdge{
			Src: at.own, Dst: at.peer, At: t.out.ours, Span: max(0, t.back.ours-t.out.ours),
			Lower: lower, Upper: upper, Offset: lower + (upper-lower)/2, Contradicted: 1,
			Samples: c.n, Source: model.EdgeProbe, Stamps: stampName(min(t.out.kind, t.back.kind)),
		}
	}
	return model.ClockEdge{
		Src: at.own, Dst: at.peer, At: t.out.ours, Span: max(0, t.back.ours-t.out.ours),
		Lower: lower, Upper: upper, Offset: upper + (lower-upper)/2,
		Samples: c.n, Source: model.EdgeProbe, Stamps: stampName(min(t.out.kind, t.back.kind)),
	}
}

// bounds are what the trip alone says of the offset.
func (t *trip) bounds() (lower, upper int64) {
	return t.back.peer - t.back.ours - t.back.width, t.out.peer - t.out.ours + t.out.width
}

func (t *trip) excess() int64 {
	lower, upper := t.bounds()
	return lower - upper
}
