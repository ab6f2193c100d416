// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// pastWait is what a rank waited in in an earlier life.
type pastWait struct {
	rank int64
	waits
}

// maxRestarts bounds the places that are kept where a job is started again.
const maxRestarts = 1 << 12

// parted parts the waits of earlier lives by life: in one log by where lives begin and by their times, in
// several by times alone, where all have one. ok is false where neither decides.
func (v *lives) parted(s *Set) (out [][]pastWait, ok bool) {
	all := slices.Clone(v.all)
	stamped := !slices.ContainsFunc(all, func(w pastWait) bool { return w.stamp == 0 })
	merged := !slices.ContainsFunc(all, func(w pastWait) bool { return s.parts[w.at.file].log != s.parts[all[0].at.file].log })
	next := func(before, w *pastWait) bool {
		return before.stamp > 0 && w.stamp >= before.stamp+max(apart, moment(w.timeout))
	}
	switch {
	case len(all) == 0:
		return nil, true
	case merged:
		slices.SortFunc(all, func(a, b pastWait) int { return s.compare(a.at, b.at) })
		byTime, begins, k := next, slices.DeleteFunc(slices.SortedFunc(slices.Values(v.begins), s.compare), func(at place) bool { return s.parts[at.file].log != s.parts[all[0].at.file].log }), 0
		next = func(before, w *pastWait) bool {
			for k < len(begins) && !s.before(before.at, begins[k]) {
				k++
			}
			return byTime(before, w) || k < len(begins) && s.before(begins[k], w.at)
		}
	case stamped:
		slices.SortFunc(all, func(a, b pastWait) int { return cmp.Compare(a.stamp, b.stamp) })
	default:
		return nil, false
	}
	for i := range all {
		if i == 0 || next(&all[i-1], &all[i]) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], all[i])
	}
	return joinApart(out), true
}

// joinApart joins lives that follow one another and share no rank: they are one, which ended at several times.
func joinApart(in [][]pastWait) (out [][]pastWait) {
	var ranks map[int64]bool // of the last one
	for _, life := range in {
		shared := slices.ContainsFunc(life, func(w pastWait) bool { return ranks[w.rank] })
		if n := len(out); n > 0 && !shared {
			out[n-1] = append(out[n-1], life...)
		} else {
			out, ranks = append(out, life), map[int64]bool{}
		}
		for i := range life {
			ranks[life[i].rank] = true
		}
	}
	return out
}

// compare orders lines by log, and in it by place.
func (s *Set) compare(a, b place) int {
	x, y := s.parts[a.file], s.parts[b.file]
	return cmp.Or(cmp.Compare(x.log, y.log), cmp.Compare(x.part, y.part), cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
}

// count is how many earlier lives timed out; 0: it is not known.
func (v *lives) count(s *Set) int {
	parts, ok := v.parted(s)
	if !ok && !v.twice() {
		return 1
	}
	return len(parts)
}

// twice reports whether a rank waited in several earlier lives, as far as that is known.
func (v *lives) twice() bool {
	seen := map[int64]bool{}
	for i := range v.all {
		if seen[v.all[i].rank] {
			return true
		}
		seen[v.all[i].rank] = true
	}
	return false
}

// said says how the earlier lives ended, the last of several; empty: there was none.
func (v *lives) said(s *Set) string {
	begin := "an earlier life of the job ended so: "
	waited := maps.Clone(v.waits)
	errors := maps.Clone(v.errors)
	parts, known := v.parted(s)
	switch {
	case known && len(parts) > 1:
		begin = fmt.Sprintf("%d earlier lives of the job timed out, the last of them so: ", len(parts))
		clear(waited)
		last := parts[len(parts)-1]
		for _, w := range last {
			waited[w.rank] = w.waits
		}
		since := parts[len(parts)-2]
		maps.DeleteFunc(errors, func(_ int64, f fault) bool { return !s.follows(since, &f) })
	case !known && v.twice():
		begin = "several earlier lives of the job ended so, in one of them or another: "
	}
	ended := s.endedSo(waited, errors)
	if len(ended) == 0 {
		return ""
	}
	if rest := s.notIn(waited, errors); len(rest) > 0 && (known || !v.twice()) {
		ended = append(ended, "no line says it of "+nameRanks(rest))
	}
	return begin + strings.Join(ended, "; ")
}

// follows reports whether an error is known to follow the time-outs of a life.
func (s *Set) follows(life []pastWait, f *fault) bool {
	return !slices.ContainsFunc(life, func(w pastWait) bool {
		return !s.before(w.at, f.at) && (w.stamp == 0 || f.stamp <= w.stamp)
	})
}

// endedSo lists the errors and the time-outs of a life.
func (s *Set) endedSo(waited map[int64]waits, errors map[int64]fault) (parts []string) {
	for _, rank := range slices.Sorted(maps.Keys(errors)) {
		if _, waits := waited[rank]; !waits && len(parts) < maxNoted {
			f := errors[rank]
			parts = append(parts, fmt.Sprintf("rank %d: %s (%s)", rank, f.text, s.where(f.at)))
		}
	}
	in := map[string]int{}
	for _, w := range waited {
		in[w.named()]++
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if len(parts) == maxNoted {
			break
		}
		ranks := "1 rank"
		if in[name] > 1 {
			ranks = fmt.Sprintf("%d ranks", in[name])
		}
		parts = append(parts, fmt.Sprintf("%s timed out in %s", ranks, name))
	}
	return parts
}

// notIn lists the ranks that have lines, of which none says that they timed out in a life or ended by an error: where a
// group of all ranks timed out.
func (s *Set) notIn(waited map[int64]waits, errors map[int64]fault) (out []int64) {
	whole := false
	for _, w := range waited {
		whole = whole || w.group.whole()
	}
	for _, rank := range slices.Sorted(maps.Keys(s.ranks)) {
		_, waits := waited[rank]
		if _, failed := errors[rank]; whole && !waits && !failed {
			out = append(out, rank)
		}
	}
	return out
}
