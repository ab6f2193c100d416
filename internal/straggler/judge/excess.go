// SPDX-License-Identifier: Apache-2.0

package judge

import "github.com/lockstep-otel/lockstep/internal/stats"

// deviceKinds are the kinds of time that the device takes.
const deviceKinds = 3

// outcome is how a row compares with its peers.
type outcome struct {
	excess        [Kinds]float64
	own           [Kinds]float64
	work, choice  float64
	usual         float64 // of a pair, what the other is faster by with a kernel that is not the usual one
	base          float64 // peers' own time
	pause         float64 // longest gap of the host beyond the peers' longest
	device        float64
	covered       float64 // device time that was compared
	most          float64 // of one unit of it
	mostPeers     int     // that the unit was compared with
	unknown       float64 // excess in work whose amount nobody recorded
	fed           float64 // what peers took for that
	basis                 // of the device
	host          basis   // of the host
	past          past
	cohort        cohortKey
	passes        // beyond what the device explains
	choicePlace   PlaceID
	workPlace     PlaceID
	given, lonely bool
	even, uneven  bool // of some purpose, the amount of work is the peers', or another
	compared      bool
	hollow        bool // its idleness may be operations, if any are lost
}

// basis says with whom a rank is compared.
type basis struct {
	rung  Rung
	peers int
	pair  bool // of two that differ, nobody says which is as it should be
}

// past is what a rank without peers did in the steps before, typically.
type past struct {
	known        bool
	host, device float64
	// What the excess was lowered by, since the others without peers have it, too.
	commonHost, commonDevice float64
}

// net returns the excess that somebody may be accused of.
func (o *outcome) net() float64 {
	return o.excess[Compute] + o.excess[Overlapped] + o.excess[Copy] + o.excess[Host]
}

// comparer compares the rows of a step with their peers. Its memory is used again.
type comparer struct {
	places   *placeTable
	ladder   ladder
	rows     []*Row
	out      []outcome
	works    []work
	purposes []purpose
	doubts   []doubt
	lastWork []int32 // by unit, 1 + the last of its works
	lastGoal []int32 // by group
	units    []int32
	groups   []int32
	v, u     []float64
	at       []int32
	all      cohort
	counts   map[int32]int
	tops     []int32
	details  []detail
	swaps    map[int32]*swap // by name
	lossy    bool            // so much was lost that who did more may have lost less
	slowed   []slowed
	ratios   []stats.Weighted
	devices  []float64 // by row, by how much slower
	serving  []int32   // by row, 1 + the place of what it did for the purpose that is asked about
}

// compare fills the outcome of each row.
func (c *comparer) compare(rows []*Row) []outcome {
	c.rows = rows
	c.out = grown(c.out, len(rows))
	clear(c.out)
	c.details = c.details[:0]
	for i, r := range rows {
		c.sum(r, &c.out[i])
	}
	c.all.members, c.all.judged, c.all.rung = c.all.members[:0], c.all.judged[:0], RungKernel
	for i := range c.ladder.climb(rows) {
		co := &c.ladder.cohorts[i]
		if len(co.judged) == 0 {
			continue
		}
		c.cohort(co)
	}
	if len(c.all.judged) > 0 {
		for i := range rows {
			c.all.members = append(c.all.members, int32(i))
		}
		c.kernels(&c.all)
	}
	for i, r := range rows {
		if r.Given {
			c.given(r, &c.out[i])
		}
	}
	return c.out
}

// sum adds up what a row spent.
func (c *comparer) sum(r *Row, o *outcome) {
	for i := range r.Cells {
		if in, ok := c.places.info(r.Cells[i].Place); ok {
			o.own[in.kind] += float64(r.Cells[i].Own)
		}
	}
	o.device = o.own[Compute] + o.own[Overlapped] + o.own[Copy]
	o.passes = unknownPasses
}

func (o *outcome) all() float64 { return o.device + o.own[Host] }

// leastKnown is what share of a step's length must be known as own time for shares to
// be taken of it, and not of the step.
const leastKnown = 0.01

// given takes over what was found per segment.
func (c *comparer) given(r *Row, o *outcome) {
	o.given, o.rung, o.compared = true, RungSegment, true
	o.host = o.basis
	o.work, o.choice, o.pause, o.unknown, o.fed = 0, 0, 0, 0, 0
	for k, x := range r.Excess {
		o.excess[k] = float64(x)
	}
	if o.base < leastKnown*float64(r.Seconds) {
		o.base = float64(r.Seconds)
	}
}

// cohort compares the rows of a cohort that have no better one.
func (c *comparer) cohort(co *cohort) {
	n := len(co.members)
	c.hosts(co)
	if n < minCohort {
		for _, i := range co.judged {
			o := &c.out[i]
			o.lonely, o.pair = true, n == 2
			if o.host = (basis{rung: RungHistory}); o.pair {
				o.host = basis{RungMembers, 1, true}
			}
			c.all.judged = append(c.all.judged, i)
		}
		return
	}
	c.gather(co)
	for _, u := range c.units {
		c.unit(co, u, false)
	}
	c.goals(co)
	for _, i := range co.judged {
		o := &c.out[i]
		o.basis, o.cohort, o.compared = basis{rung: co.rung, peers: n - 1}, co.key, true
		o.host = o.basis
	}
	c.uneven(co)
	c.top(co)
	c.forget()
}

// hosts compares the idleness of the cohort's hosts, their longest gaps, and the own
// time of all.
func (c *comparer) hosts(co *cohort) {
	of := func(undivided bool, f func(i int32) float64) stats.Middle {
		c.v = c.v[:0]
		for _, i := range co.members {
			if undivided || !c.rows[i].Undivided {
				c.v = append(c.v, f(i))
			}
		}
		return stats.SelectMiddle(c.v)
	}
	idle := func(i int32) float64 { return float64(c.rows[i].Idle) }
	host := func(i int32) float64 { return c.out[i].own[Host] }
	own := func(i int32) float64 { return c.out[i].all() }
	longest := func(i int32) float64 { return c.longest(c.rows[i]) }
	mh, mi := of(false, host), of(true, idle)
	mo, ml := of(true, own), of(true, longest)
	for _, i := range co.judged {
		o := &c.out[i]
		o.base = mo.Without(own(i))
		switch {
		case len(co.members) < 2:
		case c.rows[i].Undivided:
			o.excess[Host] = idle(i) - mi.Without(idle(i))
			o.pause = max(0, longest(i)-ml.Without(longest(i)))
		case mh.Len() > 1:
			o.excess[Host] = host(i) - mh.Without(host(i))
			o.pause = max(0, longest(i)-ml.Without(longest(i)))
		}
	}
}

// longest returns the host's longest gap.
func (c *comparer) longest(r *Row) (s float64) {
	for i := range r.Cells {
		if in, ok := c.places.info(r.Cells[i].Place); ok && in.kind == Host {
			s = max(s, float64(r.Cells[i].Longest))
		}
	}
	return s
}
