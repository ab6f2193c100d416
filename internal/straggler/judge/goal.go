// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// purpose is what one row did under one key.
type purpose struct {
	row                     int32
	time, slow, count, work float64
	name                    int32 // that holds most of time
	of                      float64
	odd                     bool // some of it nobody else did
	chosen                  bool // done by another kernel than the peers'
	unknown                 bool // how much it was nobody says
	place                   PlaceID
	prev                    int32
}

// goals sums units by key, and tells what slowness does not explain: another amount of
// work, or another kernel for it.
func (c *comparer) goals(co *cohort) {
	c.purposes = c.purposes[:0]
	for i := range c.works {
		c.addGoal(&c.works[i])
	}
	judged := map[int32]bool(nil)
	if len(co.judged) < len(co.members) {
		judged = make(map[int32]bool, len(co.judged))
		for _, i := range co.judged {
			judged[i] = true
		}
	}
	c.doubts = c.doubts[:0]
	for _, g := range c.groups {
		c.goal(co, g, judged)
	}
	if len(c.doubts) > 0 {
		c.slowDevices(len(co.members))
	}
	for _, d := range c.doubts {
		row := c.purposes[d.at].row
		c.decide(&d, c.devices[row], &c.out[co.members[row]])
	}
	for i := range c.works {
		w := &c.works[i]
		row := co.members[w.row]
		if c.purposes[w.goal].chosen {
			w.slow = 0
		}
		if judged == nil || judged[row] {
			c.charge(&c.out[row], w)
			if c.lossy {
				c.out[row].more(w)
			}
		}
	}
}

func (c *comparer) addGoal(w *work) {
	for int(w.group) >= len(c.lastGoal) {
		c.lastGoal = append(c.lastGoal, 0)
	}
	last := c.lastGoal[w.group]
	if last == 0 || c.purposes[last-1].row != w.row {
		if last == 0 {
			c.groups = append(c.groups, w.group)
		}
		c.purposes = append(c.purposes, purpose{row: w.row, name: w.name, prev: last})
		last = int32(len(c.purposes))
		c.lastGoal[w.group] = last
	}
	w.goal = last - 1
	p := &c.purposes[last-1]
	t := w.robust()
	if t > p.of {
		p.of, p.name, p.place = t, w.name, w.place
	}
	p.time += t
	if own := w.total(); own > 0 {
		p.slow += float64(w.slow) * t / own
	}
	p.count += w.count()
	p.work += w.amount
	p.odd = p.odd || (w.alone && !w.compared)
	p.unknown = p.unknown || w.unknown
}

// charge adds the slowness in a unit to its row.
func (c *comparer) charge(o *outcome, w *work) {
	own := w.total()
	if w.compared {
		o.covered += own
		if own > o.most {
			o.most, o.mostPeers = own, int(w.peers)
		}
	}
	if w.unknown {
		o.fed += own - float64(w.slow)
		o.unknown += float64(w.slow)
	}
	if w.slow == 0 || own <= 0 {
		return
	}
	for k := range w.own {
		o.excess[k] += float64(w.slow) * float64(w.own[k]) / own
	}
}

// goal judges one key.
func (c *comparer) goal(co *cohort, g int32, judged map[int32]bool) {
	n := len(co.members)
	of := func(f func(p *purpose) float64) stats.Middle {
		c.v = grown(c.v, n)
		clear(c.v)
		for p := c.lastGoal[g]; p != 0; p = c.purposes[p-1].prev {
			c.v[c.purposes[p-1].row] = f(&c.purposes[p-1])
		}
		return stats.SelectMiddle(c.v)
	}
	time := func(p *purpose) float64 { return p.time }
	count := func(p *purpose) float64 { return p.count }
	amount := func(p *purpose) float64 { return p.work }
	mt, mc, mw := of(time), of(count), of(amount)
	usual, has := c.usualName(g, n)
	for p := c.lastGoal[g]; p != 0; p = c.purposes[p-1].prev {
		q := &c.purposes[p-1]
		row := co.members[q.row]
		if judged != nil && !judged[row] {
			continue
		}
		o := &c.out[row]
		over := q.time - mt.Without(q.time)
		counts, works := differs(q.count, mc.Without(q.count)), differs(q.work, mw.Without(q.work))
		switch {
		case c.lossy && (counts || works || q.odd):
		case has && q.name != usual && !counts:
			if !q.unknown { // libraries choose by the amount
				c.doubts = append(c.doubts, doubt{p - 1, over, works})
			}
		case counts || works || q.odd:
			o.uneven = o.uneven || counts || works
			o.worked(q, over)
		case q.work > 0:
			o.even = true
		}
	}
}

// doubt is a purpose served by another kernel than the peers'.
type doubt struct {
	at    int32
	over  float64 // s beyond the peers
	works bool    // its amount of work is another, too
}

// unknownDevice is by how much a device may be slower that ran no kernel of its peers: by
// that few healthy ones differ.
const unknownDevice = 3 * workerSpread

// slowDevices fills by how much each row's device is slower in what its peers run, too.
func (c *comparer) slowDevices(rows int) {
	c.devices = grown(c.devices, rows)
	for i := range c.devices {
		c.devices[i] = unknownDevice
	}
	for from := 0; from < len(c.works); {
		row := c.works[from].row
		c.slowed = c.slowed[:0]
		for ; from < len(c.works) && c.works[from].row == row; from++ {
			c.slowed = withUnit(c.slowed, &c.works[from])
		}
		if len(c.slowed) > 0 {
			c.devices[row] = max(0, c.typicalSlowed())
		}
	}
}

// decide tells another kernel for the same work from other work. The grid of another
// kernel says nothing of amounts; what else the row did does.
//
// A device that is slower takes longer for any kernel: only what it takes longer for this
// one than for those that its peers run, too, is the choice.
func (c *comparer) decide(d *doubt, device float64, o *outcome) {
	q := &c.purposes[d.at]
	choice := d.over - device*(q.time-d.over)
	switch {
	case d.works && (o.uneven || !o.even):
		o.worked(q, d.over)
	case choice > 0:
		if choice > o.choice {
			o.choicePlace = q.place
		}
		o.choice += choice
		q.chosen = true
	}
}

// more adds what operations took longer by having more to do. Where spans were lost, of all
// that tells of amounts only that is left: sums differ by what is missing.
func (o *outcome) more(w *work) {
	if w.more == 0 {
		return
	}
	if float64(w.more) > o.work {
		o.workPlace = w.place
	}
	o.work += float64(w.more)
}

// worked adds what slowness does not explain of a purpose to the row's amount of work.
func (o *outcome) worked(q *purpose, over float64) {
	if rest := over - q.slow; math.Abs(rest) > 0 {
		if rest > o.work {
			o.workPlace = q.place
		}
		o.work += rest
	}
}

// usualName returns the name by which more than half of n rows do what the key says.
func (c *comparer) usualName(g int32, n int) (int32, bool) {
	if c.counts == nil {
		c.counts = map[int32]int{}
	}
	clear(c.counts)
	for p := c.lastGoal[g]; p != 0; p = c.purposes[p-1].prev {
		c.counts[c.purposes[p-1].name]++
	}
	for name, k := range c.counts {
		if 2*k > n {
			return name, len(c.counts) > 1
		}
	}
	return 0, false
}
