package clock

import (
	"math"
	"time"
)

// constraints keep, for every ordered pair of clocks that met, the least upper
// bound of theta[b] - theta[a] in ns. All pairs are kept for meetings of up to
// maxPairClocks members, and pairs with the first member beyond that.
type constraints struct {
	upper map[[2]int]float64
}

// maxPairClocks bounds the work: 64 clocks are 4,032 ordered pairs a meeting.
// Above it only pairs with the first member are kept, 2 per clock.
const maxPairClocks = 64

func newConstraints(p *problem, meetings []Meeting, messages []Message, resolution float64) *constraints {
	c := &constraints{upper: map[[2]int]float64{}}
	for _, m := range messages {
		s, r := p.clock(m.SendClock), p.clock(m.RecvClock)
		c.leavesAfter(r, float64(m.RecvEnd-p.base), s, float64(m.SendStart-p.base), resolution)
	}
	for i := range meetings {
		c.addMeeting(p, &meetings[i], resolution)
	}
	return c
}

// leavesAfter records exit + theta[leaver] >= enter + theta[enterer].
func (c *constraints) leavesAfter(leaver int, exit float64, enterer int, enter, resolution float64) {
	if leaver == enterer {
		return
	}
	key := [2]int{leaver, enterer}
	bound := exit - enter + resolution
	if old, ok := c.upper[key]; !ok || bound < old {
		c.upper[key] = bound
	}
}

func (c *constraints) addMeeting(p *problem, m *Meeting, resolution float64) {
	for i, a := range m.Arrivals {
		for j, b := range m.Arrivals {
			if i == j || a.ExitUnknown || !m.holds(i, j) || !keepPair(i, j, len(m.Arrivals)) {
				continue
			}
			c.leavesAfter(p.index[a.Clock], float64(a.Exit-p.base), p.index[b.Clock], float64(b.Enter-p.base), resolution)
		}
	}
}

// keepPair bounds the work and the memory of large groups to pairs with one
// fixed member, which is the reference where members are given in its order.
func keepPair(i, j, members int) bool {
	return members <= maxPairClocks || i == 0 || j == 0
}

// holds reports whether member i can only have left after member j entered.
func (m *Meeting) holds(i, j int) bool {
	if m.Synchronising {
		return true
	}
	return m.Root >= 0 && j == m.Root && i != m.Root
}

// conflicts marks the clocks of every pair whose constraints contradict one
// another.
func (c *constraints) conflicts(clocks int) []bool {
	out := make([]bool, clocks)
	for pair, up := range c.upper {
		if down, ok := c.upper[[2]int{pair[1], pair[0]}]; ok && -down > up {
			out[pair[0]], out[pair[1]] = true, true
		}
	}
	return out
}

// interval returns the bounds of theta[b] - theta[a].
func (c *constraints) interval(a, b int) (lower, upper time.Duration, ok bool) {
	if a == b {
		return 0, 0, true
	}
	up, okUp := c.upper[[2]int{a, b}]
	down, okDown := c.upper[[2]int{b, a}]
	if !okUp || !okDown {
		return 0, 0, false
	}
	return time.Duration(math.Floor(-down)), time.Duration(math.Ceil(up)), true
}
