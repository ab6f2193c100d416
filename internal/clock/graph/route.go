// SPDX-License-Identifier: Apache-2.0

package graph

// sweep is one direction of a search: from its source along arcs, or against them.
// Lengths are what the potential makes of them, never below 0. What an earlier
// search left is told by the round, so that nothing has to be cleared.
type sweep struct {
	heap   heap
	length []int64
	seen   []uint32
	round  uint32
	source int32
}

func newSweep(n int) *sweep { return &sweep{length: make([]int64, n), seen: make([]uint32, n)} }

func (s *sweep) begin(source int32) {
	if s.round++; s.round == 0 {
		clear(s.seen)
		s.round = 1
	}
	s.heap, s.source = s.heap[:0], source
	s.improve(source, 0)
}

func (s *sweep) at(c int32) (int64, bool) { return s.length[c], s.seen[c] == s.round }

func (s *sweep) improve(c int32, length int64) bool {
	if old, ok := s.at(c); ok && old <= length {
		return false
	}
	s.length[c], s.seen[c] = length, s.round
	s.heap.push(entry{length, c})
	return true
}

// nearest is the shortest length that is still to be followed; noHi where nothing
// is.
func (s *sweep) nearest() int64 {
	for len(s.heap) > 0 {
		if e := s.heap[0]; e.length == s.length[e.clock] {
			return e.length
		}
		s.heap.pop() // a shorter way was found since
	}
	return noHi
}

// route searches the shortest path from a to b, from both of its ends: in a mesh
// two balls that touch hold few of its clocks, where one ball around a that
// reaches b holds half of them. A path that is known already ends it sooner.
type route struct{ there, back *sweep }

func newRoute(n int) *route { return &route{newSweep(n), newSweep(n)} }

// search returns the length of the shortest path, or known where none is shorter,
// and how many clocks it followed: most of them at most. What it then has is as
// right, and may be longer.
func (r *route) search(net *network, potential []int64, a, b int32, known int64, most int) (length int64, followed int) {
	r.there.begin(a)
	r.back.begin(b)
	shift := potential[a] - potential[b]
	best := int64(noHi)
	if known != noHi {
		best = known + shift
	}
	for followed < most {
		ahead, behind := r.there.nearest(), r.back.nearest()
		// What is not followed yet is no shorter than both together.
		if ahead == noHi || behind == noHi || ahead+behind >= best {
			break
		}
		followed++
		if len(r.there.heap) <= len(r.back.heap) {
			best = r.there.follow(net, potential, r.back, false, best)
		} else {
			best = r.back.follow(net, potential, r.there, true, best)
		}
	}
	if best == noHi {
		return noHi, followed
	}
	return best - shift, followed
}

// follow takes the arcs of the nearest clock, and returns the shortest path that is
// known then.
func (s *sweep) follow(net *network, potential []int64, other *sweep, back bool, best int64) int64 {
	e := s.heap.pop()
	arcs := net.outOf(e.clock)
	if back {
		arcs = net.into(e.clock)
	}
	for _, a := range arcs {
		if net.off[a] {
			continue
		}
		from, to := net.from[a], net.to[a]
		o := to
		if back {
			o = from
		}
		length := e.length + net.weight[a] + potential[from] - potential[to]
		if length >= best || net.ends(o) && o != other.source || !s.improve(o, length) {
			continue
		}
		if rest, ok := other.at(o); ok {
			best = min(best, length+rest)
		}
	}
	return best
}
