// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/torchname"
)

// comm is a process group, as far as logs show its members: they have for each rank its number in
// the group, and groups are in the order of ranks.
type comm struct {
	group
	members  []int64
	inferred bool // there may be more members
	shared   bool // its numbers count messages, too
	seqs     map[int64]waits
	least    int64 // the lowest number that a rank waits in; -1: none waits
	seats    []seat
}

// seat is a rank of the job and its rank in a group.
type seat struct{ rank, in int64 }

// seats lists the ranks that lines have in each group.
func (s *Set) seats() map[group][]seat {
	out := map[group][]seat{}
	add := func(g group, rank, in int64) {
		at, list := seat{rank, in}, out[g]
		if n := len(list); n == 0 || !slices.Contains(list[max(0, n-4):], at) { // those of one rank follow one another
			out[g] = append(list, at)
		}
	}
	for _, rank := range slices.Sorted(maps.Keys(s.ranks)) {
		r := s.ranks[rank]
		for i := range r.waits {
			add(r.waits[i].group, rank, r.waits[i].groupRank)
		}
		for i := range r.progress {
			add(r.progress[i].group, rank, r.progress[i].groupRank)
		}
	}
	return out
}

// nameGroups gives operations whose line names no group the one that other lines name for it: of
// the same rank by its numbers, else of another rank in the same operation.
func (s *Set) nameGroups() {
	type key struct {
		seq, in, out int64
		op           string
	}
	named := map[key]group{}
	for _, r := range s.ranks {
		for i := range r.waits {
			w := &r.waits[i]
			if w.unnamed() {
				for _, p := range r.progress {
					if !p.unnamed() && p.completed < w.seq && w.seq <= p.enqueued && p.groupRank == w.groupRank {
						w.group = p.group
						break
					}
				}
			}
			if !w.unnamed() {
				k := key{w.seq, w.in, w.out, w.op}
				if g, ok := named[k]; ok && g != w.group {
					named[k] = group{}
				} else {
					named[k] = w.group
				}
			}
		}
	}
	for _, r := range s.ranks {
		for i := range r.waits {
			w := &r.waits[i]
			if w.unnamed() && (r.progress == nil || len(named) > 0) {
				w.group = named[key{w.seq, w.in, w.out, w.op}]
			}
		}
	}
}

// comms makes the groups, by name and then by members.
func (s *Set) comms(world int64, known bool) map[group][]*comm {
	out := map[group][]*comm{}
	for g, list := range s.seats() {
		parts := split(list)
		for _, part := range parts {
			c := &comm{group: g, seqs: map[int64]waits{}, least: -1, seats: part}
			s.fill(c, part)
			c.place(part, world, known, len(parts) == 1 && (!g.unnamed() || !s.subgroups))
			out[g] = append(out[g], c)
		}
	}
	return out
}

// fill notes the operations of a group in which ranks wait.
func (s *Set) fill(c *comm, list []seat) {
	c.shared = c.unnamed() && s.differ(list)
	for _, at := range list {
		r := s.ranks[at.rank]
		for i := range r.waits {
			w := &r.waits[i]
			if w.group != c.group {
				continue
			}
			if old, ok := c.seqs[w.seq]; !ok || old.op == "" {
				c.seqs[w.seq] = *w
			}
			if c.least < 0 || w.seq < c.least {
				c.least = w.seq
			}
			switch name := torchname.Collective(w.op); {
			case name == torchname.Send, name == torchname.Recv, w.op == coalesced:
				c.shared = true
			}
		}
	}
}

// differ reports whether ranks wait in several operations without a group, which are not the same
// ones: these may be of several groups, so that their numbers are not compared.
func (s *Set) differ(list []seat) bool {
	var first []int64
	several := false
	for k, at := range list {
		var seqs []int64
		for i := range s.ranks[at.rank].waits {
			if w := &s.ranks[at.rank].waits[i]; w.unnamed() {
				seqs = append(seqs, w.seq)
			}
		}
		slices.Sort(seqs)
		several = several || len(seqs) > 1
		if k == 0 {
			first = seqs
		} else if several && !slices.Equal(first, seqs) {
			return true
		}
	}
	return false
}

// coalesced is the type of what ends a batch: messages, or collectives.
const coalesced = "COALESCED"

// split parts the ranks in groups of one name into groups: several ranks that are the
// same in a group are in several. Such groups are alike: their ranks rise by one stride.
func split(list []seat) [][]seat {
	same, strides := map[int64]int{}, map[int64]bool{1: true}
	twice := false
	for _, at := range list {
		same[at.in]++
		twice = twice || same[at.in] > 1 || at.in < 0
	}
	if !twice {
		return [][]seat{list}
	}
	const most = 4096 // pairs that are looked at for strides
	for i := 0; i < len(list) && i*len(list) < most; i++ {
		for _, b := range list {
			if a := list[i]; b.in == a.in+1 && b.rank > a.rank {
				strides[b.rank-a.rank] = true
			}
		}
	}
	var best map[int64][]seat
	for _, stride := range slices.Sorted(maps.Keys(strides)) {
		if by := byBase(list, stride); by != nil && (best == nil || len(by) < len(best)) {
			best = by
		}
	}
	if best == nil {
		return [][]seat{list}
	}
	var out [][]seat
	for _, base := range slices.Sorted(maps.Keys(best)) {
		out = append(out, best[base])
	}
	return out
}

// byBase sorts seats by the first rank of their group, and returns nil where one would be negative.
func byBase(list []seat, stride int64) map[int64][]seat {
	out := map[int64][]seat{}
	for _, at := range list {
		base := at.rank - at.in*stride
		if base < 0 || at.in < 0 {
			return nil
		}
		out[base] = append(out[base], at)
	}
	return out
}

// place concludes the members of a group from the ranks that lines have in it; only: the group is the
// only one of its name.
func (c *comm) place(list []seat, world int64, known, only bool) {
	straight, last := true, int64(-1)
	for _, at := range list {
		straight = straight && at.in == at.rank
		last = max(last, at.rank)
	}
	size := c.size()
	switch {
	case straight && (c.whole() || c.unnamed() && only || last == world-1 && known):
		c.members, c.inferred = upTo(world), !known
		if size > 0 && size < world { // not all ranks, whatever its name says
			c.members, c.inferred = upTo(size), false
		}
	default:
		c.line(list, size)
	}
}

// line places members on the line through the ranks that were seen.
func (c *comm) line(list []seat, size int64) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b seat) int { return int(a.rank - b.rank) })
	seen := map[int64]bool{}
	for _, at := range list {
		seen[at.rank] = true
	}
	first, last := list[0], list[len(list)-1]
	base, stride, ok := int64(0), int64(1), first.in == first.rank && len(list) == 1
	if steps := last.in - first.in; len(list) > 1 && steps > 0 && (last.rank-first.rank)%steps == 0 {
		stride = (last.rank - first.rank) / steps
		base, ok = first.rank-first.in*stride, first.in >= 0
		for _, at := range list {
			ok = ok && at.rank == base+at.in*stride
		}
	}
	if ok && base >= 0 {
		end := max(last.in+1, min(size, maxRank+1))
		for in := range end {
			seen[base+in*stride] = true
		}
	}
	c.members = slices.Sorted(maps.Keys(seen))
	c.inferred = size <= 0 || int64(len(c.members)) != size
}

// size is the number of members by the elements of a gathering operation; 0: unknown.
func (c *comm) size() int64 {
	for _, w := range c.seqs {
		small, large := w.in, w.out
		switch torchname.Collective(w.op) {
		case model.ReduceScatter:
			small, large = w.out, w.in
		case model.AllGather:
		default:
			continue
		}
		if small > 0 && large > small && large%small == 0 && large/small <= maxRank {
			return large / small
		}
	}
	return 0
}

func upTo(n int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

// of returns the group of this name that has the rank.
func of(list []*comm, rank int64) *comm {
	for _, c := range list {
		if c.has(rank) {
			return c
		}
	}
	return nil
}

// admits reports whether a rank can be a member: it is one, or there may be others and the ranks that
// were seen leave it a place. These rise by one stride where several are on one line.
func (c *comm) admits(rank int64) bool {
	if c.has(rank) || !c.inferred {
		return c.has(rank)
	}
	list := slices.Clone(c.seats)
	slices.SortFunc(list, func(a, b seat) int { return cmp.Compare(a.rank, b.rank) })
	below, above := seat{-1, -1}, seat{math.MaxInt64, math.MaxInt64}
	for _, at := range list {
		switch {
		case at.in < 0: // not written
		case at.rank < rank:
			below = at
		case above.rank == math.MaxInt64:
			above = at
		}
	}
	if above.in != math.MaxInt64 && above.in-below.in < 2 {
		return false
	}
	base, stride, ok := straight(list)
	return !ok || rank >= base && (rank-base)%stride == 0
}

// straight returns the line on which the ranks of a group lie; ok is false where they lie on none, or
// are less than two.
func straight(list []seat) (base, stride int64, ok bool) {
	if len(list) < 2 {
		return 0, 0, false
	}
	first, last := list[0], list[len(list)-1]
	steps := last.in - first.in
	if first.in < 0 || steps <= 0 || (last.rank-first.rank)%steps != 0 {
		return 0, 0, false
	}
	stride = (last.rank - first.rank) / steps
	base = first.rank - first.in*stride
	for _, at := range list {
		if at.rank != base+at.in*stride {
			return 0, 0, false
		}
	}
	return base, stride, base >= 0 && stride > 0
}

func (c *comm) has(rank int64) bool {
	_, ok := slices.BinarySearch(c.members, rank)
	return ok
}
