// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// world says which global rank a process is: its rank in the world communicator. Where there is
// none, comm is nil, and the processes are only numbered.
type world struct {
	comm *Comm
	rank map[seat]int
	// places has the number of each member of each communicator that was laid out.
	places map[place]int64
	hashes []uint64
	first  uint64 // the least hash of its communicators
}

// place is a member of a communicator.
type place struct {
	hash uint64
	rank int
}

// seat is one rank's place: a process, and the device where it drives several.
type seat struct {
	host      string
	pid, cuda int
}

// known reports whether the process is told of, so that it is one seat everywhere.
func (p *Process) seat() (s seat, known bool) {
	return seat{p.Host, p.PID, p.CUDADev}, p.PID >= 0
}

// findWorld returns the world communicator: the largest, where it has every process that any
// has. Two of one size must give every process the same rank. The error says why there is none.
func findWorld(s *Status) (*world, error) {
	var best *world
	for _, c := range bySize(s.Comms) {
		if best != nil && c.Size < best.comm.Size {
			break
		}
		w := &world{comm: c, rank: map[seat]int{}}
		for i := range c.Ranks {
			w.seat(&c.Ranks[i].Process)
		}
		for i := range c.Missing {
			w.seat(&c.Missing[i].Process)
		}
		if best != nil && !best.agrees(w) {
			return nil, fmt.Errorf("find world: got %s and %s of %d ranks in different orders; want one",
				hashText(best.comm.Hash), hashText(c.Hash), c.Size)
		}
		if best == nil || c.Hash < best.comm.Hash {
			best = w
		}
	}
	if best == nil {
		return nil, fmt.Errorf("find world: got no communicator")
	}
	switch {
	case s.GPUs == best.comm.Size:
		return best, nil // prose does not list the processes of all members
	case s.GPUs > best.comm.Size:
		return nil, fmt.Errorf("find world: got a largest communicator of %d ranks; want one of all %d GPUs", best.comm.Size, s.GPUs)
	}
	for i := range s.Comms {
		for j := range s.Comms[i].Ranks {
			p := &s.Comms[i].Ranks[j].Process
			if at, known := p.seat(); known {
				if _, ok := best.rank[at]; !ok {
					return nil, fmt.Errorf("find world: got process %d on %s outside of the largest communicator, of %d ranks",
						p.PID, p.Host, best.comm.Size)
				}
			}
		}
	}
	return best, nil
}

func bySize(comms []Comm) []*Comm {
	list := make([]*Comm, len(comms))
	for i := range comms {
		list[i] = &comms[i]
	}
	slices.SortStableFunc(list, func(a, b *Comm) int { return b.Size - a.Size })
	return list
}

func (w *world) seat(p *Process) {
	at, known := p.seat()
	if !known {
		return
	}
	if rank, twice := w.rank[at]; twice && rank != p.Rank {
		w.rank[at] = manyRanks
		return
	}
	w.rank[at] = p.Rank
}

// manyRanks is the rank of what several ranks give as their host, process and device, as in
// containers that each count their own.
const manyRanks = -1

// agrees reports whether the two give no process different ranks.
func (w *world) agrees(o *world) bool {
	for at, rank := range o.rank {
		if r, ok := w.rank[at]; ok && r != rank {
			return false
		}
	}
	return true
}

// global returns the global rank of a member of c.
func (w *world) global(c *Comm, p *Process) (int64, bool) {
	if w.is(c) {
		return int64(p.Rank), true
	}
	if number, ok := w.places[place{c.Hash, p.Rank}]; ok {
		return number, true
	}
	at, known := p.seat()
	if !known || w.comm == nil {
		return 0, false
	}
	rank, ok := w.rank[at]
	return int64(rank), ok && rank != manyRanks
}

// is reports whether c is the world communicator, of this answer or of another.
func (w *world) is(c *Comm) bool {
	return w.comm != nil && (c == w.comm || c.Hash == w.comm.Hash && c.Size == w.comm.Size)
}

// members lists the global ranks of c in their order, where all are known.
func (w *world) members(c *Comm) []int64 {
	if !w.is(c) && len(c.Ranks)+len(c.Missing) < c.Size {
		return nil // not all are listed
	}
	ranks := make([]int64, c.Size)
	for i := range ranks {
		ranks[i] = -1
		if w.is(c) {
			ranks[i] = int64(i)
		}
	}
	put := func(p *Process) {
		if g, ok := w.global(c, p); ok {
			ranks[p.Rank] = g
		}
	}
	for i := range c.Ranks {
		put(&c.Ranks[i].Process)
	}
	for i := range c.Missing {
		put(&c.Missing[i].Process)
	}
	if slices.Contains(ranks, -1) {
		return nil
	}
	return ranks
}

// hashText spells a communicator's hash as other sources do.
func hashText(hash uint64) string { return fmt.Sprintf("0x%016x", hash) }

// incarnation names the job's life as the reader of the profiler's events does. Without a world
// communicator the least hash stands for its hash.
func (w *world) incarnation() string {
	hash := w.first
	if w.comm != nil {
		hash = w.comm.Hash
	}
	return model.Incarnation(model.World{CommHash: hashText(hash)})
}

// size is the number of ranks; 0 where it is not known.
func (w *world) size() int {
	if w.comm == nil {
		return 0
	}
	return w.comm.Size
}
