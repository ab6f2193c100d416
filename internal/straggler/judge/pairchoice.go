// SPDX-License-Identifier: Apache-2.0

package judge

// pairChoices tells which of two peers runs another kernel for the same work: the two only
// differ, and what most of the job runs for that purpose says which of them is as it should be.
// That both have as much to do is known by their being peers, and as many operations.
func (c *comparer) pairChoices(all *cohort) {
	c.purposes, c.doubts = c.purposes[:0], c.doubts[:0]
	c.serving = grown(c.serving, len(all.members))
	clear(c.serving)
	for i := range c.works {
		c.addGoal(&c.works[i])
	}
	for _, g := range c.groups {
		c.pairGoal(all, g)
	}
	if len(c.doubts) == 0 {
		return
	}
	c.slowDevices(len(all.members))
	for _, d := range c.doubts {
		row := c.purposes[d.at].row
		o := &c.out[all.members[row]]
		c.decide(&d, c.devices[row], o)
	}
}

// pairGoal finds rows of pairs that serve a purpose by another kernel than their partner and
// most of the job do.
func (c *comparer) pairGoal(all *cohort, g int32) {
	have := 0
	for p := c.lastGoal[g]; p != 0; p = c.purposes[p-1].prev {
		have++
	}
	usual, several := c.usualName(g, have)
	if !several || c.counts[usual] < minCohort {
		return
	}
	for p := c.lastGoal[g]; p != 0; p = c.purposes[p-1].prev {
		c.serving[c.purposes[p-1].row] = p
	}
	for p := c.lastGoal[g]; p != 0; p = c.purposes[p-1].prev {
		q := &c.purposes[p-1]
		row := all.members[q.row]
		if q.name == usual || !c.out[row].lonely || !c.out[row].pair {
			continue
		}
		at := c.serving[c.partnerRow(row)]
		if at == 0 {
			continue
		}
		other := &c.purposes[at-1]
		if other.name != usual || differs(q.count, other.count) || differs(q.work, other.work) {
			continue
		}
		over := q.time - other.time
		c.doubts = append(c.doubts, doubt{at: p - 1, over: over})
		c.out[all.members[other.row]].usual += max(0, -over)
	}
	for p := c.lastGoal[g]; p != 0; p = c.purposes[p-1].prev {
		c.serving[c.purposes[p-1].row] = 0
	}
}
