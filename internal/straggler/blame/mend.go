// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// mend prepares what is to be less than recorded.
func (r *replay) mend(mends []Mend) {
	g := r.g
	r.mended = true
	for _, v := range []*[]int64{&r.less, &r.sooner, &r.host} {
		*v = resized(*v, len(g.nodes))
		clear(*v)
	}
	r.quicker = resized(r.quicker, len(g.meets))
	clear(r.quicker)
	for k := range mends {
		switch m := &mends[k]; m.Kind {
		case Link:
			if m.Less == nil {
				r.mendLink(m)
				continue
			}
			for at, by := range m.Less {
				if int(at) < len(r.quicker) {
					r.quicker[at] = max(r.quicker[at], by)
				}
			}
		case Stage:
			r.mendStage(m)
		case Work:
			r.mendWork(m)
		default:
			r.mendRank(m)
		}
	}
}

// mendRank gives the operations, or gaps, of a rank the durations of its peers'; of all
// ranks, those that are longer.
func (r *replay) mendRank(m *Mend) {
	g := r.g
	for k := range g.ranks {
		if m.Rank >= 0 && g.ranks[k].Rank != m.Rank {
			continue
		}
		var host int64
		for i := g.first[k]; i < g.first[k+1]; i++ {
			if m.Kind == Host {
				host += r.mendHost(i, m)
				r.host[i] += host
			} else {
				r.mendNode(i, m)
			}
		}
	}
}

func (r *replay) mendNode(i int32, m *Mend) {
	g := r.g
	n := &g.nodes[i]
	if m.Only && n.place != m.Place || n.place == endPlace {
		return
	}
	if n.kind == m.Kind && n.kind != Comm {
		if x, ok := g.excess(i, duration); ok && (x > 0 || m.Rank >= 0) {
			r.less[i] = x
		}
	}
	rest := Dependency
	if g.ranks[n.rank].Dark {
		rest = Compute
	}
	if rest == m.Kind && n.start > n.base {
		if x, ok := g.excess(i, restGap); ok && (x > 0 || m.Rank >= 0) {
			r.sooner[i] += min(x, n.start-n.base-r.sooner[i])
		}
	}
}

// mendHost returns by how much less the host's gap before the node is.
func (r *replay) mendHost(i int32, m *Mend) int64 {
	g := r.g
	n := &g.nodes[i]
	gp := g.gapOf(n)
	if gp.host == 0 {
		return 0
	}
	if m.Only && g.scope(n, &gp) != m.Place {
		return 0
	}
	x, ok := g.excess(i, hostGap)
	if !ok || x < 0 && m.Rank < 0 {
		return 0
	}
	x = min(x, n.start-n.base-r.sooner[i])
	r.sooner[i] += x
	return x
}

// mendLink gives transfers the median of those alike, where they took longer.
func (r *replay) mendLink(m *Mend) {
	g := r.g
	for k := range g.meets {
		o := &g.meets[k]
		if o.rule == Nobody || !g.over(o, m) {
			continue
		}
		if t, ok := g.typicalTransfer(o); ok {
			r.quicker[k] = max(0, g.transfer(o)-t)
		}
	}
}

// over reports whether the meeting goes over the link.
func (g *Graph) over(o *meet, m *Mend) bool {
	switch {
	case m.group:
		return o.rule != Message && o.class == m.class
	case o.rule != Message:
		return false
	}
	send, recv := o.ends()
	return g.ranks[g.nodes[send].rank].Rank == m.Rank && (m.Peer < 0 || g.ranks[g.nodes[recv].rank].Rank == m.Peer)
}

// mendStage gives a stage as much to compute as the others have.
func (r *replay) mendStage(m *Mend) {
	g := r.g
	for i := range g.nodes {
		if n := &g.nodes[i]; n.kind == Compute && g.ranks[n.rank].Stage == m.Stage && m.Scale > 0 {
			r.less[i] += int64(float64(n.stay()-r.less[i]) * (1 - m.Scale))
		}
	}
}

// unevenWork is from what spread on an amount of work is taken to differ: what kernels and
// devices differ by is less, and stays.
const unevenWork = 0.05

// work is what the ranks of a role computed in one place: the sums by rank, and by rank
// and microbatch.
type work struct {
	ranks, batches map[[2]int32]int64
	n              int64
}

func (w *work) add(n *node, took int64) {
	w.ranks[[2]int32{n.rank, none}] += took
	w.batches[[2]int32{n.rank, n.micro}] += took
	w.n++
}

// mean returns the mean operation, 0 where ranks and microbatches differ by no more than
// chance. One rank may have more than all others; single microbatches may have been held up.
func (w *work) mean() int64 {
	var sum, squares float64
	for _, x := range w.ranks {
		sum, squares = sum+float64(x), squares+float64(x)*float64(x)
	}
	n := float64(len(w.ranks))
	mean := sum / n
	if squares/n-mean*mean < (unevenWork*mean)*(unevenWork*mean) && !scattered(w.batches) {
		return 0
	}
	return int64(sum) / w.n
}

// scattered reports whether half of the values are further from their median than few of
// those are whose standard deviation is unevenWork of it.
func scattered(of map[[2]int32]int64) bool {
	v := slices.Sorted(maps.Values(of))
	mid := stats.MedianMidpoint(v)
	for i, x := range v {
		v[i] = max(x-mid, mid-x)
	}
	slices.Sort(v)
	return float64(stats.MedianMidpoint(v)) > unevenWork*float64(mid)
}

// mendWork gives everybody's computing the mean length of what its role does alike, where
// that is not even: longer for some, and shorter for others.
func (r *replay) mendWork(m *Mend) {
	g := r.g
	type group struct {
		role  uint64
		place Place
	}
	all := map[group]*work{}
	of := func(n *node) group { return group{g.ranks[n.rank].Role, m.Alike(n.place)} }
	for i := range g.nodes {
		n := &g.nodes[i]
		if n.kind != Compute {
			continue
		}
		w := all[of(n)]
		if w == nil {
			w = &work{ranks: map[[2]int32]int64{}, batches: map[[2]int32]int64{}}
			all[of(n)] = w
		}
		w.add(n, n.stay()-r.less[i])
	}
	means := make(map[group]int64, len(all))
	for k, w := range all {
		means[k] = w.mean()
	}
	for i := range g.nodes {
		if n := &g.nodes[i]; n.kind == Compute && means[of(n)] > 0 {
			r.less[i] = n.stay() - means[of(n)]
		}
	}
}
