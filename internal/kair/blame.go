// SPDX-License-Identifier: Apache-2.0

package kair

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// blamed is what one step blames one rank for.
type blamed struct {
	rank   int64
	weight float64 // ns, what its roots explain
	z      float64 // the largest
	peers  int
	key    uint32 // of the heaviest root
	class  string
}

// blame follows the outliers of a step to their roots, and returns the ranks to which
// at least half of what the most blamed explains leads.
func (s *step) blame(stats *Stats) []blamed {
	outliers := s.outliers()
	if len(outliers) == 0 {
		return nil
	}
	s.late = make(map[node]outlier, len(outliers))
	for _, o := range outliers {
		s.late[o.at] = o
	}
	s.join()
	s.paths = make([]*path, len(s.workers))
	explains := map[node]float64{} // by root, the largest excess that leads there
	walks := 0
	for _, o := range outliers {
		if kind := s.event(o.at).Kind; kind == Host || (s.cfg.ComputeOnly && kind != Compute) {
			continue
		}
		if walks == s.cfg.MaxWalks {
			stats.WalksLeftOut++
			continue
		}
		walks++
		root := s.root(o.at)
		if _, class := s.verdict(root); s.cfg.ComputeOnly && class == model.ClassLink {
			continue
		}
		explains[root] = max(explains[root], o.excess)
	}
	return s.heaviest(explains)
}

func (s *step) heaviest(explains map[node]float64) []blamed {
	roots := make([]node, 0, len(explains))
	for n := range explains {
		roots = append(roots, n)
	}
	slices.SortFunc(roots, func(a, b node) int {
		return cmp.Or(cmp.Compare(explains[b], explains[a]), cmp.Compare(a.worker, b.worker), cmp.Compare(a.event, b.event))
	})
	at := map[int32]int{}
	var out []blamed
	for _, n := range roots {
		i, known := at[n.worker]
		if !known {
			i = len(out)
			at[n.worker] = i
			key, class := s.verdict(n)
			out = append(out, blamed{rank: s.workers[n.worker].Rank, key: key, class: class})
		}
		out[i].weight += explains[n]
		out[i].z = max(out[i].z, s.late[n].z)
		out[i].peers = len(s.workers) - 1
	}
	slices.SortStableFunc(out, func(a, b blamed) int { return cmp.Compare(b.weight, a.weight) })
	for i := range out {
		if out[i].weight < out[0].weight/2 {
			return out[:i]
		}
	}
	return out
}

// verdict names the operation and the class of a root.
func (s *step) verdict(n node) (key uint32, class string) {
	ev, o := s.event(n), s.late[n]
	switch {
	case ev.Kind == Host:
		return ev.Key, model.ClassHost
	case !o.long:
		if scope, ok := s.launcher(n); ok {
			return s.workers[n.worker].Events[scope].Key, model.ClassHost
		}
		return ev.Key, model.ClassHost
	case ev.Kind == Comm || ev.Kind == Receive:
		return ev.Key, model.ClassLink
	}
	return ev.Key, model.ClassCompute
}
