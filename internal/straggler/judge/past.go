// SPDX-License-Identifier: Apache-2.0

package judge

import "github.com/lockstep-otel/lockstep/internal/stats"

// leastHistory is how many steps of its own a rank without peers is compared with.
const leastHistory = 8

// lasting is by how many standard deviations of what is usual an excess must be beyond it to
// last: noise with memory stays at two or three of them for as long as a fault would.
const lasting = 4

// lastingSteps is after how many steps an excess that still lasts is what is usual: what was
// before is older by then than all else that is remembered of the job.
const lastingSteps = longMemory

// usual is what a rank without peers is compared with: what it did in the steps before,
// but for those of an excess that still lasts. These would become what is usual, and the
// excess would seem to be over while it goes on.
type usual struct {
	host, device pastTime
	last         uint32 // frame in which the rank had no peers
}

// pastTime is a rank's time in the steps that count as usual, and its excess in the latest.
type pastTime struct {
	s            []float64 // ring of Window
	at           int
	excess       [leastHistory]float64 // ring, shares of the own time
	common       [leastHistory]float64 // ring, shares that befell the others without peers as well
	seen         int                   // in these two
	lasted       int                   // steps that were kept out of s; one let in, as chance does, takes some back
	typical      float64
	spread       float64 // of s, standard deviation
	typicalKnown bool
}

func (p *pastTime) add(s float64, window int) {
	p.typicalKnown, p.lasted = false, max(0, p.lasted-leastHistory)
	if len(p.s) < window {
		p.s = append(p.s, s)
		return
	}
	p.s[p.at] = s
	p.at = (p.at + 1) % window
}

// note takes the latest excess, and how much of it was the job's.
func (p *pastTime) note(excess, common float64) {
	i := p.seen % leastHistory
	p.excess[i], p.common[i] = excess, common
	p.seen++
}

// held reports whether an excess lasts that is the rank's own. After a change of the job
// nobody's past says what is usual, so that it is learnt anew.
func (p *pastTime) held(least float64, buf []float64) bool {
	if p.seen < leastHistory {
		return false
	}
	middle := func(of *[leastHistory]float64) float64 { return stats.SelectMedian(append(buf[:0], of[:]...)) }
	return middle(&p.excess) > least && middle(&p.common) < least
}

// ownHistory compares a rank that has no peers with itself in the steps before: its
// host always, its device where nobody ran the same kernels.
func (j *Judge) ownHistory(n int32, f *frame, r *Row, o *outcome) {
	u := j.usualOf(n, f)
	if len(u.host.s) < leastHistory {
		return
	}
	o.past = past{known: true, host: j.typical(&u.host), device: j.typical(&u.device)}
	if r.Undivided { // it was divided before
		o.past.host = o.own[Host]
	}
	o.excess[Host] = o.own[Host] - o.past.host
	if o.rung == RungHistory {
		o.excess[Compute] = o.device - o.past.device
		o.compared = true
	}
}

func (j *Judge) typical(p *pastTime) float64 {
	if !p.typicalKnown {
		j.v = append(j.v[:0], p.s...)
		p.typical, p.spread = stats.Spread(j.v)
		p.typicalKnown = true
	}
	return p.typical
}

// usualOf returns what is usual for a rank without peers. Of one that had some until
// lately it is what the window knows.
func (j *Judge) usualOf(n int32, f *frame) *usual {
	h := &j.history
	m := &h.members[n]
	if m.usual == nil || f.number-m.usual.last > uint32(h.window) {
		m.usual = &usual{}
		h.each(func(g *frame) {
			if e := h.at(n, g); g != f && e != nil {
				m.usual.host.add(float64(e.own-e.device), h.window)
				m.usual.device.add(float64(e.device), h.window)
			}
		})
	}
	m.usual.last = f.number
	return m.usual
}

// learn lets a step count as usual, unless an excess lasts. Of a single rank without
// peers nobody knows whether it is its own or the job's.
func (j *Judge) learn(n int32, o *outcome, alone bool) {
	if n < 0 {
		return
	}
	u := j.history.members[n].usual
	if u == nil || u.last+1 != j.history.count {
		return
	}
	part := func(p *pastTime, s, excess, common float64) {
		share := 1 / max(leastBase, o.past.host+o.past.device)
		if o.past.known {
			p.note(share*excess, share*common)
		}
		if alone || !p.held(max(j.cfg.MinExcessShare/2, lasting*share*p.spread), j.v) {
			p.add(s, j.history.window)
			return
		}
		if p.lasted++; p.lasted >= lastingSteps {
			j.history.members[n].usual = nil // what the window knows is
		}
	}
	part(&u.host, o.own[Host], o.excess[Host], o.past.commonHost)
	part(&u.device, o.device, o.device-o.past.device-o.past.commonDevice, o.past.commonDevice)
}
