// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// episode is an open finding of a job.
type episode = finding.Episode[standing]

// standing is what the engine keeps beside an open finding.
type standing struct {
	ranks    []int64 // all of them
	decisive *Meeting
	steps    int // the most that a judgement of it rested on
	// turn orders the findings of a job: those that the last judgement named come first.
	turn  int
	dirty bool          // changed since it was reported
	told  model.Finding // as last reported
	order int64         // of its last report among all
	// confirmed is how many steps the job had when the finding was last confirmed.
	confirmed int
	// explained is in how many looks since then, the last in a row, a structure has been
	// told that makes its ranks seem what they were accused of.
	explained int
}

func verdictOf(e *episode) Verdict { return Verdict{e.Finding, e.Data.decisive, e.Data.steps} }

// findingPlace returns where findings about a place of the job are.
func (j *job) findingPlace(p place) finding.Place {
	return finding.Place{Job: j.id, Incarnation: j.incarnation, Name: p.key()}
}

// settle opens, updates and closes findings after a judgement.
func (j *job) settle(named []*candidate) {
	joint := j.joint(named)
	j.turn -= len(named)
	for i, c := range named {
		if v, ok := j.verdict(c, joint); ok {
			j.stand(c, v, j.turn+i)
		}
	}
	for _, e := range j.standing() {
		if e.Data.turn >= j.turn+len(named) {
			j.fade(e, slices.ContainsFunc(named, func(c *candidate) bool { return explainedBy(e, c) }))
		}
	}
}

// standing returns the job's open findings in the order in which they are reported.
func (j *job) standing() []*episode {
	open := j.e.book.OfJob(j.id, j.incarnation)
	slices.SortStableFunc(open, func(a, b *episode) int { return cmp.Compare(a.Data.turn, b.Data.turn) })
	return open
}

// explainedLooks is in how many looks in a row a structure must explain the ranks that
// were accused, none of which accuses them again. One is not enough: who is near a gate
// is accused at every other look, beside whatever else is told.
const explainedLooks = 3

// explainedBy reports whether what accused ranks is told now by a place that holds them
// all and makes them seem what they were accused of. What concerns no rank in particular,
// as pauses that rotate, explains none.
func explainedBy(e *episode, c *candidate) bool {
	if placeSortOf(e.Place.Name) != placeRank || len(e.Data.ranks) == 0 {
		return false
	}
	switch c.place.sort {
	case placeHost:
	case placeStage, placeWork:
		if e.Finding.Class != model.ClassCompute {
			return false
		}
	default:
		return false
	}
	return !slices.ContainsFunc(e.Data.ranks, func(r int64) bool { return !slices.Contains(c.Ranks, r) })
}

// fade closes a finding that was not confirmed for CleanSteps steps, or is explained.
// Until then it stands: a rank near a gate must not become a new finding every few steps.
func (j *job) fade(e *episode, explained bool) {
	s := &e.Data
	if explained {
		s.explained++
	} else {
		s.explained = 0
	}
	clean := j.steps-s.confirmed >= j.grace(e)
	if !clean && s.explained < explainedLooks {
		return
	}
	if clean {
		j.clean.Set(e.Place.Name, j.newest)
	}
	j.e.book.Close(e, e.Finding.Time)
	j.past = append(j.past, verdictOf(e))
	if over := len(j.past) - maxPast; over > 0 {
		j.past = slices.Clone(j.past[over:])
	}
}

// grace is how many steps a finding outlives its last confirmation. One that was open before a restart waits
// for a whole window, if that is longer: its first steps are too few for some judgements to name it.
func (j *job) grace(e *episode) int {
	if e.Restored {
		return max(j.e.cfg.CleanSteps, j.e.cfg.Window)
	}
	return j.e.cfg.CleanSteps
}

// maxPast is how many closed findings of a job are kept for its report.
const maxPast = 64

// isOver reports whether all steps of a verdict came before its place was found clean. Such a verdict opens no
// finding: a larger window can turn old steps into evidence. A step that seems older than longIdle is no old
// one: its clock was set back.
func (j *job) isOver(name string, v *Verdict) bool {
	newest, ok := j.clean.Peek(name)
	return ok && v.Finding.Time <= newest && newest-v.Finding.Time < int64(longIdle)
}

// stand opens a finding, or joins the verdict with the finding that is open at its place.
func (j *job) stand(c *candidate, v Verdict, turn int) {
	book, at, now := j.e.book, j.findingPlace(c.place), j.e.now()
	e := book.At(at)
	if e == nil {
		if j.isOver(at.Name, &v) {
			return
		}
		if e = book.Open(at, v.Finding.StepFirst.V, &v.Finding, now); e == nil {
			return // there is no room
		}
		j.past = slices.DeleteFunc(j.past, func(p Verdict) bool { return p.Finding.ID == e.Finding.ID })
		e.Data.dirty = true
	} else if book.Confirm(e, now); !e.Restored || v.Finding.StepLast.V >= e.Finding.StepLast.V { // else steps are read again that it knew
		v = joinVerdict(e, v)
		e.Finding.Start = v.Finding.Start // it may have begun before the first step that was known
		if e.Data.dirty || !differs(&e.Data.told, &v.Finding) {
			book.Refresh(e, &v.Finding)
		} else {
			book.Revise(e, &v.Finding, now)
			e.Data.dirty = true
		}
	}
	s := &e.Data
	s.ranks, s.decisive, s.steps, s.turn = c.Ranks, v.Decisive, v.Steps, turn
	s.confirmed, s.explained = j.steps, 0
}

// joinVerdict returns the verdict with the first step and the numbers of the open finding, where those
// say more.
func joinVerdict(e *episode, v Verdict) Verdict {
	former := verdictOf(e)
	if old := &former.Finding; old.StepFirst.OK && old.StepFirst.V < v.Finding.StepFirst.V {
		v.Finding.StepFirst, v.Finding.Start = old.StepFirst, old.Start
	}
	return former.fuller(v)
}

// minFuller is the share of the steps of the fullest judgement that a later one
// must rest on to replace its numbers.
const minFuller = 0.5

// fuller returns v, or where v rests on far fewer steps, as at the end of an
// episode, the former numbers with v's first and last step.
func (former *Verdict) fuller(v Verdict) Verdict {
	if float64(v.Steps) >= minFuller*float64(former.Steps) {
		v.Steps = max(v.Steps, former.Steps)
		return v
	}
	kept := *former
	kept.Finding.StepFirst, kept.Finding.Start = v.Finding.StepFirst, v.Finding.Start
	kept.Finding.StepLast, kept.Finding.Time = v.Finding.StepLast, v.Finding.Time
	return kept
}

// differs reports whether the finding changed by more than noise.
func differs(a, b *model.Finding) bool {
	const relative, absolute = 0.1, 0.1
	return a.Class != b.Class || a.Op != b.Op || a.Cause != b.Cause || a.Link != b.Link || a.RanksCount != b.RanksCount || a.BeforeWindow != b.BeforeWindow ||
		math.Abs(a.CostSeconds.V-b.CostSeconds.V) > relative*math.Abs(a.CostSeconds.V) ||
		math.Abs(a.Confidence-b.Confidence) > absolute
}

// renew revises the findings that moved since they were reported: no step comes after the last.
func (j *job) renew() {
	for _, e := range j.standing() {
		if s := &e.Data; !s.dirty && e.Finding.StepLast != s.told.StepLast {
			j.e.book.Revise(e, &e.Finding, j.e.now())
			s.dirty = true
		}
	}
}
