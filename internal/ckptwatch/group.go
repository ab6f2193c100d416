// SPDX-License-Identifier: Apache-2.0

package ckptwatch

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// group is the saves of one epoch. Which of several a resume takes is not known, so that a domain
// is what the least of them is.
type group struct {
	epoch    int64
	world    model.Optional[int64]
	domains  []ckpt.Domain // one of each, in a fixed order
	unproven string
	weights  ckpt.Weights
	alone    bool      // it is complete, and of weights alone
	first    time.Time // write of any
	shaky    bool      // a part could not be read at all
}

// group sorts the saves of a folder by what they are called.
func (w *Watcher) group(root *ckpt.Root) []group {
	var all []group
	at := map[int64]int{}
	for i := range root.Saves {
		s := &root.Saves[i]
		e := s.Called()
		if !e.OK {
			w.stats.Unnamed++
			continue
		}
		k, ok := at[e.V]
		if !ok {
			k = len(all)
			at[e.V] = k
			all = append(all, group{epoch: e.V})
		}
		g := &all[k]
		g.world = model.Optional[int64]{V: max(g.world.V, s.World.V), OK: g.world.OK || s.World.OK}
		g.domains = append(g.domains, s.Domains...)
		g.unproven = cmp.Or(g.unproven, unproven(s))
		g.weights.Add(s, w.cfg.Where != "")
		if at := s.FirstWrite; !at.IsZero() && (g.first.IsZero() || at.Before(g.first)) {
			g.first = at
		}
		g.shaky = g.shaky || unreadable(s.Problems)
	}
	for i := range all {
		all[i].merge()
		all[i].judgeWeights()
	}
	return all
}

// judgeWeights notes that the saves are complete, and of weights alone: whatever their times say, a resume can not
// take them.
func (g *group) judgeWeights() {
	if !g.weights.Alone() || g.unproven != "" {
		return
	}
	domains := make([]ckpt.Domain, 0, len(g.domains))
	for i := range g.domains {
		d := g.domains[i].Trusted(model.Some(g.epoch))
		if d.Kind != model.DomainTracker && (d.State != model.DomainCommitted || d.Epoch != model.Some(g.epoch)) {
			return
		}
		domains = append(domains, d)
	}
	g.domains, g.alone = domains, true
}

// merge leaves the least of each domain.
func (g *group) merge() {
	slices.SortStableFunc(g.domains, func(a, b ckpt.Domain) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID), cmp.Compare(g.rank(&a), g.rank(&b)))
	})
	g.domains = slices.CompactFunc(g.domains, func(a, b ckpt.Domain) bool { return a.Domain == b.Domain })
}

// rank orders what a domain may be: what holds another epoch is told before what is not there.
func (g *group) rank(d *ckpt.Domain) int {
	switch {
	case d.State == model.DomainCommitted && d.Epoch.OK && d.Epoch.V != g.epoch:
		return 0
	case d.State == model.DomainCommitted && d.Epoch.OK:
		return 3
	case d.State == model.DomainAbsent:
		return 1
	}
	return 2
}

// unproven says why a save is not confirmed though all of its domains are.
func unproven(s *ckpt.Save) string {
	switch {
	case s.Unproven != "":
		return s.Unproven
	case s.WorldUnknown:
		return "nothing says how many ranks wrote it"
	}
	return ""
}
