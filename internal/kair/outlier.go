// SPDX-License-Identifier: Apache-2.0

package kair

import (
	"cmp"
	"math"
	"slices"
)

// node is an event of a step: of which worker, and which of its events.
type node struct{ worker, event int32 }

// moments are the mean and the summed squared deviations of the starts and durations
// of one operation over the workers.
type moments struct {
	n               int
	start, start2   float64
	length, length2 float64
	next            uint32 // statistics of what follows it, as seen last
	id              opID
}

// opID is an operation that different workers have in common.
type opID struct {
	role     uint64
	key, seq uint32
	kind     Kind
}

func (m *moments) add(start, length float64) {
	m.n++
	d := start - m.start
	m.start += d / float64(m.n)
	m.start2 += d * (start - m.start)
	d = length - m.length
	m.length += d / float64(m.n)
	m.length2 += d * (length - m.length)
}

// least is the least deviation that counts, ns: the resolution of stamps.
const least = 1000

func (m *moments) deviations() (start, length float64) {
	n := float64(m.n)
	return max(least, math.Sqrt(m.start2/n)), max(least, math.Sqrt(m.length2/n))
}

// outlier is an event that began late or took long.
type outlier struct {
	at     node
	z      float64 // the larger of both
	excess float64 // ns over the mean, the larger of what stands out
	long   bool    // it took long, and did not only begin late
}

// minPeers is how many workers an operation must have for a deviation to be one.
const minPeers = 3

// outliers returns the events of the step whose z-score is above the limit.
func (s *step) outliers() []outlier {
	stats, of := s.moments()
	starts, lengths := make([]float64, len(stats)), make([]float64, len(stats))
	for i := range stats {
		starts[i], lengths[i] = stats[i].deviations()
	}
	var out []outlier
	for w := range s.workers {
		for e := range s.workers[w].Events {
			id := of[w][e]
			m, ev := &stats[id], &s.workers[w].Events[e]
			if m.n < minPeers {
				continue
			}
			late, long := float64(ev.Start-s.from)-m.start, float64(ev.End-ev.Start)-m.length
			zLate, zLong := late/starts[id], long/lengths[id]
			if zLate <= s.cfg.Sigmas && zLong <= s.cfg.Sigmas {
				continue
			}
			o := outlier{at: node{int32(w), int32(e)}, z: max(zLate, zLong), long: zLong > s.cfg.Sigmas}
			if zLate > s.cfg.Sigmas {
				o.excess = late
			}
			if o.long {
				o.excess = max(o.excess, long)
			}
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b outlier) int {
		return cmp.Or(cmp.Compare(b.excess, a.excess), cmp.Compare(a.at.worker, b.at.worker), cmp.Compare(a.at.event, b.at.event))
	})
	return out
}

// moments gathers the statistics of each operation over the workers, and returns with
// them which each event belongs to. Workers run much the same program: what followed
// an operation at the worker before is tried first.
func (s *step) moments() ([]moments, [][]uint32) {
	stats := make([]moments, 1, 1024) // the first is nobody's, and leads to a worker's first
	ids := map[opID]uint32{}
	of := make([][]uint32, len(s.workers))
	for w := range s.workers {
		worker := &s.workers[w]
		of[w] = make([]uint32, len(worker.Events))
		role, last := worker.Role, uint32(0)
		for e := range worker.Events {
			ev := &worker.Events[e]
			id := opID{role, ev.Key, ev.Seq, ev.Kind}
			at := stats[last].next
			if at == 0 || stats[at].id != id {
				at = ids[id]
			}
			if at == 0 {
				at = uint32(len(stats))
				ids[id] = at
				stats = append(stats, moments{id: id})
			}
			stats[last].next, last = at, at
			of[w][e] = at
			stats[at].add(float64(ev.Start-s.from), float64(ev.End-ev.Start))
		}
	}
	return stats, of
}
