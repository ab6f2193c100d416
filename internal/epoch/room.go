// SPDX-License-Identifier: Apache-2.0

package epoch

import (
	"cmp"
	"slices"
)

// room makes room for one register of an observer in save n, and reports whether there is some: where that save
// itself had to leave there is none. What leaves leaves whole, since of a save of which a part was
// left out nothing could be confirmed ever.
func (e *Engine) room(g *generation, n int64, by int32) bool {
	for e.stats.Registers >= e.cfg.Registers {
		fullest := e.fullest(g.of)
		if fullest == nil {
			return false
		}
		lowest := slices.Min(sortedKeys(fullest.saves))
		e.stats.SavesLost++
		e.drop(fullest, lowest)
		if fullest == g && lowest == n {
			return false
		}
	}
	e.stats.Registers++
	e.held[by]++
	g.registers++
	if g.of.observers[by]++; g.of.observers[by] == 1 {
		e.moves++
		g.of.share.Add(observerBytes)
	}
	return true
}

// fullest is the generation that makes room for a register of a job: of the job that leaves first the one with
// most registers, of several the first by name.
func (e *Engine) fullest(beside *job) (best *generation) {
	j := e.shares.LargestBy(func(j *job) int {
		n := 0
		for _, g := range j.generations {
			n += g.registers
		}
		return n + besides(j, beside)
	})
	for _, name := range sortedKeys(j.generations) {
		if g := j.generations[name]; len(g.saves) > 0 && (best == nil || g.registers > best.registers) {
			best = g
		}
	}
	return best
}

// freeObserver drops the jobs that hold an observer, and returns its number. It decides which jobs can leave
// before one does: where the job that asks had to leave itself it returns -1, and drops none. It does not look
// again for a job that it refused until something has changed: a flood of such observers would cost a walk each.
func (e *Engine) freeObserver(beside *job) int {
	if beside.refused > 0 && e.moves-(beside.refused-1) <= e.cfg.Observers/64 {
		return -1
	}
	gone, held := map[*job]bool{}, slices.Clone(e.held)
	for {
		most := e.mostObservers(beside, gone)
		if most == beside {
			beside.refused = e.moves + 1
			return -1
		}
		gone[most] = true
		var free []int32
		for by, n := range most.observers {
			if held[by] -= n; held[by] == 0 {
				free = append(free, by)
			}
		}
		if len(free) > 0 {
			return e.dropHolders(free, gone)
		}
	}
}

// dropHolders drops those of some jobs that hold one of several observers, and returns its number: of the one
// that fewest of them hold, of several the lowest.
func (e *Engine) dropHolders(of []int32, jobs map[*job]bool) int {
	holders := func(by int32) (n int) {
		for j := range jobs {
			if j.observers[by] > 0 {
				n++
			}
		}
		return n
	}
	free := slices.MinFunc(of, func(a, b int32) int {
		return cmp.Or(cmp.Compare(holders(a), holders(b)), cmp.Compare(a, b))
	})
	for j := range jobs {
		if j.observers[free] > 0 {
			e.dropJob(j)
		}
	}
	return int(free)
}

// mostObservers is the job that makes room for an observer of a job, but for those that are gone.
func (e *Engine) mostObservers(beside *job, gone map[*job]bool) *job {
	return e.shares.LargestBy(func(j *job) int {
		if gone[j] {
			return 0
		}
		return len(j.observers) + besides(j, beside)
	})
}

// besides is 1, which the job that needs room asks for.
func besides(j, beside *job) int {
	if j == beside {
		return 1
	}
	return 0
}

func (e *Engine) drop(g *generation, n int64) {
	g.saves[n].each(func(_ int32, c *cell) { e.unregister(g, c) })
	g.of.share.Add(-g.saves[n].bytes)
	delete(g.saves, n)
}

// unregister counts a register that is given up.
func (e *Engine) unregister(g *generation, c *cell) {
	e.stats.Registers--
	e.held[c.observer]--
	g.registers--
	if g.of.observers[c.observer]--; g.of.observers[c.observer] == 0 {
		delete(g.of.observers, c.observer)
		e.moves++
		g.of.share.Add(-observerBytes)
	}
}

// each calls f with all registers in which something was said, and of which domain that is.
func (s *save) each(f func(at int32, c *cell)) {
	for at := range s.cells {
		if s.cells[at].value.state != silent {
			f(int32(at), &s.cells[at])
		}
	}
	for at, more := range s.more {
		for i := range more {
			f(at, &more[i])
		}
	}
}

func (e *Engine) dropJob(j *job) {
	for name := range j.generations {
		e.dropGeneration(j, name)
	}
	j.share.Leave()
	delete(e.jobs, j.id)
}

// evictGeneration drops the generation whose newest save is the oldest.
func (e *Engine) evictGeneration(j *job) {
	var oldest string
	var best int64
	for name, g := range j.generations {
		newest := g.newest()
		if oldest == "" || cmp.Or(cmp.Compare(newest, best), cmp.Compare(name, oldest)) < 0 {
			oldest, best = name, newest
		}
	}
	e.dropGeneration(j, oldest)
}

func (e *Engine) dropGeneration(j *job, name string) {
	g := j.generations[name]
	for n := range g.saves {
		e.drop(g, n)
	}
	g.grow(-g.bytes)
	e.stats.JobsLost++
	delete(j.generations, name)
}

// sweep gives up what those observers said that were forgotten, which no view counts.
func (e *Engine) sweep() {
	if !slices.Contains(e.gone, true) {
		return
	}
	for _, j := range e.jobs {
		for _, g := range j.generations {
			for _, s := range g.saves {
				s.sweep(func(c *cell) bool {
					if e.gone[c.observer] {
						e.unregister(g, c)
					}
					return e.gone[c.observer]
				})
				g.count(s)
			}
		}
	}
}

// sweep gives up the registers that are over; of their domains only remains that they are of the save.
func (s *save) sweep(over func(*cell) bool) {
	s.spoke, s.others = 0, 0
	for at := range s.cells {
		c := &s.cells[at]
		if c.value.state == silent {
			continue
		}
		if s.tells(int32(at)) {
			s.told.add(int32(at))
		}
		all := append([]cell{*c}, s.more[int32(at)]...)
		all = slices.DeleteFunc(all, func(c cell) bool { return over(&c) })
		for i := range all {
			if all[i].value.speaks() {
				s.spoke++
			}
		}
		*c = cell{}
		delete(s.more, int32(at))
		if len(all) > 0 {
			*c = all[0]
		}
		if len(all) > 1 {
			s.more[int32(at)] = all[1:]
			s.others += len(all) - 1
		}
	}
}
