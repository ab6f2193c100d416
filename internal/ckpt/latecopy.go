// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Two attempts at one save leave times of a pattern: each attempt writes its files in the framework's order and in
// one go, no other save is written meanwhile, and a restart lies between them. Other times are those of a copy.

const (
	// sameTime is how far apart the times of files may be whose order says nothing.
	sameTime = time.Second
	// pauseFactor is how many times longer a restart takes than any pause within a save. A job that comes back
	// loads as much as it saves, and trains up to the next save.
	pauseFactor = 3
	// minApart is how much later than all others of its save a file is that no copy of quick files explains.
	minApart = time.Minute
	// maxStall is how long writing stops at most within one attempt: process groups of NCCL give up after 10 minutes,
	// those of Gloo and DeepSpeed after 30.
	maxStall = 30 * time.Minute
	// minTogether is how many files lie close together by chance once in 60 copies, at a pauseFactor.
	minTogether = 4
	// apartFactor is how many times longer a pause is than all of the writing before it, where that lies close
	// together: one of 60 saves of three files in a random order.
	apartFactor = 20
	// fewFactor is the same where the files are few, in whole seconds, and of the only save there is: one copy in 300.
	fewFactor = 200
	// minRate is how many bytes a second no copy falls below.
	minRate = 10_000
	// maxPauses is how many restarts in the same save its times may show.
	maxPauses = 2
	// minOrderKnown is how many times must be in the framework's order to judge by that.
	minOrderKnown = 6
)

// overwritten reports whether the times of a save with late files are those of an attempt that was cut off after the
// one that wrote the marker.
//
// Few files in a random order are in many orders as of two attempts. So those of whole seconds, which copies keep,
// and of a folder where other saves are late, too, must lie apart, or be in an order that another save confirms.
func (s *scan) overwritten(save *Save) bool {
	if s.apart(save) {
		return true
	}
	paused, ranked := 0, 0
	for i := range s.root.Saves {
		if !onward(s.root.Saves[i].late) {
			paused++
		}
		if len(inWriteOrder(&s.root.Saves[i])) >= minOrderKnown {
			ranked++
		}
	}
	return paused == 1 && (ranked > 1 || !wholeSeconds(withMarkers(save))) && !s.shuffled(save)
}

// apart reports whether late files come long after all others of their save, which lie close together and in order,
// as those of every other save do.
func (s *scan) apart(save *Save) bool {
	first, since := firstFiles(save)
	return len(first) > 1 && firstPart(save, since) && s.closeTogether(save, first, since) && s.paused(save) && !s.interrupted(save)
}

// closeTogether reports whether the first files of a save, and those of every other save, lie close together and in
// order, held against the pause up to when writing went on.
func (s *scan) closeTogether(save *Save, first []written, since time.Time) bool {
	from, to := spanOf(first)
	pause := since.Sub(to)
	factor := time.Duration(pauseFactor)
	switch {
	case s.fewCopied(save, len(first)):
		factor = fewFactor
	case len(first) < minTogether:
		factor = apartFactor
	}
	within := pause / factor
	if pause < minApart || to.Sub(from) > within || outOfOrder(ranksOf(save.Format, first)) {
		return false
	}
	return !slices.ContainsFunc(s.root.Saves, func(other Save) bool {
		if other.Path == save.Path || len(other.times) == 0 {
			return false
		}
		files, _ := firstFiles(&other)
		if len(files) < min(2, len(other.times)) || outOfOrder(ranksOf(other.Format, files)) {
			return true
		}
		begun, ended := spanOf(files)
		return ended.Sub(begun) > within || other.Epoch.OK && (other.Epoch.V < save.Epoch.V) != begun.Before(from)
	})
}

// fewCopied reports whether the files of a save that were written first are too few to tell attempts from a copy
// easily: their times are in whole seconds, as copies keep them, and no other save shows how the job writes.
func (s *scan) fewCopied(save *Save, first int) bool {
	return first < minOrderKnown && wholeSeconds(withMarkers(save)) && !slices.ContainsFunc(s.root.Saves, func(other Save) bool {
		return other.Path != save.Path && len(compactTimes(other.times)) > 1
	})
}

// firstFiles are the files of a save up to the pause that follows its marker, with it, and when writing went on. Of a
// save without late files they are those up to a pause that no attempt survives; all where there is none.
func firstFiles(save *Save) (first []written, since time.Time) {
	all, marker, pause := compactTimes(save.times), time.Time{}, maxStall
	if !onward(save.late) {
		all, marker, pause = compactTimes(withMarkers(save)), save.late[0].marker.mod, clockMargin
	}
	slices.SortFunc(all, func(a, b written) int { return a.mod.Compare(b.mod) })
	for i := 1; i < len(all); i++ {
		if !all[i-1].mod.Before(marker) && all[i].mod.Sub(all[i-1].mod) > pause {
			return all[:i], all[i].mod
		}
	}
	return all, time.Time{}
}

// strays are the files of a save that no marker commits which were written so long after all others that no attempt
// was alive meanwhile; none where another save, or enough files, do not show how close together an attempt writes.
// A single file that is older than all others may be a copy that kept its time.
func (s *scan) strays(save *Save) []written {
	first, since := firstFiles(save)
	if s.opt.IgnoreTimes || !save.Epoch.OK || !onward(save.late) || since.IsZero() || first[0].mod.Unix() <= 0 {
		return nil
	}
	all := compactTimes(save.times)
	if len(first) == 1 && len(all) > 2 || !firstPart(save, since) || !s.closeTogether(save, first, since) || ordered(all, minOrdered) {
		return nil
	}
	witness := len(first) >= minOrderKnown || slices.ContainsFunc(s.root.Saves, func(other Save) bool {
		return other.Path != save.Path && other.committed() && len(compactTimes(other.times)) > 1
	})
	if !witness || s.interrupted(save) {
		return nil
	}
	return slices.DeleteFunc(all, func(w written) bool { return w.mod.Before(since) || isExported(w.file) })
}

// isExported reports whether a file is a model in a form that people make of a save, however much later.
func isExported(name string) bool {
	name = path.Base(name)
	return strings.HasSuffix(name, ".safetensors") || strings.HasPrefix(name, "pytorch_model")
}

// domainsOf are the parts of a save that lie in a file; all where nothing says which.
func domainsOf(save *Save, file string) (of []model.Domain) {
	var all []model.Domain
	for _, d := range save.Domains {
		all = append(all, d.Domain)
		if d.File == file {
			of = append(of, d.Domain)
		}
	}
	if len(of) == 0 {
		return all
	}
	return of
}

// spanOf returns the times of the oldest and the newest of some files.
func spanOf(files []written) (from, to time.Time) {
	newer := func(a, b written) int { return a.mod.Compare(b.mod) }
	return slices.MinFunc(files, newer).mod, slices.MaxFunc(files, newer).mod
}

// copiedAtOneRate reports whether every save has late files because all were copied one after the other: a copy
// takes as long for each byte of each save, and for those between saves.
func (s *scan) copiedAtOneRate() bool {
	var all []written
	late := 0
	for i := range s.root.Saves {
		save := &s.root.Saves[i]
		if len(save.times) == 0 {
			continue
		}
		if len(save.late) == 0 {
			return false
		}
		files := compactTimes(withMarkers(save))
		slices.SortFunc(files, func(a, b written) int { return a.mod.Compare(b.mod) })
		if len(all) > 0 && !files[0].mod.After(all[len(all)-1].mod) {
			return false // saves lie within each other
		}
		all = append(all, files...)
		late++
	}
	var slowest, fastest float64 // bytes a second
	for i := 1; i < len(all); i++ {
		pause := all[i].mod.Sub(all[i-1].mod)
		if pause <= clockMargin {
			continue
		}
		rate := float64(all[i].size) / pause.Seconds()
		if slowest == 0 || rate < slowest {
			slowest = rate
		}
		fastest = max(fastest, rate)
	}
	return late > 1 && slowest >= minRate && fastest <= pauseFactor*slowest
}

// shuffled reports whether the times of a save with late files show no pattern of attempts.
func (s *scan) shuffled(save *Save) bool {
	if s.interrupted(save) {
		return true
	}
	known := false
	for i := range s.root.Saves {
		other := &s.root.Saves[i]
		files := inWriteOrder(other)
		if outOfOrder(files) {
			return true
		}
		known = known || other == save && len(files) >= minOrderKnown
	}
	return !known && !s.paused(save)
}

// overwrittenCopy reports whether an attempt was cut off at a save that had been copied: its files are the last in
// the folder, and come long after all times of the copy, be they in whatever order. all are the times of the folder.
func (s *scan) overwrittenCopy(save *Save, all []time.Time) bool {
	var last time.Time // of what other saves wrote
	for i := range s.root.Saves {
		if other := &s.root.Saves[i]; other != save && other.lastWrite.After(last) {
			last = other.lastWrite
		}
	}
	least, factor := clockMargin, int64(pauseFactor)
	if wholeSeconds(withMarkers(save)) {
		least, factor = minApart, apartFactor
	}
	return slices.ContainsFunc(save.late, func(l late) bool {
		n, _ := slices.BinarySearchFunc(all, l.mod, time.Time.Compare)
		if n == 0 || !l.mod.After(last) {
			return false
		}
		end := all[n-1]
		span, pause := end.Sub(all[0]), l.mod.Sub(end)
		if s.fewCopied(save, olderThan(save, l.mod)) {
			factor = fewFactor
		}
		return span > 0 && pause > least && int64(pause/span) >= factor && firstPart(save, l.mod)
	})
}

// olderThan is how many files of a save are older than a time.
func olderThan(save *Save, at time.Time) (n int) {
	for _, w := range compactTimes(withMarkers(save)) {
		if w.mod.Before(at) {
			n++
		}
	}
	return n
}

// timeline returns the times of all files and markers of the folder, the oldest first.
func (s *scan) timeline() (all []time.Time) {
	for i := range s.root.Saves {
		save := &s.root.Saves[i]
		for _, w := range save.times {
			all = append(all, w.mod)
		}
		for _, l := range save.late {
			all = append(all, l.marker.mod)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// firstPart reports whether the files of a save since some time can be all that an attempt wrote: what comes first
// in a known order, or no more than half of the files.
func firstPart(save *Save, since time.Time) bool {
	all := compactTimes(save.times)
	newer := 0
	for _, w := range all {
		if !w.mod.Before(since) {
			newer++
		}
	}
	if 2*newer <= len(all) {
		return true
	}
	files := inWriteOrder(save)
	return !slices.ContainsFunc(files, func(f ranked) bool {
		return !f.mod.Before(since) && slices.ContainsFunc(files, func(g ranked) bool { return g.place < f.place && g.mod.Before(since) })
	})
}

// ranked is a file with its place in the order in which one process writes a save.
type ranked struct {
	place int
	mod   time.Time
}

// trainerOrder is the order in which rank 0 of the Trainer writes a save. Files of one place have no known order.
var trainerOrder = [...]func(name string) bool{
	func(n string) bool {
		return strings.HasSuffix(n, "config.json") || strings.HasPrefix(n, "model") || strings.HasPrefix(n, "pytorch_model") || strings.HasPrefix(n, "adapter_")
	},
	func(n string) bool { return n == hfArguments },
	func(n string) bool { return n == "optimizer.pt" || n == "optimizer.bin" },
	func(n string) bool { return n == "scheduler.pt" },
	func(n string) bool { return n == "scaler.pt" || n == "rng_state.pth" || n == "rng_state_0.pth" },
	func(n string) bool { return n == hfState },
}

// inWriteOrder is ranksOf all files of a save.
func inWriteOrder(save *Save) []ranked { return ranksOf(save.Format, save.times) }

// ranksOf returns the oldest and the newest file of each place among those of a save that one process writes in a
// known order; none of other formats.
func ranksOf(format Format, files []written) []ranked {
	if format != FormatHFTrainer {
		return nil
	}
	var oldest, newest [len(trainerOrder)]time.Time
	for _, w := range files {
		if slices.ContainsFunc(strings.Split(path.Dir(w.file), "/"), isWriterOfItsOwn) {
			continue
		}
		place := slices.IndexFunc(trainerOrder[:], func(is func(string) bool) bool { return is(path.Base(w.file)) })
		if place < 0 {
			continue
		}
		if oldest[place].IsZero() || w.mod.Before(oldest[place]) {
			oldest[place] = w.mod
		}
		if w.mod.After(newest[place]) {
			newest[place] = w.mod
		}
	}
	var out []ranked
	for place := range oldest {
		if !oldest[place].IsZero() {
			out = append(out, ranked{place, oldest[place]}, ranked{place, newest[place]})
		}
	}
	return out
}

// isWriterOfItsOwn reports whether DeepSpeed or FSDP writes a folder, at a time that depends on their settings.
func isWriterOfItsOwn(folder string) bool {
	return strings.HasPrefix(folder, deepspeedTag) || accelerateFSDP.MatchString(folder)
}

// outOfOrder reports whether no attempts that write in order, of which all but the first may have been cut off,
// leave such times. A file that is newer than one that follows it is of a later attempt, which was cut off before
// the one that follows: all that follows is older than that attempt, and all that comes first is of it.
func outOfOrder(files []ranked) bool {
	after := func(a, b ranked) bool { return a.mod.Sub(b.mod) > sameTime }
	for _, first := range files {
		for _, next := range files {
			if first.place >= next.place || !after(first, next) {
				continue
			}
			if first.mod.Sub(next.mod) <= clockMargin {
				return true
			}
			for _, f := range files {
				if f.place > next.place && after(f, first) || f.place < first.place && after(next, f) {
					return true
				}
			}
		}
	}
	return false
}

// interrupted reports whether files of another save were written in the midst of this one, or the reverse.
func (s *scan) interrupted(save *Save) bool {
	whole := wholeAttempt(save)
	if onward(save.late) {
		whole, _ = firstFiles(save)
	}
	for i := range s.root.Saves {
		other := &s.root.Saves[i]
		if other == save || !other.Epoch.OK {
			continue
		}
		files := other.times
		if len(other.late) == 0 {
			files, _ = firstFiles(other)
		}
		if amid(whole, other.times) || other.committed() && len(other.late) == 0 && amid(files, save.times) {
			return true
		}
	}
	return false
}

// wholeAttempt are the files of the attempt that wrote the marker; all where none is late.
func wholeAttempt(save *Save) []written {
	if len(save.late) == 0 {
		return save.times
	}
	late := map[string]bool{}
	for _, l := range save.late {
		late[l.file] = true
	}
	out := []written{save.late[0].marker}
	for _, w := range save.times {
		if !late[w.file] {
			out = append(out, w)
		}
	}
	return out
}

// amid reports whether some files were written between the first and the last of a save.
func amid(of, files []written) bool {
	if len(of) == 0 {
		return false
	}
	from, to := spanOf(of)
	from, to = from.Add(sameTime), to.Add(-sameTime)
	return slices.ContainsFunc(files, func(w written) bool { return w.mod.After(from) && w.mod.Before(to) })
}

// gap is a time in which no file of a save was written.
type gap struct {
	long time.Duration
	late bool // it follows the marker
}

// paused reports whether a few gaps after the marker are far longer than all others, as restarts are. Gaps of the
// saves beside it, which no restart interrupted, are others.
func (s *scan) paused(save *Save) bool {
	gaps := gapsOf(append(slices.Clone(save.times), save.late[0].marker), save.late[0].marker.mod)
	for i := range s.root.Saves {
		if other := &s.root.Saves[i]; other != save && other.committed() && len(other.times) > 0 {
			gaps = append(gaps, gapsOf(wholeAttempt(other), time.Time{})...)
		}
	}
	slices.SortFunc(gaps, func(a, b gap) int { return cmp.Compare(b.long, a.long) })
	for i, g := range gaps[:min(maxPauses, len(gaps))] {
		if !g.late || g.long <= clockMargin {
			return false
		}
		if i+1 == len(gaps) || g.long >= pauseFactor*gaps[i+1].long {
			return true
		}
	}
	return false
}

// gapsOf returns the gaps between files; those that begin at the marker or after it are late, none where there
// is no marker.
func gapsOf(files []written, marker time.Time) []gap {
	all := compactTimes(files)
	slices.SortFunc(all, func(a, b written) int { return a.mod.Compare(b.mod) })
	var out []gap
	for i := 1; i < len(all); i++ {
		out = append(out, gap{all[i].mod.Sub(all[i-1].mod), !marker.IsZero() && !all[i-1].mod.Before(marker)})
	}
	return out
}
