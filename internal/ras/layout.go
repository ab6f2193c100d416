// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"cmp"
	"fmt"
	"slices"
)

// Layout numbers the processes of one job: by their ranks in the world communicator, or, where the
// job has none, in the order of their hosts, process ids and devices.
type Layout struct{ world *world }

// Layouts returns one layout for each set of communicators that share processes, that of the most
// processes first. An answer has several such sets where replicas of a model share one RAS network.
func Layouts(s *Status) []*Layout {
	if w, err := findWorld(s); err == nil && s.GPUs == w.comm.Size {
		return []*Layout{w.layOut(s)}
	}
	var all []*Layout
	for _, part := range parts(s) {
		w, err := findWorld(part)
		if err != nil {
			w = &world{first: part.Comms[0].Hash}
			for i := range part.Comms {
				w.first = min(w.first, part.Comms[i].Hash)
			}
		}
		all = append(all, w.layOut(part))
	}
	slices.SortStableFunc(all, func(a, b *Layout) int {
		return cmp.Or(len(b.world.places)-len(a.world.places), cmp.Compare(a.world.first, b.world.first))
	})
	return all
}

// Job makes states of those communicators of an answer that the layout has. The answer may be
// another one than that which was laid out; where there are several layouts, Divide it first.
func (l *Layout) Job(s *Status, o Origin) *Job {
	of := *s
	of.Comms = slices.DeleteFunc(slices.Clone(s.Comms), func(c Comm) bool { return !l.Has(c.Hash) })
	return l.world.job(&of, o)
}

// Divide gives each of an answer's layouts its part of that answer, or of another one: communicators
// that no layout has are in none.
func Divide(layouts []*Layout, s *Status) []*Status {
	of := map[uint64]int{}
	parts := make([]*Status, len(layouts))
	for i, l := range layouts {
		part := *s
		part.Comms = nil
		parts[i] = &part
		for _, hash := range l.world.hashes {
			of[hash] = i
		}
	}
	for i := range s.Comms {
		if to, ok := of[s.Comms[i].Hash]; ok {
			parts[to].Comms = append(parts[to].Comms, s.Comms[i])
		}
	}
	return parts
}

// Has reports whether the layout has a communicator.
func (l *Layout) Has(hash uint64) bool {
	_, ok := l.world.places[place{hash, anyRank}]
	return ok
}

// Named reports whether the numbers are global ranks.
func (l *Layout) Named() bool { return l.world.comm != nil }

// Hash spells the communicator by which the job is known.
func (l *Layout) Hash() string {
	if l.Named() {
		return hashText(l.world.comm.Hash)
	}
	return hashText(l.world.first)
}

// anyRank stands in a place for the communicator itself.
const anyRank = -1

// parts splits an answer by which communicators share processes.
func parts(s *Status) (all []*Status) {
	of := make([]int, len(s.Comms)) // the first communicator of its part
	root := func(i int) int {
		for of[i] != i {
			of[i] = of[of[i]]
			i = of[i]
		}
		return i
	}
	seen := map[seat]int{}
	for i := range s.Comms {
		of[i] = i
		for p := range s.Comms[i].processes() {
			at, known := p.seat()
			switch {
			case known:
			case s.Prose: // it may be any of those that text does not list elsewhere
				at = seat{}
			default:
				continue
			}
			if before, ok := seen[at]; ok {
				a, b := root(before), root(i)
				of[max(a, b)] = min(a, b)
			}
			seen[at] = i
		}
	}
	by := map[int]*Status{}
	for i := range s.Comms {
		r := root(i)
		if by[r] == nil {
			part := *s
			part.Comms, part.GPUs = nil, 0
			by[r] = &part
			all = append(all, by[r])
		}
		by[r].Comms = append(by[r].Comms, s.Comms[i])
	}
	for _, part := range all {
		if s.Prose { // what it does not list may be anywhere
			part.GPUs = s.GPUs
		}
	}
	return all
}

// processes yields those of all members, of those that answered first.
func (c *Comm) processes() func(yield func(*Process) bool) {
	return func(yield func(*Process) bool) {
		for i := range c.Ranks {
			if !yield(&c.Ranks[i].Process) {
				return
			}
		}
		for i := range c.Missing {
			if !yield(&c.Missing[i].Process) {
				return
			}
		}
	}
}

// layOut gives each member of each communicator its number.
func (w *world) layOut(s *Status) *Layout {
	places := map[place]int64{}
	if w.comm == nil {
		w.rank = numbers(s)
	}
	next := int64(len(w.rank))
	for i := range s.Comms {
		c := &s.Comms[i]
		places[place{c.Hash, anyRank}] = 0
		w.hashes = append(w.hashes, c.Hash)
		for p := range c.processes() {
			at := place{c.Hash, p.Rank}
			if w.comm != nil {
				if number, ok := w.global(c, p); ok {
					places[at] = number
				}
				continue
			}
			if _, twice := places[at]; twice {
				continue
			}
			seat, known := p.seat()
			if number := w.rank[seat]; known && number != manyRanks {
				places[at] = int64(number)
				continue
			}
			places[at] = next
			next++
		}
	}
	w.places = places
	if w.comm != nil {
		w.first = w.comm.Hash
	}
	return &Layout{w}
}

// numbers numbers the processes in order. One that is several ranks of one communicator has none: it
// stands for several that count their process ids apart.
func numbers(s *Status) map[seat]int {
	all := map[seat]int{}
	for i := range s.Comms {
		in := map[seat]int{}
		for p := range s.Comms[i].processes() {
			at, known := p.seat()
			if !known {
				continue
			}
			rank, twice := in[at]
			in[at] = p.Rank
			if twice && rank != p.Rank {
				all[at] = manyRanks
			} else if _, ok := all[at]; !ok {
				all[at] = 0
			}
		}
	}
	order := make([]seat, 0, len(all))
	for at := range all {
		order = append(order, at)
	}
	slices.SortFunc(order, func(a, b seat) int {
		return cmp.Or(cmp.Compare(a.host, b.host), a.pid-b.pid, a.cuda-b.cuda)
	})
	for i, at := range order {
		if all[at] != manyRanks {
			all[at] = i
		}
	}
	return all
}

// Text names the process and its device.
func (p *Process) Text() string {
	if p.PID < 0 {
		return "a process that the answer does not name"
	}
	text := fmt.Sprintf("process %d on %s", p.PID, p.Host)
	if p.CUDADev >= 0 {
		text += fmt.Sprintf(", GPU %d", p.CUDADev)
	}
	return text
}
