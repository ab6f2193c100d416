// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"
)

// Two attempts at one save leave times of a pattern: each attempt writes its files in the framework's order and in
// one go, no other save is written meanwhile, and a restart lies between them. Other times are those of a copy.

const (
	// sameTime is how far apart the times of files may be whose order says nothing.
	sameTime = time.Second
	// pauseFactor is how many times longer a restart takes than any pause within a save. A job that comes back
	// loads as much as it saves, and trains up to the next save.
	pauseFactor = 3
	// maxPauses is how many restarts in the same save its times may show.
	maxPauses = 2
	// minOrderKnown is how many times must be in the framework's order to judge by that.
	minOrderKnown = 6
)

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
	if s.inPlainOrder(save) {
		return false
	}
	var last time.Time // of what other saves wrote
	for i := range s.root.Saves {
		if other := &s.root.Saves[i]; other != save && other.lastWrite.After(last) {
			last = other.lastWrite
		}
	}
	return slices.ContainsFunc(save.late, func(l late) bool {
		n, _ := slices.BinarySearchFunc(all, l.mod, time.Time.Compare)
		if n == 0 || !l.mod.After(last) {
			return false
		}
		end := all[n-1]
		span, pause := end.Sub(all[0]), l.mod.Sub(end)
		return span > 0 && pause > clockMargin && pause >= pauseFactor*span && firstPart(save, l.mod)
	})
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

// inWriteOrder returns the oldest and the newest file of each place in a save that one process writes in a known
// order; none of other formats.
func inWriteOrder(save *Save) []ranked {
	if save.Format != FormatHFTrainer {
		return nil
	}
	var oldest, newest [len(trainerOrder)]time.Time
	for _, w := range save.times {
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
	for i := range s.root.Saves {
		other := &s.root.Saves[i]
		if other == save || !other.Epoch.OK {
			continue
		}
		if amid(whole, other.times) || other.committed() && len(other.late) == 0 && amid(other.times, save.times) {
			return true
		}
	}
	return false
}

// wholeAttempt are the files of the attempt that wrote the marker.
func wholeAttempt(save *Save) []written {
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
	newer := func(a, b written) int { return a.mod.Compare(b.mod) }
	from, to := slices.MinFunc(of, newer).mod.Add(sameTime), slices.MaxFunc(of, newer).mod.Add(-sameTime)
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
		if other := &s.root.Saves[i]; other != save && other.committed() && onward(other.late) && len(other.times) > 0 {
			gaps = append(gaps, gapsOf(other.times, time.Time{})...)
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
