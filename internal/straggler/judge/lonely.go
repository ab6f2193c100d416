// SPDX-License-Identifier: Apache-2.0

package judge

import "github.com/lockstep-otel/lockstep/internal/stats"

// kernels compares rows without peers with whoever ran the same kernels in the same
// shape.
func (c *comparer) kernels(all *cohort) {
	c.gather(all)
	for _, u := range c.units {
		c.unit(all, u, true)
	}
	lonely := make(map[int32]bool, len(all.judged))
	for _, i := range all.judged {
		lonely[i] = true
	}
	for i := range c.works {
		if w := &c.works[i]; lonely[w.row] {
			c.charge(&c.out[w.row], w)
		}
	}
	c.pairChoices(all)
	for _, i := range all.judged {
		c.lonely(&c.out[i], i)
	}
	c.top(all)
	c.forget()
}

// kernelCover is how much of a device's time must be that of kernels which others ran,
// too, for them to tell whether the device is slow.
const kernelCover = 0.5

// lonely decides what a row without peers is measured by.
func (c *comparer) lonely(o *outcome, row int32) {
	switch {
	case o.covered > 0 && o.covered >= kernelCover*o.device:
		if o.base <= 0 || !o.pair {
			o.base = o.all()
		}
		o.basis, o.compared = basis{rung: RungKernel, peers: o.mostPeers}, true
	case o.pair:
		other := c.partner(row)
		o.basis, o.compared = basis{RungMembers, 1, true}, true
		o.excess[Compute] = o.own[Compute] + o.own[Overlapped] - other.own[Compute] - other.own[Overlapped] - o.choice - o.usual
		o.excess[Overlapped] = 0
		o.excess[Copy] = o.own[Copy] - other.own[Copy]
		mine, theirs := o.unknown+o.fed, other.unknown+other.fed
		o.unknown, o.fed = mine-theirs, theirs
		o.base = other.all()
	default:
		o.basis = basis{rung: RungHistory}
		o.excess = [Kinds]float64{}
		o.unknown, o.fed = 0, 0
		o.base = o.all()
	}
}

// partner returns the outcome of the other row of a pair.
func (c *comparer) partner(row int32) *outcome { return &c.out[c.partnerRow(row)] }

func (c *comparer) partnerRow(row int32) int32 {
	co := &c.ladder.cohorts[c.ladder.at[levelRole][row]]
	for _, i := range co.members {
		if i != row {
			return i
		}
	}
	return row
}

// common takes out of what ranks differ by from their own past what the others among
// them differ by as well: that befell the job, and none of them. Hosts lose time, or take
// longer for all they do; the more of both is common. It returns how many they are.
func (c *comparer) common(out []outcome) int {
	of := func(x func(o *outcome) float64) stats.Middle {
		c.v = c.v[:0]
		for i := range out {
			if o := &out[i]; o.past.known {
				c.v = append(c.v, x(o))
			}
		}
		return stats.SelectMiddle(c.v)
	}
	lost := func(o *outcome) float64 { return o.own[Host] - o.past.host }
	longer := func(o *outcome) float64 { return o.own[Host]/max(o.past.host, leastBase) - 1 }
	slower := func(o *outcome) float64 { return o.device/max(o.past.device, leastBase) - 1 }
	ml, mr, ms := of(lost), of(longer), of(slower)
	if ml.Len() < 2 {
		return ml.Len()
	}
	for i := range out {
		o := &out[i]
		if !o.past.known {
			continue
		}
		o.past.commonHost = max(0, min(max(ml.Without(lost(o)), mr.Without(longer(o))*o.past.host), lost(o)))
		o.excess[Host] -= o.past.commonHost
		o.past.commonDevice = max(0, ms.Without(slower(o))*o.past.device)
		if o.rung == RungHistory {
			o.excess[Compute] -= o.past.commonDevice
		}
	}
	return ml.Len()
}
