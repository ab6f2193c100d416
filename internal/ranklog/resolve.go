// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"cmp"
	"maps"
	"slices"
)

// resolve gives the lines without a rank the rank of their source, as far as that is known, and
// returns the files of which it is not.
func (s *Set) resolve() (unknown []string) {
	single := s.single()
	s.subgroups = s.hasSubgroups() || s.contradicted(single) || s.several()
	trusted := s.trusted(single)
	if trusted[byTask] {
		for rank, e := range s.tasks {
			if !s.exits[rank].root {
				s.exits[rank] = e
			}
		}
	}
	of := map[source]int64{}
	for from, o := range s.origins {
		switch {
		case len(o.ranks) == 1:
			of[from] = o.ranks[0]
		case len(o.ranks) == 0 && o.said >= 0 && trusted[o.by]:
			of[from] = o.said
		}
	}
	seen := map[string]bool{}
	keys := slices.SortedFunc(maps.Keys(s.sources), func(a, b source) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.label, b.label), cmp.Compare(a.groupRank, b.groupRank))
	})
	for _, from := range keys {
		r := s.sources[from]
		rank, ok := of[source{from.file, from.label, -1}]
		if !ok { // a label without a rank, in a file with one
			if o := s.origins[source{from.file, from.label, -1}]; o == nil || len(o.ranks) == 0 && o.by == byNothing {
				rank, ok = of[source{from.file, "", -1}]
			}
		}
		if !ok && from.groupRank >= 0 && s.ofWhole(r) {
			rank, ok = from.groupRank, true
		}
		if !ok && r.fault.weight > weightResult && !r.wasCaught() && len(s.stray) < maxNoted {
			s.stray = append(s.stray, r.fault)
		}
		switch {
		case ok:
			s.rankOf(rank, r)
		case len(r.waits)+len(r.progress) > 0 || r.isStuck:
			seen[s.files[from.file].Path] = true
			s.unplaced.waits += int64(len(r.waits))
			if r.isStuck {
				s.unplaced.stuck++
				s.unplaced.stuckFor = max(s.unplaced.stuckFor, r.stuckFor)
			}
		}
	}
	clear(s.sources)
	return slices.Sorted(maps.Keys(seen))
}

func (s *Set) rankOf(rank int64, r *record) {
	if to := s.rank(rank, r.first); to != nil {
		to.join(r)
	}
}

// ofWhole reports whether a rank in the group can be taken for the rank of the job: of a group that
// has all ranks, or that old versions do not name.
func (s *Set) ofWhole(r *record) bool {
	part := func(g group) bool { return !g.whole() && (!g.unnamed() || s.subgroups) }
	return (!r.isStuck || !part(r.stuckIn)) && (r.endedIn.unnamed() || !part(r.endedIn)) && !slices.ContainsFunc(r.waits, func(w waits) bool { return part(w.group) }) &&
		!slices.ContainsFunc(r.progress, func(p progress) bool { return part(p.group) })
}

// hasSubgroups reports whether groups without a name are several: two processes are the same rank in
// one. Two logs are of two processes where their names have different ranks, or where they wait in
// different operations: one process may write to several logs.
func (s *Set) hasSubgroups() bool {
	type seen struct {
		said, seq int64
		from      source
	}
	first := map[int64]seen{}
	for from, r := range s.sources {
		for i := range r.waits {
			w := &r.waits[i]
			if from.groupRank < 0 || !w.unnamed() {
				continue
			}
			now := seen{-1, w.seq, source{from.file, from.label, -1}}
			if o := s.origins[now.from]; o != nil {
				now.said = o.said
			}
			old, ok := first[from.groupRank]
			if !ok {
				first[from.groupRank] = now
			} else if old.from != now.from && s.parts[old.from.file].log != s.parts[now.from.file].log && (old.seq != now.seq || old.said >= 0 && now.said >= 0 && old.said != now.said) {
				return true
			}
		}
	}
	return false
}

// single are the kinds of numbers of which each is of one process: no two of its processes wait in one
// operation. Numbers of nodes are of several.
func (s *Set) single() map[trust]bool {
	type one struct {
		from source
		seq  int64
	}
	in := map[one]int64{}
	out := map[trust]bool{}
	for _, by := range []trust{byName, byMPI, byTask, byRay} {
		out[by] = true
	}
	for from, r := range s.sources {
		of := source{from.file, from.label, -1}
		o := s.origins[of]
		if o == nil || from.groupRank < 0 {
			continue
		}
		for i := range r.waits {
			if w := &r.waits[i]; w.unnamed() {
				old, known := in[one{of, w.seq}]
				out[o.by] = out[o.by] && (!known || old == from.groupRank)
				in[one{of, w.seq}] = from.groupRank
			}
		}
	}
	return out
}

// contradicted reports whether lines without a group count a rank otherwise than the name or the label
// of its log: then they count within a group. Numbers that all are greater by one count from one.
func (s *Set) contradicted(single map[trust]bool) bool {
	contradicts, fromOne := false, true
	for from, r := range s.sources {
		o := s.origins[source{from.file, from.label, -1}]
		if o == nil || o.said < 0 || !single[o.by] {
			continue
		}
		fromOne = fromOne && o.said > 0
		if from.groupRank < 0 || len(o.ranks) > 0 {
			continue
		}
		if slices.ContainsFunc(r.waits, func(w waits) bool { return w.unnamed() }) {
			contradicts = contradicts || o.said != from.groupRank
			fromOne = fromOne && o.said == from.groupRank+1
		}
	}
	return contradicts && !fromOne
}

// several reports whether one rank of a group without a name waits in operations that do not follow one
// another, in a log that tells no rank: these may be two processes.
func (s *Set) several() bool {
	for from, r := range s.sources {
		o := s.origins[source{from.file, from.label, -1}]
		if from.groupRank < 0 || o == nil || o.said >= 0 || len(o.ranks) > 0 {
			continue
		}
		var seqs []int64
		for i := range r.waits {
			if w := &r.waits[i]; w.unnamed() && w.over == open {
				seqs = append(seqs, w.seq)
			}
		}
		slices.Sort(seqs)
		if n := int64(len(slices.Compact(seqs))); n > 1 && seqs[n-1]-seqs[0] >= n {
			return true
		}
	}
	return false
}

// trusted are the kinds of numbers that are ranks: those that lines of the same logs confirm, and
// where no line has a rank those that are called ranks. One that a line contradicts is none: srun
// and mpirun number nodes where a launcher runs under them.
func (s *Set) trusted(single map[trust]bool) map[trust]bool {
	confirmed, contradicted := map[trust]bool{}, map[trust]bool{}
	said := s.groupRanks()
	for from, o := range s.origins {
		if o.said < 0 {
			continue
		}
		ranks := o.ranks
		if len(ranks) == 0 {
			ranks = said[from]
		}
		for _, rank := range ranks {
			confirmed[o.by] = confirmed[o.by] || rank == o.said
			contradicted[o.by] = contradicted[o.by] || rank != o.said
		}
	}
	out := map[trust]bool{}
	for _, by := range []trust{byName, byNumber, byMPI, byTask, byLocal, byRay} {
		called := by == byName || by == byMPI || by == byRay || by == byTask && s.subgroups && single[by]
		out[by] = !contradicted[by] && (confirmed[by] || called)
	}
	return out
}

// groupRanks are the ranks that old lines of each source say, of groups that have all ranks.
func (s *Set) groupRanks() map[source][]int64 {
	out := map[source][]int64{}
	for k, r := range s.sources {
		if k.groupRank >= 0 && s.ofWhole(r) {
			from := source{k.file, k.label, -1}
			out[from] = append(out[from], k.groupRank)
		}
	}
	return out
}
