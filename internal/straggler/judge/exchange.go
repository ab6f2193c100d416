// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// What a rank computes after an all_to_all may be as much as its peers sent it, as in
// an expert group. Where nothing says how much that was, more work and a slower device
// look alike there. A slow device is slow elsewhere, too.

// swap is what the rows of a cohort did under one name, as far as it tells whether the
// amount is known.
type swap struct {
	between, outside bool    // of all_to_all's
	unsent           bool    // bytes are not known of all of it
	least, most      float64 // bytes for each operation
	rows             int32
	lastRow          int32
	units            map[int32]int32 // by unit, the rows that have it
}

// exchanges marks work whose amount came from peers and was recorded by nobody. Where
// the bytes that the rows sent back differ, they are the amount.
func (c *comparer) exchanges() {
	if c.swaps != nil {
		clear(c.swaps)
	}
	some := false
	for i := range c.works {
		if some = c.works[i].between > 0; some {
			break
		}
	}
	if !some {
		return
	}
	if c.swaps == nil {
		c.swaps = map[int32]*swap{}
	}
	for i := range c.works {
		c.swap(&c.works[i])
	}
	for i := range c.works {
		w := &c.works[i]
		switch s := c.swaps[w.name]; {
		case !s.between || s.shapesDiffer():
		case s.outside:
			// What part of its time was the peers' nobody says.
			w.unknown = s.sentMore(w)
		case !s.unsent && differs(s.least, s.most):
			w.amount = w.sent
		default:
			w.unknown = true
		}
	}
}

// swap adds what a row did in a unit. Rows come one after the other.
func (c *comparer) swap(w *work) {
	s := c.swaps[w.name]
	if s == nil {
		s = &swap{least: math.Inf(1), lastRow: -1, units: map[int32]int32{}}
		c.swaps[w.name] = s
	}
	if s.lastRow != w.row {
		s.lastRow = w.row
		s.rows++
	}
	s.units[w.unit]++
	n := w.count()
	s.between = s.between || w.between > 0
	s.outside = s.outside || float64(w.between) < n
	if w.between == 0 {
		return
	}
	each := w.sent / float64(w.between)
	s.unsent = s.unsent || each == 0
	s.least, s.most = min(s.least, each), max(s.most, each)
}

// shapesDiffer reports whether some row lacks a shape that another has: then shapes say
// how much each had to do.
func (s *swap) shapesDiffer() bool {
	for _, n := range s.units {
		if n < s.rows {
			return true
		}
	}
	return false
}

// sentMore reports whether the row sent back more than another.
func (s *swap) sentMore(w *work) bool {
	if w.between == 0 || s.unsent {
		return false
	}
	each := w.sent / float64(w.between)
	return each > s.least && differs(each, s.least)
}

// rest is by how much a rank stands out without the work whose amount nobody recorded.
type rest struct {
	device, deviceSigma float64 // as a share of what the device's other work took
	all, allSigma       float64 // device and host, as a share of the peers' own time
	unknown             float64 // share that lies in such work
	steps               int
}

func (t *trial) restOf(s *standing, frames []*frame) (r rest) {
	devices := make([]float64, 0, len(frames))
	all := make([]float64, 0, len(frames))
	unknown := make([]float64, 0, len(frames))
	for _, f := range frames {
		e := t.h.at(s.n, f)
		if e == nil || e.flags&entryCompared == 0 {
			continue
		}
		other := float64(e.device) - e.slow() - float64(e.fed)
		devices = append(devices, (e.slow()-float64(e.unknown))/max(other, leastBase))
		all = append(all, e.share(e.net()-float64(e.unknown)))
		unknown = append(unknown, e.share(float64(e.unknown)))
	}
	r.steps = len(all)
	r.device, r.deviceSigma = stats.Spread(devices)
	r.all, r.allSigma = stats.Spread(all)
	r.unknown = stats.SelectMedian(unknown)
	return r
}

// workUnknown reports whether a rank would not stand out but for work whose amount came
// from peers and was recorded by nobody.
func (t *trial) workUnknown(s *standing, frames []*frame) bool {
	r := t.restOf(s, frames)
	return r.unknown > 0 && !t.stands(s, r.device, r.deviceSigma, r.steps) && !t.stands(s, r.all, r.allSigma, r.steps)
}

// stands reports whether a share is more than the gate and than chance does.
func (t *trial) stands(s *standing, share, sigma float64, steps int) bool {
	if share < t.cfg.MinExcessShare || steps < leastSteps {
		return false
	}
	_, p := t.chanceOf(share, sigma, steps, s.level)
	return p*float64(len(t.ranks)*t.looks)*young(steps) <= rankAlarm*t.cfg.MaxFalseAlarm
}

// heldByWork reports the same of the steps in which a rank was held up.
func (t *trial) heldByWork(p *pausing) bool {
	frames := make([]*frame, 0, len(p.events))
	for _, k := range p.events {
		frames = append(frames, t.frames[k])
	}
	r := t.restOf(p.s, frames)
	return r.unknown > 0 && max(r.device, r.all) < t.cfg.MinExcessShare
}
