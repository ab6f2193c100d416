// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Count is how many nodes run a version.
type Count struct {
	Domain  model.VersionDomain
	Version string
	Nodes   int
}

// Counts sums up what nodes run, as far as it counts now; a node whose units differ is in several.
func (w *Watch) Counts(now time.Time) []Count {
	type key struct {
		place   int
		version string
	}
	nodes := map[key]int{}
	for _, n := range w.nodes {
		for place := range n.sets {
			s := &n.sets[place]
			if !w.live(n, s, now) {
				continue
			}
			for i := range s.entries {
				v := s.entries[i].version
				if !slices.ContainsFunc(s.entries[:i], func(e entry) bool { return e.version == v }) {
					nodes[key{place, v}]++
				}
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(nodes), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.version, b.version))
	})
	out := make([]Count, 0, len(keys))
	for _, k := range keys {
		out = append(out, Count{model.VersionDomains[k.place], k.version, nodes[k]})
	}
	return out
}

// Mixed is how many findings of a domain a job has open.
type Mixed struct {
	Job      string
	Domain   model.VersionDomain
	Findings int
}

// Mixed lists those that have any.
func (w *Watch) Mixed() (list []Mixed) {
	for _, s := range w.spans {
		if n := len(list); n > 0 && list[n-1].Job == s.place.Job && list[n-1].Domain == s.domain() {
			list[n-1].Findings++
			continue
		}
		list = append(list, Mixed{s.place.Job, s.domain(), 1})
	}
	return list
}
