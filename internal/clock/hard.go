// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"math"
	"slices"
	"time"
)

// constraints keep, for every ordered pair of clocks that met, the least upper
// bound of theta[b] - theta[a] in ns. All pairs are kept for meetings of up to
// maxPairClocks members, and pairs with the first member beyond that.
type constraints struct {
	// dense holds the bounds by pair, row by row, where there are at most maxDense
	// clocks; else they are in upper.
	dense  []float64
	clocks int
	upper  map[[2]int]float64
	// Scratch of one meeting: of each clock of it, when the first member left and the last
	// entered.
	slots []int // of all clocks, 1 + the place among those that follow
	ends  []clockEnds
}

// clockEnds is when the first of a clock's members of a meeting left, and the last entered.
type clockEnds struct {
	clock       int
	exit, enter float64
	left        bool // some exit is known
}

// maxDense bounds the table of all pairs: 512 clocks are 2 MB.
const maxDense = 512

// maxPairClocks bounds the work: 64 clocks are 4,032 ordered pairs a meeting.
// Above it only pairs with the first member are kept, 2 per clock.
const maxPairClocks = 64

func (c *constraints) read(p *problem, meetings []Meeting, messages []Message, resolution float64) {
	for _, m := range messages {
		p.clock(m.SendClock)
		p.clock(m.RecvClock)
	}
	c.clocks = len(p.names)
	c.slots = resized(c.slots, c.clocks)
	clear(c.slots)
	clear(c.upper)
	if c.clocks <= maxDense {
		c.dense = resized(c.dense, c.clocks*c.clocks)
		for i := range c.dense {
			c.dense[i] = math.Inf(1)
		}
	} else {
		c.dense = nil
	}
	if c.upper == nil {
		c.upper = map[[2]int]float64{}
	}
	for _, m := range messages {
		c.leavesAfter(p.clock(m.RecvClock), float64(m.RecvEnd-p.base), p.clock(m.SendClock), float64(m.SendStart-p.base), resolution)
	}
	of := p.of
	for i := range meetings {
		n := len(meetings[i].Arrivals)
		c.addMeeting(p, &meetings[i], of[:n], resolution)
		of = of[n:]
	}
}

// leavesAfter records exit + theta[leaver] >= enter + theta[enterer].
func (c *constraints) leavesAfter(leaver int, exit float64, enterer int, enter, resolution float64) {
	if leaver == enterer {
		return
	}
	bound := exit - enter + resolution
	if c.dense != nil {
		if at := &c.dense[leaver*c.clocks+enterer]; bound < *at {
			*at = bound
		}
		return
	}
	key := [2]int{leaver, enterer}
	if old, ok := c.upper[key]; !ok || bound < old {
		c.upper[key] = bound
	}
}

// addMeeting adds what a meeting of members with these clocks tells.
func (c *constraints) addMeeting(p *problem, m *Meeting, at []int, resolution float64) {
	several := slices.ContainsFunc(at, func(clock int) bool { return clock != at[0] })
	if !several || (!m.Synchronising && m.Root < 0) {
		return
	}
	if m.Synchronising && len(at) <= maxPairClocks {
		c.addAll(p, m, at, resolution)
		return
	}
	for i := range m.Arrivals {
		a := &m.Arrivals[i]
		if a.ExitUnknown {
			continue
		}
		exit := float64(a.Exit - p.base)
		for j := range m.Arrivals[:partners(i, len(m.Arrivals))] {
			if i == j || !m.holds(i, j) {
				continue
			}
			c.leavesAfter(at[i], exit, at[j], float64(m.Arrivals[j].Enter-p.base), resolution)
		}
	}
}

// addAll adds the constraints of a meeting that nobody leaves before all have entered: of
// two clocks, the first that left against the last that entered.
func (c *constraints) addAll(p *problem, m *Meeting, at []int, resolution float64) {
	c.ends = c.ends[:0]
	for i, clock := range at {
		a := &m.Arrivals[i]
		exit, enter := float64(a.Exit-p.base), float64(a.Enter-p.base)
		if c.slots[clock] == 0 {
			c.ends = append(c.ends, clockEnds{clock: clock, exit: math.Inf(1), enter: enter})
			c.slots[clock] = len(c.ends)
		}
		e := &c.ends[c.slots[clock]-1]
		e.enter = max(e.enter, enter)
		if !a.ExitUnknown {
			e.exit, e.left = min(e.exit, exit), true
		}
	}
	for i := range c.ends {
		c.slots[c.ends[i].clock] = 0
		if !c.ends[i].left {
			continue
		}
		for j := range c.ends {
			c.leavesAfter(c.ends[i].clock, c.ends[i].exit, c.ends[j].clock, c.ends[j].enter, resolution)
		}
	}
}

// bound returns the least upper bound of theta[b] - theta[a].
func (c *constraints) bound(a, b int) (float64, bool) {
	if c.dense == nil {
		up, ok := c.upper[[2]int{a, b}]
		return up, ok
	}
	if a >= c.clocks || b >= c.clocks {
		return 0, false
	}
	up := c.dense[a*c.clocks+b]
	return up, !math.IsInf(up, 1)
}

// partners returns with how many of the members, from the first on, the i-th is
// paired: in large groups only pairs with the first are kept, which is the reference
// where members are given in its order.
func partners(i, members int) int {
	if members <= maxPairClocks || i == 0 {
		return members
	}
	return 1
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
	for a := 0; c.dense != nil && a < c.clocks; a++ {
		for b := range a {
			up, okUp := c.bound(a, b)
			if down, ok := c.bound(b, a); ok && okUp && -down > up {
				out[a], out[b] = true, true
			}
		}
	}
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
	up, okUp := c.bound(a, b)
	down, okDown := c.bound(b, a)
	if !okUp || !okDown {
		return 0, 0, false
	}
	return time.Duration(math.Floor(-down)), time.Duration(math.Ceil(up)), true
}
