// SPDX-License-Identifier: Apache-2.0

package kair

import (
	"cmp"
	"maps"
	"slices"
)

// votes counts in how many of the recent steps each rank was blamed.
type votes struct {
	span        int
	now, before ballot
}

// ballot are the votes of a span of steps.
type ballot struct {
	steps       int
	first, last int64
	of          map[int64]*vote
}

// vote is what was held against a rank.
type vote struct {
	steps       int
	first, last int64
	weight, z   float64
	peers       int
	charges     map[charge]float64 // weight
}

// charge is an operation and a class.
type charge struct {
	key   uint32
	class string
}

// maxCharges bounds the operations that are told apart of one rank.
const maxCharges = 64

func (v *votes) hear(number int64, list []blamed) {
	if v.now.of == nil || v.now.steps == v.span {
		v.before, v.now = v.now, ballot{of: map[int64]*vote{}, first: number}
	}
	v.now.steps++
	v.now.last = number
	for _, b := range list {
		o := v.now.of[b.rank]
		if o == nil {
			o = &vote{first: number, charges: map[charge]float64{}}
			v.now.of[b.rank] = o
		}
		o.steps++
		o.last = number
		o.weight += b.weight
		o.z += b.z
		o.peers = b.peers
		c := charge{b.key, b.class}
		if _, known := o.charges[c]; known || len(o.charges) < maxCharges {
			o.charges[c] += b.weight
		}
	}
}

// Accusation is a rank that was blamed in most of the recent steps.
type Accusation struct {
	Rank        int64
	Op          string // key of the root
	Class       string // compute, host or link
	Score       float64
	Share       float64 // of the recent steps
	Recent      int     // steps
	Steps       int     // of these, in which it was blamed
	First, Last int64   // of these
	Excess      float64 // s per step, what its roots explain
	Peers       int
	Gates       Gates
}

// Gates are the limits that an accusation passed: there are none of cost, of what is
// late, or of chance.
type Gates struct {
	Sigmas   float64
	MinShare float64
	MinSteps int
	Windows  int // of the rhythms, which accuse nobody
}

// accusations returns those of the recent steps, the one that was blamed most often
// first, and of these the one with most blame.
func (v *votes) accusations(cfg *Config, name func(uint32) string) []Accusation {
	total := v.now.steps + v.before.steps
	ranks := map[int64]bool{}
	for _, b := range []ballot{v.before, v.now} {
		for r := range maps.Keys(b.of) {
			ranks[r] = true
		}
	}
	var out []Accusation
	for r := range ranks {
		o := merge(v.before.of[r], v.now.of[r])
		share := float64(o.steps) / float64(total)
		if o.steps < cfg.MinSteps || share < cfg.MinShare {
			continue
		}
		c := o.heaviest()
		a := Accusation{
			Rank: r, Op: name(c.key), Class: c.class, Score: o.z / float64(o.steps), Share: share, Recent: total, Steps: o.steps,
			First: o.first, Last: o.last, Excess: o.weight / float64(o.steps) / 1e9, Peers: o.peers,
			Gates: Gates{Sigmas: cfg.Sigmas, MinShare: cfg.MinShare, MinSteps: cfg.MinSteps, Windows: cfg.Windows},
		}
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Accusation) int {
		return cmp.Or(cmp.Compare(b.Steps, a.Steps), cmp.Compare(b.Excess, a.Excess), cmp.Compare(a.Rank, b.Rank))
	})
	return out
}

func merge(a, b *vote) vote {
	out := vote{charges: map[charge]float64{}}
	for _, o := range []*vote{a, b} {
		if o == nil {
			continue
		}
		if out.steps == 0 {
			out.first = o.first
		}
		out.steps += o.steps
		out.last = o.last
		out.weight += o.weight
		out.z += o.z
		out.peers = o.peers
		for c, w := range o.charges {
			out.charges[c] += w
		}
	}
	return out
}

func (o *vote) heaviest() (best charge) {
	for c, w := range o.charges {
		if cmp.Or(cmp.Compare(w, o.charges[best]), cmp.Compare(best.key, c.key), cmp.Compare(best.class, c.class)) > 0 {
			best = c
		}
	}
	return best
}
