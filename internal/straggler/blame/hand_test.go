// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"math"
	"time"
)

const us, ms = int64(time.Microsecond), int64(time.Millisecond)

// Places of hand-made steps.
const (
	gemm Place = iota + 1
	norm
	reduce
	message
	loading
)

// Lanes of hand-made steps.
const (
	stream     = int64(7)
	commStream = int64(9)
)

// hand is a step made by hand, times in ms.
type hand struct {
	Step
	seqs map[[2]int]uint32
}

func newHand(ranks int, length float64) *hand {
	h := &hand{seqs: map[[2]int]uint32{}}
	for r := range ranks {
		h.Ranks = append(h.Ranks, Rank{Rank: int64(r), Stage: -1, Start: begin, End: at(length)})
	}
	return h
}

// begin is when hand-made steps begin.
const begin = int64(1_700_000_000_000_000_000)

// at returns an instant of a step.
func at(msec float64) int64 { return begin + span(msec) }

func span(msec float64) int64 { return int64(math.Round(msec * float64(ms))) }

// op adds an operation that was launched long before, and returns it.
func (h *hand) op(rank int, kind Kind, place Place, start, end float64) *Op {
	r := &h.Ranks[rank]
	lane := stream
	if kind == Comm {
		lane = commStream
	}
	k := [2]int{rank, int(place)}
	r.Ops = append(r.Ops, Op{Start: at(start), End: at(end), Lane: lane, Place: place, Seq: h.seqs[k], Micro: -1, Kind: kind, Launch: r.Start + 1})
	h.seqs[k]++
	return &r.Ops[len(r.Ops)-1]
}

// meet joins the latest operations of ranks.
func (h *hand) meet(rule Rule, ranks ...int) *Meeting {
	m := Meeting{Rule: rule, Class: uint64(rule)}
	for _, r := range ranks {
		m.Parties = append(m.Parties, Party{int32(r), int32(len(h.Ranks[r].Ops) - 1)})
	}
	h.Meetings = append(h.Meetings, m)
	return &h.Meetings[len(h.Meetings)-1]
}

func (h *hand) build() *Graph { return Build(&h.Step, Options{}) }

// seconds sums the path's time by rank and kind.
func seconds(w Walk, rank int64, kind Kind) (sum float64) {
	for i := range w.Path {
		if s := &w.Path[i]; s.Rank == rank && s.Kind == kind {
			sum += s.Seconds()
		}
	}
	return sum
}
