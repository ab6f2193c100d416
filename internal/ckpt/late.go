// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// written is when a file was last modified.
type written struct {
	file string
	mod  time.Time
	size int64 // bytes; 0 for a marker
}

// late is a file that is not older than the marker which commits it.
type late struct {
	written
	domains []model.Domain
	marker  written
	what    string
}

// clockMargin is how far the clocks of nodes, or of a server and its clients, may be apart. No job
// comes back and saves again within that time after a save.
const clockMargin = 10 * time.Second

// notOlder notes a file that is not older than the marker which commits it. In a folder that saves of
// other epochs may have used, it may be of one of them, which is doubt enough; else the times of the
// other files and saves decide what this means.
func (b *builder) notOlder(domains []int, f *file, m *marker, does string) {
	what := fmt.Sprintf("got a file that is not older than %s, which %s; want it older: it was overwritten since, or copied without its times, which --ignore-times accepts", m.name, does)
	switch {
	case b.opt.IgnoreTimes:
	case b.dated:
		l := late{written: written{f.path, f.mod, f.size}, marker: written{m.name, m.mod, 0}, what: what}
		for _, i := range domains {
			l.domains = append(l.domains, b.save.Domains[i].Domain)
		}
		b.save.late = append(b.save.late, l)
	case copiedFolder(b, path.Dir(f.path)):
	default:
		for _, i := range domains[1:] {
			if d := &b.save.Domains[i]; d.State != model.DomainAbsent {
				d.State = model.DomainTentative
			}
		}
		b.doubt(domains[0], model.DomainTentative, Problem{CheckOrder, Suspect, f.path, what})
	}
}

// lateToo notes that a late file has more domains.
func (b *builder) lateToo(file string, domains []int) {
	n := len(b.save.late)
	if n == 0 || b.save.late[n-1].file != file {
		return
	}
	for _, i := range domains {
		b.save.late[n-1].domains = append(b.save.late[n-1].domains, b.save.Domains[i].Domain)
	}
}

// copiedFolder reports whether the times of all files of a folder are those of a copy.
func copiedFolder(b *builder, name string) bool {
	f, err := b.folder(name)
	if err != nil {
		return false
	}
	var times []written
	for _, e := range f.entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		times = append(times, written{f.join(e.Name()), info.ModTime(), info.Size()})
	}
	return wholeSeconds(times) && ordered(times, minWhole)
}

// judgeTimes doubts files that were overwritten after their marker, or long after all others. Times that were not
// those of writing say nothing.
func (s *scan) judgeTimes() {
	if s.copiedAtOneRate() {
		return
	}
	all := s.timeline()
	overwritten := make([][]late, len(s.root.Saves)) // of each save: all are judged before any is in doubt
	for i := range s.root.Saves {
		save := &s.root.Saves[i]
		for _, w := range s.strays(save) {
			overwritten[i] = append(overwritten[i], late{written: w, domains: domainsOf(save, w.file), what: strayed})
		}
		if !onward(save.late) && !s.inPlainOrder(save) && (s.overwritten(save) || s.overwrittenCopy(save, all)) {
			overwritten[i] = save.late
		}
	}
	for i := range overwritten {
		save := &s.root.Saves[i]
		for _, l := range overwritten[i] {
			save.doubtTimes(l.domains)
			s.problem(save, Problem{CheckOrder, Suspect, l.file, l.what})
		}
	}
}

const strayed = "got a file that is more than 30 minutes newer than all others of its save; want it within the time of one attempt: it was overwritten since, or copied without its times, which --ignore-times accepts"

func (s *Save) doubtTimes(domains []model.Domain) {
	for i := range s.Domains {
		d := &s.Domains[i]
		if d.State != model.DomainCommitted || !slices.Contains(domains, d.Domain) {
			continue
		}
		d.State, d.Late = model.DomainTentative, true
		if !d.Own {
			d.Epoch, d.Witness = model.Optional[int64]{}, ""
		}
	}
}

// inPlainOrder reports whether the times of a save with late files are those of a copy by themselves.
func (s *scan) inPlainOrder(save *Save) bool {
	return ordered(withMarkers(save), minOrdered) || s.pointerIsOldest(save)
}

// withMarkers are the times of a save with those of the markers of its late files.
func withMarkers(save *Save) []written {
	times := slices.Clone(save.times)
	for _, l := range save.late {
		times = append(times, l.marker)
	}
	return times
}

// onward reports whether writing went on from each marker to the last file that is late without a pause in
// which a job could have come back.
func onward(all []late) bool {
	after := map[written][]time.Time{}
	for _, l := range all {
		after[l.marker] = append(after[l.marker], l.mod)
	}
	for marker, mods := range after {
		slices.SortFunc(mods, time.Time.Compare)
		at := marker.mod
		for _, mod := range mods {
			if mod.Sub(at) > clockMargin {
				return false
			}
			at = mod
		}
	}
	return true
}

// compactTimes has each file once, by name.
func compactTimes(times []written) []written {
	out := slices.Clone(times)
	slices.SortStableFunc(out, func(a, b written) int { return strings.Compare(a.file, b.file) })
	return slices.CompactFunc(out, func(a, b written) bool { return a.file == b.file })
}

const (
	minWhole   = 3 // files whose times have no fractions by chance: none that a file system with fractions wrote
	minOrdered = 6 // files whose times are in the order of their names by chance: one save in 360
	// dwarfs is how many times longer a pause is than all others together where no copy explains it: of files that
	// are copied one after the other, none is so much larger than all others.
	dwarfs = 10
)

// wholeSeconds reports whether no time has a fraction, as those that object stores and archives keep.
func wholeSeconds(times []written) bool {
	all := compactTimes(times)
	return len(all) >= minWhole && !slices.ContainsFunc(all, func(w written) bool {
		return w.mod.Nanosecond() != 0 || w.mod.Unix() <= 0
	})
}

// ordered reports whether the times of so many files rise, or fall, with their names, or are all alike, over
// all or in each folder: frameworks write in no such order.
func ordered(times []written, least int) bool {
	all := compactTimes(times)
	return inOrder(all, least, func(_, _ string) bool { return true }) ||
		inOrder(ofLargeFolders(all), least, func(a, b string) bool { return path.Dir(a) == path.Dir(b) })
}

// ofLargeFolders leaves out folders of two files: Megatron writes both of each rank in the order of their names.
func ofLargeFolders(all []written) []written {
	files := map[string]int{}
	for _, w := range all {
		files[path.Dir(w.file)]++
	}
	return slices.DeleteFunc(slices.Clone(all), func(w written) bool { return files[path.Dir(w.file)] < minWhole })
}

// inOrder is ordered for those neighbours that are to be compared. A single pause among them that dwarfs all others
// is none of a copy.
func inOrder(all []written, least int, comparable func(a, b string) bool) bool {
	rise, fall, n := true, true, 1
	var sum, longest time.Duration
	for i := 1; i < len(all); i++ {
		if !comparable(all[i-1].file, all[i].file) {
			continue
		}
		c := all[i].mod.Compare(all[i-1].mod)
		rise, fall, n = rise && c >= 0, fall && c <= 0, n+1
		step := all[i].mod.Sub(all[i-1].mod).Abs()
		sum, longest = sum+step, max(longest, step)
	}
	return n >= least && (rise || fall) && (longest <= clockMargin || longest < dwarfs*(sum-longest))
}

// pointerIsOldest reports whether a pointer that is set anew by each save is older than a save before, or
// than all files of this one, which are then of one attempt.
func (s *scan) pointerIsOldest(save *Save) bool {
	at := save.late[0].marker
	if strings.HasPrefix(at.file, save.Path+"/") {
		return false
	}
	if len(compactTimes(lateTimes(save.late))) == len(compactTimes(save.times)) {
		return true
	}
	return slices.ContainsFunc(s.root.Saves, func(other Save) bool {
		return other.Epoch.OK && cmp.Less(other.Epoch.V, save.Epoch.V) && other.FirstWrite.After(at.mod)
	})
}

func lateTimes(all []late) []written {
	out := make([]written, len(all))
	for i := range all {
		out[i] = all[i].written
	}
	return out
}
