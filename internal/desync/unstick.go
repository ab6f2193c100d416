// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// unstick lets hosts that stand still wait for an operation that all have joined and nobody gets out of,
// where they have it open: it is reason enough that they have not gone on as far as others.
func (w *world) unstick(found, open []root) []root {
	freed := map[int32]bool{}
	for i := range found {
		f := &found[i]
		if f.class != model.ClassStalledOp || f.node.message || len(f.node.done) > 0 {
			continue
		}
		for _, r := range holdersOf(f.node, true) {
			freed[r] = freed[r] || w.stuck[r] && !w.ranks[r].held()
		}
	}
	for r, is := range freed {
		if !is {
			continue
		}
		w.stuck[r] = false
		for _, n := range w.heads[r] {
			w.edge(r, w.vertex(n))
		}
		w.edges[r] = compact(w.edges[r])
	}
	return slices.DeleteFunc(open, func(o root) bool {
		return len(o.vertices) == 1 && w.isRank(o.vertices[0]) && freed[o.vertices[0]]
	})
}
