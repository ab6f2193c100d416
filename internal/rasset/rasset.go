// SPDX-License-Identifier: Apache-2.0

// Package rasset judges saved answers of NCCL's RAS, as ncclras prints them: of one moment or of
// several, in text or JSON, of one job or of several.
package rasset

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/dumpset"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ras"
)

// Answer is one answer of a file.
type Answer struct {
	Path string
	// Written is when the file was, Unix ns.
	Written int64
	Status  *ras.Status

	at      int64 // Unix ns
	timed   bool  // it has a time of its own
	number  int   // in its file, from 0
	several bool  // its file has others
}

// Options say how answers are judged.
type Options struct {
	// Job is the job's name; empty is that of the folder.
	Job string
	// Hung: the person knows that the job hung.
	Hung   bool
	Engine desync.Config

	oneMoment string // why the answers of the job that is judged are as good as one
}

// Judge reports on each job of the answers, the worst first.
func Judge(answers []Answer, o Options) (out []dumpset.Hang) {
	answers = numbered(answers)
	for _, group := range jobs(answers) {
		out = append(out, o.judge(group)...)
	}
	return out
}

// jobs tells answers of several jobs apart: those that share a communicator are of one. An answer in
// text without a difference lists none, and is of the only job where there is one.
func jobs(answers []Answer) (groups [][]Answer) {
	var none []Answer
	of := map[uint64]int{}
	for _, a := range answers {
		if len(a.Status.Comms) == 0 {
			none = append(none, a)
			continue
		}
		to := -1
		for i := range a.Status.Comms {
			if g, ok := of[a.Status.Comms[i].Hash]; ok && groups[g] != nil {
				switch {
				case to < 0:
					to = g
				case g != to: // this answer joins two
					groups[to] = append(groups[to], groups[g]...)
					for hash, was := range of {
						if was == g {
							of[hash] = to
						}
					}
					groups[g] = nil
				}
			}
		}
		if to < 0 {
			to = len(groups)
			groups = append(groups, nil)
		}
		groups[to] = append(groups[to], a)
		for i := range a.Status.Comms {
			of[a.Status.Comms[i].Hash] = to
		}
	}
	groups = slices.DeleteFunc(groups, func(g []Answer) bool { return g == nil })
	switch {
	case len(none) == 0:
	case len(groups) == 1:
		groups[0] = append(groups[0], none...)
	default:
		groups = append(groups, none)
	}
	return groups
}

// judge reports on one job: on each set of its communicators that share processes.
func (o *Options) judge(answers []Answer) (out []dumpset.Hang) {
	o.oneMoment = oneMoment(answers, place(answers))
	base := answers[0].Status
	for _, a := range answers[1:] {
		if better(a.Status, base) {
			base = a.Status
		}
	}
	cleared := cleared(answers)
	layouts := ras.Layouts(base)
	parts := make([][]Answer, len(layouts)) // of each layout: what the answers say of it
	for i := range answers {
		for k, s := range ras.Divide(layouts, without(answers[i].Status, cleared)) {
			if len(s.Comms) > 0 {
				a := answers[i]
				a.Status = s
				parts[k] = append(parts[k], a)
			}
		}
	}
	given := counted(answers)
	for i, l := range layouts {
		if len(parts[i]) == 0 {
			continue
		}
		h := given
		h.Report, h.Remarks = o.layout(l, parts[i])
		out = append(out, h)
	}
	found := slices.ContainsFunc(out, func(h dumpset.Hang) bool { return len(h.Roots) > 0 })
	if found {
		out = slices.DeleteFunc(out, func(h dumpset.Hang) bool { return len(h.Roots) == 0 })
	}
	if !found && len(out) > 1 {
		out = out[:1]
	}
	if len(out) == 0 {
		a := o.analyzer(&ras.Job{Name: o.name(answers), ID: o.name(answers)})
		h := given
		if h.Report = o.deadAlone(answers); h.Report == nil {
			h.Report = a.Conclude(0)
		}
		out = append(out, h)
	}
	texts := unlisted(without(base, cleared))
	for i := range out {
		sayCleared(&out[i], cleared)
		sayDead(&out[i], answers)
		sayUnlisted(&out[i], texts)
		nothingListed(&out[i], answers)
	}
	return out
}

// nothingListed says what is not known where no answer lists a communicator, or one is cut off.
func nothingListed(h *dumpset.Hang, answers []Answer) {
	var cut []string
	for i := range answers {
		if why := cutOff(&answers[i]); why != "" && len(cut) < maxRemarks {
			cut = append(cut, why)
		}
	}
	why := strings.Join(cut, "; ") + ": save the whole output of ncclras -v"
	none := !slices.ContainsFunc(answers, func(a Answer) bool { return !a.Status.Empty() })
	switch {
	case len(cut) > 0 && (len(h.Roots) > 0 || h.Verdict == desync.Hang):
		h.Remarks = append(h.Remarks, strings.ToUpper(why[:1])+why[1:]+".")
	case len(cut) > 0:
		h.Verdict, h.MayRun = desync.Undecided, why
	case none && len(h.Roots) == 0:
		h.Verdict = desync.Undecided
		h.MayRun = fmt.Sprintf("NCCL's RAS lists no communicator that has a member in %s: ask the port of a job that has made one (ncclras -v -p PORT)", answers[0].text())
	}
}

// cutOff says what an answer that is cut off lacks; empty where it is not.
func cutOff(a *Answer) string {
	s := a.Status
	switch {
	case !s.Cut():
		return ""
	case s.Flagged == "":
		return fmt.Sprintf("the answer in %s lists no communicator, or is cut off in front of them", a.text())
	}
	return fmt.Sprintf("the table of communicators in %s says %s, and the answer ends before it says which ranks", a.text(), s.Flagged)
}

// better reports whether an answer says more than another.
func better(a, b *ras.Status) bool {
	if a.Prose != b.Prose {
		return b.Prose
	}
	return len(a.Comms) > len(b.Comms)
}

// layout reports on the communicators of one layout, and lists errors of their ranks.
func (o *Options) layout(l *ras.Layout, answers []Answer) (rep *desync.Report, remarks []string) {
	var a *desync.Analyzer
	slices.SortStableFunc(answers, func(a, b Answer) int { return cmp.Compare(b.at, a.at) })
	for i := range answers {
		j := l.Job(answers[i].Status, ras.Origin{ID: o.name(answers), Name: o.name(answers), From: filepath.Base(answers[i].Path), Saved: true, At: answers[i].at})
		if a == nil {
			a = o.analyzer(j)
			for _, b := range j.Beside {
				a.AddBeside(b.Rank, b.Ahead)
			}
		}
		for k := range j.States {
			a.Add(&j.States[k])
		}
		for k := range j.Absent {
			a.AddAbsence(j.Absent[k].Absence)
		}
		for k := range j.Facts {
			f := &j.Facts[k]
			text := fmt.Sprintf("rank %d", f.Rank.Rank)
			if j.Unnumbered {
				text = fmt.Sprintf("process %d on %s", f.Rank.PID.Or(-1), f.Rank.HostName)
			}
			if text = "NCCL's RAS reports of " + text + ": " + f.What + "."; !slices.Contains(remarks, text) && len(remarks) < maxRemarks {
				remarks = append(remarks, text)
			}
		}
	}
	return a.Conclude(0), remarks
}

// maxRemarks bounds the errors that are listed of one job.
const maxRemarks = 8

func (o *Options) analyzer(j *ras.Job) *desync.Analyzer {
	a := desync.New(o.Engine)
	job := desync.Job{Name: j.Name, ID: j.ID, Incarnation: j.Incarnation, Unnumbered: j.Unnumbered}
	if j.WorldSize > 0 {
		job.WorldSize = model.Some(int64(j.WorldSize))
	}
	a.SetJob(job)
	a.SetSaved(o.Hung, o.oneMoment)
	return a
}

// counted says what was given.
func counted(answers []Answer) dumpset.Hang {
	h := dumpset.Hang{Incidents: 1, Answers: len(answers)}
	paths := map[string]bool{}
	for _, a := range answers {
		paths[a.Path] = true
		if v := a.Status.NCCLVersion; v != "" && !slices.Contains(h.Libs, v) {
			h.Libs = append(h.Libs, v)
		}
	}
	h.Files = len(paths)
	slices.Sort(h.Libs)
	return h
}

// unlisted is what an answer in text counts of members that it does not list.
func unlisted(s *ras.Status) (texts []string) {
	for i := range s.Comms {
		for _, what := range s.Comms[i].Unlisted {
			if len(texts) < maxRemarks {
				texts = append(texts, fmt.Sprintf("%s, of communicator 0x%016x", what, s.Comms[i].Hash))
			}
		}
	}
	return texts
}

func sayUnlisted(h *dumpset.Hang, texts []string) {
	if len(texts) == 0 {
		return
	}
	if len(h.Roots) == 0 {
		h.Verdict = desync.Undecided
		h.MayRun = "ranks differ, and the answer does not list which (" + strings.Join(texts, "; ") + "): ncclras -v lists them"
		return
	}
	h.Remarks = append(h.Remarks, "Ranks that the answer does not list differ, too ("+strings.Join(texts, "; ")+"): ncclras -v lists them.")
}

// name is the job's: where nothing says it, that of the folder.
func (o *Options) name(answers []Answer) string {
	dir, err := filepath.Abs(filepath.Dir(answers[0].Path))
	if err != nil {
		dir = filepath.Dir(answers[0].Path)
	}
	return cmp.Or(o.Job, filepath.Base(dir))
}
