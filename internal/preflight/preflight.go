// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Place is one folder of checkpoints, as it was read.
type Place struct {
	Name string // for people, different from the others'
	Root *ckpt.Root
}

// Save is one epoch with what all places hold of it.
type Save struct {
	Epoch     model.Optional[int64] // unknown of a save that nothing names
	Format    ckpt.Format
	Paths     []string // in the order of the places, those that have it
	Judgement epoch.Judgement
	Problems  []Problem
	// WeightsOnly says why a resume of training can not take the save, although it is whole; "" where it
	// can. Of an exported model it says what it is, and Export is set.
	WeightsOnly string
	Export      bool
	contents    epoch.Verdict // without what only times put in doubt
	weights     ckpt.Weights
	unproven    string // why it is unknown although all domains confirm
	misnamed    string // why its epoch is not what its name says
}

// Problem is a problem of a place.
type Problem struct {
	Place string
	ckpt.Problem
}

// Result is the answer.
type Result struct {
	Verdict epoch.Verdict
	// Epoch is what was judged: what was asked for, else what the job would resume from.
	Epoch model.Optional[int64]
	By    string // what says that a resume takes it; "" where the caller asked for it
	Why   string // one sentence: why it may not resume, "" where it may
	// Next says what to do about a save that is torn or mixed, or about a pointer that names none. "" where Why says it,
	// or where the job may resume.
	Next string
	// Frontier is the newest epoch that every domain of every place confirms, pointers aside.
	Frontier model.Optional[int64]
	// Lagging: the frontier is not what would be resumed from.
	Lagging  bool
	Judged   *Save // nil where there is no such save
	Saves    []Save
	Problems []Problem // of the places themselves
	Resumes  []Pointer

	accept Accept
	takeIt string // how a save that is whole is taken in place of what a resume takes
	lost   bool   // what says what a resume takes names no save
}

// Pointer is what one place would resume from.
type Pointer struct {
	Place string
	ckpt.Resume
}

// OK reports whether the job may resume, or start.
func (r *Result) OK() bool { return r.Verdict == epoch.Converged || r.Verdict == Empty }

// Verdicts that only a look before a start gives.
const (
	// WeightsOnly: every part confirms one epoch, and they are of a model alone.
	WeightsOnly epoch.Verdict = "weights_only"
	// Empty: there is nothing at all, and the caller accepts that.
	Empty epoch.Verdict = "empty"
)

// Accept is what the caller takes for good although a resume would lose by it.
type Accept struct {
	WeightsOnly bool // a save of weights alone, as initial weights
	Empty       bool // folders without anything, at the first start of a job
}

// Judge answers for the epoch that was asked for, or where none was for the one that the job
// would resume from.
func Judge(places []Place, asked model.Optional[int64]) *Result {
	return JudgeAccepting(places, asked, Accept{})
}

// JudgeAccepting is Judge for a caller who accepts something.
func JudgeAccepting(places []Place, asked model.Optional[int64], accept Accept) *Result {
	r := &Result{Verdict: epoch.Unknown, accept: accept}
	for _, p := range places {
		for _, problem := range p.Root.Problems {
			r.Problems = append(r.Problems, Problem{p.Name, problem})
		}
		for _, resume := range p.Root.Resumes {
			r.Resumes = append(r.Resumes, Pointer{p.Name, resume})
		}
	}
	r.Saves = joinSaves(places)
	r.Frontier = r.frontier()
	switch {
	case r.empty(places):
	case asked.OK:
		r.Epoch = asked
		r.judge(asked)
	case len(r.Resumes) == 0 && len(r.Saves) == 1:
		r.By = "the only save there is"
		r.Epoch = r.Saves[0].Epoch
		r.conclude(&r.Saves[0])
	case len(r.Resumes) == 0:
		r.Why = fmt.Sprintf("nothing says which of %d saves a resume would take; name one with --epoch", len(r.Saves))
		if len(r.Saves) == 0 {
			r.Why = nothing(places)
		}
	default:
		r.judgeResume(len(places))
	}
	r.several(places)
	r.inPart(places)
	r.Lagging = r.Frontier.OK && r.Frontier != r.Epoch
	r.Next = r.next()
	return r
}

// nothing is why a resume finds no save, with the folders one level down that hold some.
func nothing(places []Place) string {
	const why = "there is no save to resume from"
	for _, p := range places {
		if p.Root.Unfinished != "" {
			return fmt.Sprintf("%s: a download into %s from the Hugging Face hub was not finished, by %s; run the download again", why, p.Name, p.Root.Unfinished)
		}
		if len(p.Root.Below) > 0 {
			return fmt.Sprintf("%s: %s has none of its own; give the folder in it to resume from (%s)", why, p.Name, strings.Join(p.Root.Below, ", "))
		}
	}
	return why
}

// several: of saves of several frameworks in one folder, those of one were read, and nothing says which
// a resume reads.
func (r *Result) several(places []Place) {
	for _, p := range places {
		if len(p.Root.Families) > 0 && r.OK() {
			r.Verdict = epoch.Unknown
			r.Why = fmt.Sprintf("%s holds saves of several frameworks (%s), or of one under several names, and nothing says which a resume reads; give each a folder of its own", p.Name, strings.Join(p.Root.Families, ", "))
		}
	}
}

// judgeResume judges what all places would resume from.
func (r *Result) judgeResume(places int) {
	first := r.Resumes[0]
	r.By = first.By
	for _, p := range r.Resumes[1:] {
		if p.Epoch != first.Epoch || (p.Path == "") != (first.Path == "") {
			r.Verdict = epoch.MixedEpoch
			r.Why = fmt.Sprintf("places would resume from different epochs: %s by %s, %s by %s", at(first), first.By, at(p), p.By)
			return
		}
	}
	switch {
	case len(r.Resumes) < places:
		r.Why = fmt.Sprintf("only %d of %d places say what they would resume from", len(r.Resumes), places)
	case first.Lost != "" && !r.has(first.Epoch):
		r.Epoch, r.Why, r.lost = first.Epoch, "a resume would find no save: "+first.Lost, true
	case first.Path == "":
		r.Why = "a resume would find no save (by " + first.By + ")"
	case !first.Epoch.OK && len(r.Saves) == 1:
		r.conclude(&r.Saves[0])
	case !first.Epoch.OK && r.unnamed(first.Path) != nil:
		r.conclude(r.unnamed(first.Path))
	case !first.Epoch.OK:
		r.Why = fmt.Sprintf("nothing says of which epoch %q is", first.Path)
	default:
		r.Epoch = first.Epoch
		r.judge(first.Epoch)
	}
}

// has reports whether there is a save of an epoch.
func (r *Result) has(e model.Optional[int64]) bool {
	return e.OK && slices.ContainsFunc(r.Saves, func(s Save) bool { return s.Epoch == e })
}

// unnamed is the save at a path of which nothing says the epoch, and which is not whole; nil where there is none.
func (r *Result) unnamed(path string) *Save {
	i := slices.IndexFunc(r.Saves, func(s Save) bool {
		return !s.Epoch.OK && slices.Equal(s.Paths, []string{path}) && s.Judgement.MissingCount > 0
	})
	if i < 0 {
		return nil
	}
	return &r.Saves[i]
}

func at(p Pointer) string {
	if p.Path == "" {
		return p.Place + " from nothing"
	}
	if !p.Epoch.OK {
		return fmt.Sprintf("%s from %q", p.Place, p.Path)
	}
	return fmt.Sprintf("%s from %d", p.Place, p.Epoch.V)
}

func (r *Result) judge(e model.Optional[int64]) {
	i := slices.IndexFunc(r.Saves, func(s Save) bool { return s.Epoch == e })
	if i < 0 {
		r.Why = fmt.Sprintf("there is no save of epoch %d", e.V)
		return
	}
	r.conclude(&r.Saves[i])
}

func (r *Result) conclude(s *Save) {
	r.Judged, r.Verdict = s, s.Judgement.Verdict
	switch {
	case s.contents == epoch.Converged && r.weightsOnly(s):
		return
	case r.Verdict != epoch.Converged:
		r.Why = reason(s)
		return
	}
	for _, p := range r.Resumes {
		switch {
		case s.Epoch.OK && p.Epoch.OK && p.Epoch != s.Epoch:
			r.Why = fmt.Sprintf("epoch %d is whole, but a resume would take %d (by %s)", s.Epoch.V, p.Epoch.V, p.By)
		case s.Epoch.OK && p.Epoch.OK && p.Path != "" && !slices.Contains(s.Paths, p.Path):
			r.Why = fmt.Sprintf("epoch %d is whole in %q, but a resume would open %q (by %s)", s.Epoch.V, s.Paths[0], p.Path, p.By)
		case p.Path != "" && !p.Epoch.OK && !slices.Contains(s.Paths, p.Path):
			r.Why = fmt.Sprintf("this save is whole, but a resume would take %q (by %s), and nothing says of which epoch that is", p.Path, p.By)
		default:
			continue
		}
		r.Verdict, r.takeIt = epoch.Unknown, s.haveTaken(p)
		return
	}
}

// reason says in one sentence why a save is not converged.
func reason(s *Save) string {
	j := &s.Judgement
	switch {
	case s.misnamed != "":
		return s.misnamed
	case j.Domains == 0 && s.unproven != "":
		return s.unproven
	case len(j.Held) > 1:
		return "domains hold different epochs: " + heldText(j.Held)
	case j.Verdict == epoch.MixedEpoch:
		return fmt.Sprintf("the save is called %d, and its domains hold %s", s.Epoch.V, heldText(j.Held))
	case j.MissingCount > 0 && j.MissingCount == j.Domains && closed(s) != "":
		return closed(s)
	case j.MissingCount > 0:
		return fmt.Sprintf("%d of %d domains do not confirm it, the first %s %s, which is %s",
			j.MissingCount, j.Domains, j.Missing[0].Domain.Kind, j.Missing[0].Domain.ID, j.Missing[0].State)
	case j.Domains == 0:
		return "no domain of it could be read"
	}
	return s.unproven
}

// closed says why nothing of a save could be looked at, as of a link that leads out of the folder, or what is wrong
// with one that is a single file; "" where that is not the reason.
func closed(s *Save) string {
	for _, p := range s.Problems {
		switch {
		case !slices.Contains(s.Paths, p.File):
		case p.Severity == ckpt.Unreadable:
			return p.File + " could not be read: " + p.What
		default:
			return p.File + ": " + p.What
		}
	}
	return ""
}

func heldText(held []epoch.Held) string {
	var out string
	for i, h := range held {
		if i > 0 {
			out += ", "
		}
		if i == 8 { // a sentence is read whole
			return out + fmt.Sprintf("and %d more", len(held)-i)
		}
		out += fmt.Sprintf("%d (%d)", h.Epoch, h.Count)
	}
	return out
}

// frontier is the newest epoch whose domains all confirm it, pointers aside.
func (r *Result) frontier() model.Optional[int64] {
	var best model.Optional[int64]
	for i := range r.Saves {
		s := &r.Saves[i]
		if s.Epoch.OK && recoverable(s) && (r.accept.WeightsOnly || s.resumable()) && (!best.OK || s.Epoch.V > best.V) {
			best = s.Epoch
		}
	}
	return best
}

// recoverable reports whether only pointers keep a save from being converged.
func recoverable(s *Save) bool {
	j := &s.Judgement
	if j.Verdict == epoch.Converged {
		return true
	}
	if s.unproven != "" {
		return false
	}
	if len(j.Held) != 1 || j.Held[0].Epoch != s.Epoch.V || j.MissingCount != len(j.Missing) || j.MissingCount == 0 {
		return false
	}
	return !slices.ContainsFunc(j.Missing, func(d epoch.Doubt) bool { return d.Domain.Kind != model.DomainTracker })
}

// byEpoch orders the newest first, saves without an epoch last.
func byEpoch(a, b Save) int {
	if a.Epoch.OK != b.Epoch.OK {
		if a.Epoch.OK {
			return -1
		}
		return 1
	}
	return cmp.Compare(b.Epoch.V, a.Epoch.V)
}
