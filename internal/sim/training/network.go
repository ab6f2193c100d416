// SPDX-License-Identifier: Apache-2.0

package training

// Figures of the network, bytes per ns and ns.
const (
	cardSpeed   = 45.0  // of each device's own card
	insideSpeed = 300.0 // within a node
	cardDelay   = 12e3
	insideDelay = 6e3
	hopDelay    = 1.5e3 // of a small message, for each doubling of the members
)

// wire is what a fault does to what is sent from one rank to another.
type wire struct {
	src, dst int // none is any
	factor   float64
	inside   bool // within the node
}

// pair reports whether the wire is not all of a card's.
func (w *wire) pair() bool { return w.inside || (w.src != none && w.dst != none) }

// slowGroups notes by how much the slowest hop of each communicator is slower.
func (j *Job) slowGroups() {
	for _, at := range j.slowed {
		j.slow[at[0]][at[1]] = 1
	}
	j.slowed = j.slowed[:0]
	for i := range j.wires {
		w := &j.wires[i]
		for k := range commPP {
			j.slowGroup(k, w)
		}
	}
}

func (j *Job) slowGroup(k commKind, w *wire) {
	n := j.size(k)
	if n == 1 {
		return
	}
	r := w.src
	if r == none {
		r = w.dst
	}
	group, member := j.group(k, r)
	c := &j.comms[k][group]
	if c.wide == w.inside {
		return
	}
	factor := w.factor
	if w.src != none && w.dst != none {
		g, _ := j.group(k, w.dst)
		switch {
		case g != group:
			return
		case k == commEP: // one of many messages that share the card
			factor = max(1, factor/float64(n-1))
		case j.next(k, c, group, member) != w.dst:
			return
		}
	}
	if factor > j.slow[k][group] {
		j.slow[k][group] = factor
		j.slowed = append(j.slowed, [2]int{int(k), group})
	}
}

// hop returns by how much what a rank sends to another is slower.
func (j *Job) hop(src, dst int, inside bool) float64 {
	f := 1.0
	if !inside {
		f = max(j.effects[src].tx, j.effects[dst].rx)
	}
	for i := range j.wires {
		if w := &j.wires[i]; w.pair() && w.inside == inside && w.src == src && (w.dst == none || w.dst == dst) {
			f = max(f, w.factor)
		}
	}
	return f
}

// transfer returns how long a collective takes once all have come: its delay, and
// the time on the wire at the usual speed.
func (j *Job) transfer(k commKind, group int, it *item) (delay, wire float64) {
	n := float64(j.size(k))
	speed := insideSpeed
	delay = insideDelay
	if j.comms[k][group].wide {
		speed, delay = cardSpeed, cardDelay
	}
	delay += hopDelay * j.doublings[k]
	bytes := it.bytes * (n - 1) / n
	if it.fn == fnAllReduce {
		bytes *= 2
	}
	return delay, bytes / speed
}

// sent returns what a rank's own card was busy with in a collective, ns, and 0 where
// it sent nothing over the network.
func (j *Job) sent(r int, it *item) float64 {
	group, member := j.group(it.comm, r)
	c := &j.comms[it.comm][group]
	if !c.wide || j.size(it.comm) == 1 {
		return 0
	}
	_, wire := j.transfer(it.comm, group, it)
	return wire * j.hop(r, j.next(it.comm, c, group, member), false)
}
