// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// countPair is what an optimizer and its scheduler count in one save of accelerate. The name of a save need not
// be a step, and a scheduler that accelerate prepared counts each step once a process.
type countPair struct {
	id                   string // which of several pairs
	of                   string // which of several optimizers
	optimizer, scheduler counter
	world                int64                 // processes, 1 or more
	step                 model.Optional[int64] // that the name of the save says
	batches              model.Optional[int64] // that accelerate has counted, where no scaler skips steps
	save                 string                // the path of its folder
}

// natural reports whether the scheduler counts every step, once or once a process.
func (p *countPair) natural() bool {
	return p.scheduler.n == p.optimizer.n || p.scheduler.n == p.optimizer.n*p.world
}

// countOptimizer reads an optimizer and notes its count.
func (a *accelerated) countOptimizer(entry string, i int, name string) {
	s := a.countedShard(i, name)
	if s.bare {
		a.bare = append(a.bare, s)
	} else {
		a.stateful = true
	}
	if s.known {
		a.optimizers[pairOf(entry, "optimizer")] = counter{domain: a.save.Domains[i].Domain, of: entry, file: name, n: s.step}
	}
}

// countShards notes what the optimizer in a folder of FSDP counts, in the file of each rank.
func (a *accelerated) countShards(entry string, inner *builder) {
	id := strings.TrimPrefix(pairOf(entry, "optimizer"), "_0") + ".bin"
	a.shards[id] = append(a.shards[id], shardCounters(a.builder, inner, entry)...)
}

// countBatches reads how many batches accelerate has counted by the random states of rank 0. A new pass over the
// data begins at 0.
func (a *accelerated) countBatches(z *torch) {
	if z == nil {
		return
	}
	if n, ok := z.number("step"); ok && n > 0 && !a.f.has("scaler.pt") {
		a.batches = model.Some(n)
	}
}

// countScheduler reads a scheduler and notes its count.
func (a *accelerated) countScheduler(entry string, i int, name string) {
	z := a.torchShard(i, name, nil)
	if z == nil {
		return
	}
	if n, ok := schedulerSteps(z); ok {
		a.schedulers[pairOf(entry, "scheduler")] = counter{domain: a.save.Domains[i].Domain, of: entry, file: name, n: n}
	}
}

// wantAverages doubts optimizers that all lack their averages, where a scheduler or the name of the save counts steps.
func (a *accelerated) wantAverages() {
	made := int64(0)
	if a.save.Epoch.OK && stepNamed(a.f.path) {
		made = a.save.Epoch.V
	}
	for _, s := range a.schedulers {
		made = max(made, s.n)
	}
	if made < 1 || a.stateful || a.f.has("scaler.pt") {
		return
	}
	for _, s := range a.bare {
		noAverages(a.builder, s.domain, s.file, steps(made))
	}
}

// pairOf is what an optimizer's name and its scheduler's have in common.
func pairOf(entry, prefix string) string { return strings.TrimPrefix(entry, prefix) }

// pairCounts pairs optimizers with their schedulers. One without a scheduler counts beside the step of the
// save, where its name says one.
func (a *accelerated) pairCounts() {
	for _, id := range slices.Sorted(maps.Keys(a.optimizers)) {
		a.pairCount(id, id, a.optimizers[id])
	}
	for _, id := range slices.Sorted(maps.Keys(a.shards)) {
		for _, o := range a.shards[id] {
			a.pairCount(id+" "+o.of, id, o)
		}
	}
}

// pairCount pairs an optimizer, called by id, with the scheduler of that name.
func (a *accelerated) pairCount(id, scheduler string, o counter) {
	s, ok := a.schedulers[scheduler]
	step := some(a.save.Epoch.V, a.save.Epoch.OK && stepNamed(a.f.path))
	switch {
	case ok:
		a.save.pairs = append(a.save.pairs, countPair{id, scheduler, o, s, max(1, int64(len(a.ranks))), step, a.batches, a.f.path})
	case step.OK:
		o.step, o.want, o.optimizer = step.V, step.V, scheduler
		a.save.counters = append(a.save.counters, o)
	default:
		a.save.alone = append(a.save.alone, countPair{id: id, of: scheduler, optimizer: o, save: a.f.path})
	}
}

// judgePairs compares optimizers and schedulers with those of older saves.
func (s *scan) judgePairs() {
	var saves []*Save
	for i := range s.root.Saves {
		if save := &s.root.Saves[i]; save.Epoch.OK && len(save.pairs)+len(save.alone) > 0 {
			saves = append(saves, save)
		}
	}
	slices.SortStableFunc(saves, func(a, b *Save) int { return cmp.Compare(a.Epoch.V, b.Epoch.V) })
	older, alone := map[string][]*countPair{}, map[string][]*countPair{}
	for _, save := range saves {
		var stay []staying
		goOn := map[string]bool{}
		for i := range save.alone {
			p := &save.alone[i]
			if why := s.stale(p, alone[p.id]); why != "" {
				stay = append(stay, staying{p, why, p.unchanged(alone[p.id])})
			} else {
				goOn[p.of] = true
			}
			alone[p.id] = append(alone[p.id], p)
		}
		for i := range save.pairs {
			p := &save.pairs[i]
			if c, why := p.doubt(older[p.id]); why != "" {
				s.doubtCount(save, c, why)
				goOn[p.of] = goOn[p.of] || c == &p.scheduler
			} else if why := cmp.Or(p.stayed(older[p.id]), s.stale(p, older[p.id])); why != "" {
				stay = append(stay, staying{p, why, p.unchanged(older[p.id])})
			} else {
				goOn[p.of] = true
			}
			older[p.id] = append(older[p.id], p)
		}
		maps.DeleteFunc(goOn, func(_ string, does bool) bool { return !does })
		s.judgeStaying(save, stay, goOn)
	}
}

func (s *scan) doubtCount(save *Save, c *counter, why string) {
	s.doubtDomain(save, c.domain, Problem{CheckWitness, Suspect, c.file, fmt.Sprintf("got a count of %d steps; want %s: it is of another save, or was started anew", c.n, why)})
}

// alike reports whether another save counts the same.
func (p *countPair) alike(o *countPair) bool {
	return o.optimizer.n == p.optimizer.n && o.scheduler.n == p.scheduler.n
}

// stayed says what both should count where neither has gone on since an older save, although the step in the name
// of the save, or accelerate's count of batches, has, by what makes two steps or more. "" where nothing is wrong.
func (p *countPair) stayed(older []*countPair) string {
	const steps = 2
	gone := func(now, then model.Optional[int64], count int64) bool {
		if !now.OK || !then.OK || then.V < 1 {
			return false
		}
		most := max(now.V-then.V, then.V-now.V)
		return float64(most)*float64(count)/float64(then.V) >= steps && most >= steps
	}
	if len(older) == 0 {
		return ""
	}
	old := older[len(older)-1]
	if old.optimizer.n > p.optimizer.n && old.scheduler.n > p.scheduler.n && slices.ContainsFunc(older, p.alike) {
		return fmt.Sprintf("more than %d, which %s counts", old.optimizer.n, old.optimizer.file)
	}
	switch {
	case !p.alike(old) || slices.ContainsFunc(older[:len(older)-1], func(o *countPair) bool { return o.optimizer.n == old.optimizer.n }):
		return "" // or nothing of it counts steps
	case p.step.OK && gone(p.step, old.step, old.optimizer.n):
		return fmt.Sprintf("more than %d, which step %d counts", old.optimizer.n, old.step.V)
	case gone(p.batches, old.batches, min(old.optimizer.n, old.batches.V)):
		return fmt.Sprintf("more than %d, as in %s, since when accelerate's count of batches went from %d to %d", old.optimizer.n, old.optimizer.file, old.batches.V, p.batches.V)
	}
	return ""
}

// doubt returns the counter that did not go on since an older save, and what it should count. A save that is
// made at once after another goes on by nothing, a scheduler by epochs by one in many steps.
func (p *countPair) doubt(older []*countPair) (of *counter, want string) {
	o, s := &p.optimizer, &p.scheduler
	least := 2 * p.world
	constant := len(older) > 1
	for _, old := range older {
		constant = constant && old.scheduler.n == s.n
	}
	for _, old := range slices.Backward(older) {
		if p.natural() && !old.natural() {
			continue // the older save is the odd one
		}
		was, then := old.optimizer.n, old.scheduler.n
		ahead := float64(then) / float64(max(was, 1)) * float64(o.n-was)
		switch {
		case s.n > then && o.n < was, s.n >= then+least && o.n == was:
			return o, goneOn(old.optimizer, old.scheduler.n, s)
		case o.n > was && s.n < then, !constant && s.n == then && ahead >= float64(least):
			return s, goneOn(old.scheduler, old.optimizer.n, o)
		}
	}
	return nil, ""
}

func goneOn(of counter, from int64, other *counter) string {
	return fmt.Sprintf("more than %d, as in %s, since when %s went on from %d to %d", of.n, of.file, other.of, from, other.n)
}

// stepNamed reports whether the number in the name of a save is its step.
func stepNamed(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	return strings.HasPrefix(name, hfPrefix) || strings.HasPrefix(name, stepOf)
}
