// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"sync"
	"sync/atomic"
)

// paths answers Between from the hard constraints of a solution.
type paths struct {
	net          *network
	potential    []int64
	ids          map[string]int32
	group        []int32
	base         []int64
	around       []span
	drift        []float64
	driftLo      []int64
	driftHi      []int64
	lower, upper []int64
	hangs        [][]int32
	valid        []span
	stepped      []bool
	maxDrift     float64
	wander       float64
	window       float64

	most     int // clocks to follow
	followed atomic.Int64
	overflow atomic.Int64
	routes   sync.Pool

	mu    sync.Mutex
	known map[[2]int32]gap
}

// gap bounds x[b]-x[a] of a pair of clocks a < b; noLo and noHi where nothing does.
type gap struct{ lo, hi int64 }

func (p *problem) newPaths() *paths {
	if !p.settled {
		return nil
	}
	ids := make(map[string]int32, len(p.s.ids))
	for name, id := range p.s.ids {
		if p.group[id] >= 0 {
			ids[name] = id
		}
	}
	q := &paths{
		net: p.net, potential: p.potential, ids: ids, group: p.group, base: p.base, around: p.window,
		drift: p.drift, driftLo: p.driftLo, driftHi: p.driftHi, lower: p.lower, upper: p.upper,
		hangs: p.hangs, valid: p.valid, stepped: p.stepped,
		maxDrift: p.opt.MaxDrift, wander: p.opt.Wander, window: float64(p.opt.Window.Nanoseconds()),
		most: p.opt.MaxFollowed, known: map[[2]int32]gap{},
	}
	n := p.net.n
	q.routes.New = func() any { return newRoute(n) }
	return q
}

func (s *Solution) overflowed() int64 {
	if s.paths == nil {
		return 0
	}
	return s.paths.overflow.Swap(0)
}

// Between bounds, by hard constraints alone, how much later than reading ra of
// clock a the reading rb of clock b was, in ns of their component's reference.
// False where the clocks cannot be compared or nothing bounds them on one side.
//
// The first question about a pair of clocks is a search from both of them, until
// they meet or the way through the reference is no longer; others do not wait for
// it. When such searches have followed Options.MaxFollowed clocks, further pairs
// are bounded through the reference, which is as right and wider.
func (s *Solution) Between(a string, ra int64, b string, rb int64) (lower, upper int64, ok bool) {
	if s.paths == nil {
		return 0, 0, false
	}
	return s.paths.between(a, ra, b, rb)
}

func (q *paths) between(a string, ra int64, b string, rb int64) (lower, upper int64, ok bool) {
	ca, okA := q.ids[a]
	cb, okB := q.ids[b]
	if !okA || !okB || q.group[ca] != q.group[cb] || !q.close(ca, ra) || !q.close(cb, rb) {
		return 0, 0, false
	}
	lo, hi, ok := q.apart(ca, cb)
	if !ok {
		return 0, 0, false
	}
	// x is by how much a clock's reading exceeds the line through its base with the
	// drift of the solution. The bounds of x[b]-x[a] hold at one moment, within the
	// window around the instant.
	ta, tb := q.after(ca, ra), q.after(cb, rb)
	slack := q.beyond(ca, ra) + q.beyond(cb, rb) + min(q.rate(ca), q.rate(cb))*math.Abs(float64(tb-ta)) + 1
	apart := tb - ta
	return apart - hi - int64(math.Ceil(slack)), apart - lo + int64(math.Ceil(slack)), true
}

// after is how much later than the instant a reading is, on the reference.
func (q *paths) after(c int32, reading int64) int64 {
	since := reading - q.base[c]
	return since + int64(math.Round(math.Expm1(-q.drift[c])*float64(since)))
}

// rate bounds how fast the clock's x can change.
func (q *paths) rate(c int32) float64 {
	if len(q.driftLo) == 0 || q.driftLo[c] == noLo || q.driftHi[c] == noHi {
		return q.maxDrift + math.Abs(q.drift[c])
	}
	y := q.drift[c] / driftUnit
	return max(float64(q.driftHi[c])-y, y-float64(q.driftLo[c]), 1) * driftUnit * 1.01
}

// beyond is what x can have changed by outside of the window around the instant.
func (q *paths) beyond(c int32, reading int64) float64 {
	since := reading - q.base[c]
	v := q.valid[c]
	if v.empty() {
		v = q.around[q.group[c]]
	}
	away := float64(max(v.from-since, since-v.until))
	if away <= 0 {
		return 0
	}
	return away * (q.rate(c) + q.wander*math.Ceil(away/q.window))
}

// mostKnown bounds how many pairs are remembered.
const mostKnown = 1 << 16

// apart bounds x[b]-x[a].
func (q *paths) apart(a, b int32) (lo, hi int64, ok bool) {
	switch {
	case a == b:
		return 0, 0, true
	case a > b:
		lo, hi, ok = q.apart(b, a)
		return -hi, -lo, ok
	// What hangs on others has no paths; those of what it hangs on end at the reference.
	case q.hangs[a] != nil || q.hangs[b] != nil:
		if q.lower[a] == noLo || q.lower[b] == noLo || q.upper[a] == noHi || q.upper[b] == noHi {
			return 0, 0, false
		}
		return q.lower[b] - q.upper[a], q.upper[b] - q.lower[a], true
	}
	q.mu.Lock()
	w, ok := q.known[[2]int32{a, b}]
	q.mu.Unlock()
	if !ok {
		w = q.search(a, b)
		q.mu.Lock()
		if len(q.known) < mostKnown {
			q.known[[2]int32{a, b}] = w
		}
		q.mu.Unlock()
	}
	return w.lo, w.hi, w.lo != noLo && w.hi != noHi
}

// search bounds a pair by the shortest paths both ways.
func (q *paths) search(a, b int32) gap {
	r := q.routes.Get().(*route)
	defer q.routes.Put(r)
	w := gap{noLo, q.shortest(r, a, b)}
	if back := q.shortest(r, b, a); back != noHi {
		w.lo = -back
	}
	return w
}

// shortest is the shortest path from a to b, as far as there is work left for it.
func (q *paths) shortest(r *route, a, b int32) int64 {
	known := int64(noHi)
	if q.lower[a] != noLo && q.upper[b] != noHi {
		known = q.upper[b] - q.lower[a] // through the reference
	}
	left := int64(q.most) - q.followed.Load()
	length, followed := r.search(q.net, q.potential, a, b, known, int(max(left, 0)))
	q.followed.Add(int64(followed))
	if int64(followed) >= left {
		q.overflow.Add(1)
	}
	return length
}

// farOff is how far from the instant a reading can be, in ns: a year.
const farOff = 365 * 24 * 3600 * 1e9

func (q *paths) close(c int32, reading int64) bool {
	if q.stepped[c] && (q.valid[c].empty() || reading < q.base[c]+q.valid[c].from) {
		return false // the clock was another one
	}
	return near(reading) && math.Abs(float64(reading)-float64(q.base[c])) <= farOff
}
