// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cluster is nodes with as many addresses each.
func cluster(nodes, each int) []Member {
	var ms []Member
	for n := range nodes {
		for e := range each {
			ms = append(ms, Member{
				Node: fmt.Sprintf("node-%05d", n),
				Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(e), byte(n >> 8), byte(n)}), 18862),
			})
		}
	}
	slices.SortFunc(ms, Member.compare)
	return ms
}

// edges are the links of all nodes.
func edges(ms []Member, k int, seed uint64) map[Link]bool {
	g, all := newGraph(ms, k, seed), map[Link]bool{}
	for i := range ms {
		for _, j := range g.sorted(i) {
			all[Link{ms[i], ms[j]}] = true
		}
	}
	return all
}

func degrees(all map[Link]bool) map[Member]int {
	d := map[Member]int{}
	for l := range all {
		d[l.Local]++
	}
	return d
}

// reached counts the end points that can be reached from one.
func reached(all map[Link]bool) int {
	next := map[Member][]Member{}
	var from Member
	for l := range all {
		next[l.Local] = append(next[l.Local], l.Peer)
		from = l.Local
	}
	seen, todo := map[Member]bool{from: true}, []Member{from}
	for len(todo) > 0 {
		m := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, p := range next[m] {
			if !seen[p] {
				seen[p] = true
				todo = append(todo, p)
			}
		}
	}
	return len(seen)
}

// TestGraph: what every node computes alone fits together to a connected regular
// graph without links inside nodes.
func TestGraph(t *testing.T) {
	for _, c := range []struct{ nodes, each, k, degree int }{
		{2, 1, 10, 1},
		{5, 1, 10, 4},
		{11, 1, 10, 10},
		{20, 1, 10, 10}, // n > 2(s+k)-3 = 19: the proof holds from here
		{64, 1, 10, 10},
		{64, 1, 7, 8}, // odd: rounded up
		{64, 1, 1, 2}, // one cycle at least
		{300, 1, 200, 64},
		{100, 8, 10, 10},
		{4, 8, 10, 10}, // 32 end points; 34 would be certain, but these work out
		{2, 4, 10, 4},  // two nodes: all of the other
		{1000, 2, 10, 10},
	} {
		for seed := range uint64(3) {
			ms := cluster(c.nodes, c.each)
			all := edges(ms, c.k, seed)
			name := fmt.Sprintf("%d nodes with %d, k %d, seed %d", c.nodes, c.each, c.k, seed)
			d := degrees(all)
			for _, m := range ms {
				require.Equal(t, c.degree, d[m], "%s: %s", name, m.Addr)
			}
			for l := range all {
				require.NotEqual(t, l.Local.Node, l.Peer.Node, name)
				require.True(t, all[Link{l.Peer, l.Local}], "%s: %v is one way", name, l)
			}
			assert.Equal(t, len(ms), reached(all), name)

			last := ms[len(ms)-1].Node
			alone := Neighbours(ms, last, c.k, seed)
			assert.Len(t, alone, c.each*d[ms[len(ms)-1]])
			for _, l := range alone {
				assert.Equal(t, last, l.Local.Node)
				assert.True(t, all[l], "%s: %v is not what others see", name, l)
			}
		}
	}
}

// TestSmallGraphs: between k+1 and the number that the proof needs, each end point
// probes k others or all; never fewer, and always connected.
func TestSmallGraphs(t *testing.T) {
	for n := 2; n < 24; n++ {
		for seed := range uint64(20) {
			ms := cluster(n, 1)
			all := edges(ms, 10, seed)
			for m, d := range degrees(all) {
				require.True(t, d == 10 || d == n-1, "%d nodes: %s has %d", n, m.Addr, d)
			}
			require.Equal(t, n, reached(all))
		}
	}
}

// TestUnevenNodes: one node with most of the end points gets no link to itself,
// and everybody is reached.
func TestUnevenNodes(t *testing.T) {
	ms := cluster(1, 60)
	for _, m := range cluster(5, 1)[1:] {
		m.Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{11, 0, 0, m.Addr.Addr().As4()[3]}), 1)
		ms = append(ms, m)
	}
	all := edges(ms, 10, 1)
	for l := range all {
		require.NotEqual(t, l.Local.Node, l.Peer.Node)
	}
	assert.Equal(t, 64, reached(all))
	assert.Empty(t, Neighbours(cluster(1, 8), "node-00000", 10, 1), "nobody else")
	assert.Empty(t, Neighbours(nil, "node-00000", 10, 1))
	assert.Empty(t, Neighbours(ms, "stranger", 10, 1))
}

func TestSeedsDiffer(t *testing.T) {
	ms := cluster(200, 1)
	a := Neighbours(ms, "node-00007", 10, 1)
	assert.Equal(t, a, Neighbours(ms, "node-00007", 10, 1))
	assert.NotEqual(t, a, Neighbours(ms, "node-00007", 10, 2))
}

// TestChurn: who joins takes k/2 links apart and makes k; exchanges that hang
// together with them may move some more, and the rest stays.
func TestChurn(t *testing.T) {
	const k = 10
	for _, n := range []int{100, 500, 1500} {
		worst, sum := 0, 0
		const rounds = 10
		for seed := range uint64(rounds) {
			ms := cluster(n, 1)
			out := int(rand.New(rand.NewPCG(seed, 0)).Uint64() % uint64(n))
			before, after := edges(slices.Delete(slices.Clone(ms), out, out+1), k, seed), edges(ms, k, seed)
			gone := 0
			for l := range before {
				if !after[l] {
					gone++
				}
			}
			gone /= 2 // links are counted from both ends
			require.GreaterOrEqual(t, gone, k/2)
			worst, sum = max(worst, gone), sum+gone
		}
		t.Logf("%d members: a join takes apart %.1f links of %d on average, %d at most", n, float64(sum)/rounds, n*k/2, worst)
		assert.LessOrEqual(t, worst, 10*k, "%d members", n)
	}
}

// TestDiameter: errors spread over a graph as far as its diameter; a random
// regular graph of 1,000 with degree 10 has one of about log(1000)/log(9) + 1.
func TestDiameter(t *testing.T) {
	ms := cluster(1000, 1)
	all := edges(ms, 10, 5)
	next := map[Member][]Member{}
	for l := range all {
		next[l.Local] = append(next[l.Local], l.Peer)
	}
	for _, from := range ms[:20] {
		dist, todo := map[Member]int{from: 0}, []Member{from}
		far := 0
		for i := 0; i < len(todo); i++ {
			for _, p := range next[todo[i]] {
				if _, ok := dist[p]; !ok {
					dist[p] = dist[todo[i]] + 1
					far = dist[p]
					todo = append(todo, p)
				}
			}
		}
		require.Len(t, dist, 1000)
		assert.LessOrEqual(t, far, 6)
	}
}

func BenchmarkNeighbours(b *testing.B) {
	for _, n := range []int{1000, 10000, 65536} {
		ms := cluster(n, 1)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				Neighbours(ms, "node-00007", 10, 1)
			}
		})
	}
}
