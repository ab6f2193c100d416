// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"cmp"
	"math/bits"
	"slices"
)

// DefaultDegree is how many others each end point probes. Errors of a solution
// over the graph go with 1/sqrt of it.
const (
	DefaultDegree = 10
	maxDegree     = 64
)

// Link is a pair of end points of which the first probes the second.
type Link struct{ Local, Peer Member }

// Neighbours returns the links of a node: for each of its end points, those of
// other nodes that it probes. Members must be sorted, as sources return them. An
// odd k is rounded up; at most 64 count.
//
// The graph is a union of k/2 Hamiltonian cycles, so it is connected, and
// k-regular where no two of them share a link. Each cycle orders the end points
// by a hash of their addresses, so that one who joins comes between two others of
// each cycle and moves nobody else.
//
// A link that may not be (both ends on one node, or already in an earlier cycle)
// is exchanged: of the cycle ... u v ... x y ... with u-v bad, turning v...x
// round gives u-x and v-y instead, and still a cycle. At most s-1 end points are
// forbidden to u for being on its node, where s is the most that a node has, and
// at most k-2 for being linked with it; as many to v. So of the n-3 places to turn
// at, at most 2(s+k-3) are no good, and with n > 2(s+k)-3 there is always one: then
// the graph is k-regular and without links inside nodes. With fewer end points an
// exchange may not be found; then each probes all of other nodes, fewer than
// 2(s+k)-3.
func Neighbours(members []Member, self string, k int, seed uint64) []Link {
	g := newGraph(members, k, seed)
	var links []Link
	for i, m := range members {
		if m.Node == self {
			for _, j := range g.sorted(i) {
				links = append(links, Link{m, members[j]})
			}
		}
	}
	return links
}

type graph struct {
	members []Member
	node    []int32 // number of the node of each member
	hash    []uint64
	links   [][]int32
}

func newGraph(members []Member, k int, seed uint64) *graph {
	k = min(max(2, k+k%2), maxDegree)
	g := scatter(members)
	if len(members) <= k+1 || !g.build(k/2, seed) {
		g.complete()
	}
	return g
}

// scatter hashes the end points.
func scatter(members []Member) *graph {
	n := len(members)
	g := &graph{members: members, node: make([]int32, n), hash: make([]uint64, n), links: make([][]int32, n)}
	for i, m := range members {
		if i > 0 {
			g.node[i] = g.node[i-1]
			if m.Node != members[i-1].Node {
				g.node[i]++
			}
		}
		a := m.Addr.Addr().As16()
		h := uint64(m.Addr.Port())
		for _, b := range a {
			h = mix(h + uint64(b))
		}
		g.hash[i] = h
	}
	return g
}

// mix scatters a word over all of its bits (the finisher of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// build adds the cycles; false where one of them needs a link that may not be.
func (g *graph) build(cycles int, seed uint64) bool {
	order := make([]int32, len(g.members))
	keys := make([]uint64, len(g.members))
	for c := range cycles {
		salt := mix(seed ^ bits.Reverse64(uint64(c+1)))
		for i := range order {
			order[i], keys[i] = int32(i), mix(g.hash[i]^salt)
		}
		slices.SortFunc(order, func(a, b int32) int {
			return cmp.Or(cmp.Compare(keys[a], keys[b]), cmp.Compare(a, b))
		})
		if !g.exchange(order) {
			return false
		}
		for j, u := range order {
			v := order[(j+1)%len(order)]
			g.links[u], g.links[v] = append(g.links[u], v), append(g.links[v], u)
		}
	}
	return true
}

// may reports whether two end points may be linked.
func (g *graph) may(u, v int32) bool {
	return g.node[u] != g.node[v] && !slices.Contains(g.links[u], v)
}

// exchange turns parts of a cycle round until all its links may be. Each turn
// makes one bad link less, wherever the rest of them are carried to.
func (g *graph) exchange(p []int32) bool {
	n := len(p)
	at := func(i int) *int32 { return &p[i%n] }
	for j, good := 0, 0; good < n; j = (j + 1) % n {
		u, v := *at(j), *at(j + 1)
		if g.may(u, v) {
			good++
			continue
		}
		m := j + 2
		for m < j+n-1 && (!g.may(u, *at(m)) || !g.may(v, *at(m + 1))) {
			m++
		}
		if m == j+n-1 {
			return false
		}
		for a, b := j+1, m; a < b; a, b = a+1, b-1 {
			*at(a), *at(b) = *at(b), *at(a)
		}
		good = 1
	}
	return true
}

// complete links all end points of different nodes.
func (g *graph) complete() {
	for i := range g.links {
		g.links[i] = g.links[i][:0]
		for j := range g.links {
			if g.node[i] != g.node[j] {
				g.links[i] = append(g.links[i], int32(j))
			}
		}
	}
}

func (g *graph) sorted(i int) []int32 {
	slices.Sort(g.links[i])
	return g.links[i]
}
