// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/mesh"
)

// watch follows the list of members until ctx ends.
func (n *Node) watch(ctx context.Context) {
	keeper := mesh.NewKeeper(n.cfg.Peers)
	var last mesh.List
	for {
		list, changed, err := keeper.Refresh(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			n.count.listFailures.Add(1)
			n.cfg.Warn(fmt.Errorf("list members, and keep those of before: %w", err))
		case changed || leftOut(list) != leftOut(last):
			n.tell(list)
			last = list
			select {
			case n.update <- list.Members:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-time.After(n.cfg.Refresh):
		case <-ctx.Done():
			return
		}
	}
}

// leftOut is what a list lacks, by reason.
func leftOut(l mesh.List) [3]int { return [3]int{l.Bad, l.Duplicates, l.Over} }

// tell counts and explains what a new list lacks.
func (n *Node) tell(l mesh.List) {
	n.count.listBad.Add(int64(l.Bad))
	n.count.listDuplicates.Add(int64(l.Duplicates))
	n.count.listOver.Add(int64(l.Over))
	for _, err := range l.Problems {
		n.cfg.Warn(err)
	}
}

// links are who is probed by which of our end points. Our own addresses are this
// node's whatever the list calls them (by DNS, each address is a node of its own),
// and take part where the list has forgotten them.
func (n *Node) links(members []mesh.Member) []mesh.Link {
	all := slices.Clone(members)
	for _, e := range n.ends {
		i := slices.IndexFunc(all, func(m mesh.Member) bool { return m.Addr == e.self.Addr })
		if i < 0 {
			e.name = n.cfg.NodeID
			all = append(all, e.self)
			continue
		}
		e.name = all[i].Node
		all[i] = e.self
	}
	slices.SortFunc(all, func(a, b mesh.Member) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), a.Addr.Compare(b.Addr))
	})
	return mesh.Neighbours(all, n.cfg.NodeID, n.cfg.K, n.cfg.Seed)
}
