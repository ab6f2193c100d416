// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// standing is a finding as it was last reported.
type standing struct {
	place   place
	ranks   []int64 // all of them
	verdict Verdict
	dirty   bool
	told    model.Finding // as last reported
	// confirmed is how many steps the job had when the finding was last confirmed.
	confirmed int
	// explained is in how many looks since then, the last in a row, a structure has been
	// told that makes its ranks seem what they were accused of.
	explained int
}

// settle opens, updates and closes findings after a judgement.
func (j *job) settle(named []*candidate) {
	joint := j.joint(named)
	var next []*standing
	for _, c := range named {
		if v, ok := j.verdict(c, joint); ok {
			next = append(next, j.stand(c, v))
		}
	}
	for _, s := range j.verdicts {
		if slices.ContainsFunc(next, s.continuedBy) {
			continue
		}
		if s.verdict.Finding.Status != model.StatusClosed {
			j.fade(s, slices.ContainsFunc(named, s.explainedBy))
		}
		next = append(next, s)
	}
	j.verdicts = next
}

// explainedLooks is in how many looks in a row a structure must explain the ranks that
// were accused, none of which accuses them again. One is not enough: who is near a gate
// is accused at every other look, beside whatever else is told.
const explainedLooks = 3

// explainedBy reports whether what accused ranks is told now by a place that holds them
// all and makes them seem what they were accused of. What concerns no rank in particular,
// as pauses that rotate, explains none.
func (s *standing) explainedBy(c *candidate) bool {
	if s.place.sort != placeRank || len(s.ranks) == 0 {
		return false
	}
	switch c.place.sort {
	case placeHost:
	case placeStage, placeWork:
		if s.verdict.Finding.Class != model.ClassCompute {
			return false
		}
	default:
		return false
	}
	return !slices.ContainsFunc(s.ranks, func(r int64) bool { return !slices.Contains(c.Ranks, r) })
}

// fade closes a finding that was not confirmed for CleanSteps steps, or is explained.
// Until then it stands: a rank near a gate must not become a new finding every few steps.
func (j *job) fade(s *standing, explained bool) {
	if explained {
		s.explained++
	} else {
		s.explained = 0
	}
	f := &s.verdict.Finding
	if j.steps-s.confirmed < j.e.cfg.CleanSteps && s.explained < explainedLooks {
		return
	}
	f.Status, s.dirty = model.StatusClosed, true
	f.Revision++
	j.episodes++
	j.past = append(j.past, s.verdict)
	if over := len(j.past) - maxPast; over > 0 {
		j.past = slices.Clone(j.past[over:])
	}
}

// maxPast is how many closed findings of a job are kept for its report.
const maxPast = 64

func (s *standing) continuedBy(n *standing) bool {
	return n.verdict.Finding.ID == s.verdict.Finding.ID
}

// stand joins a verdict with the one that stands for the same place.
func (j *job) stand(c *candidate, v Verdict) *standing {
	for _, s := range j.verdicts {
		old := &s.verdict.Finding
		if s.place != c.place || old.Status == model.StatusClosed {
			continue
		}
		v.Finding.ID, v.Finding.Revision, v.Finding.Status = old.ID, old.Revision, old.Status
		if old.StepFirst.V < v.Finding.StepFirst.V {
			v.Finding.StepFirst, v.Finding.Start = old.StepFirst, old.Start
		}
		v = s.verdict.fuller(v)
		changed := s.dirty || differs(&s.told, &v.Finding)
		if changed && !s.dirty {
			v.Finding.Revision++
			v.Finding.Status = model.StatusUpdated
		}
		return &standing{place: c.place, ranks: c.Ranks, verdict: v, dirty: changed, told: s.told, confirmed: j.steps}
	}
	return &standing{place: c.place, ranks: c.Ranks, verdict: v, dirty: true, confirmed: j.steps}
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

// changed judges, and returns what changed since the last call. After the last
// step everything that moved since it was reported counts as changed.
func (j *job) changed(final bool) []Verdict {
	j.judge()
	var out []Verdict
	for _, s := range j.verdicts {
		f := &s.verdict.Finding
		if final && !s.dirty && f.StepLast != s.told.StepLast {
			f.Revision++
			f.Status = model.StatusUpdated
			s.dirty = true
		}
		if s.dirty {
			s.dirty, s.told = false, *f
			out = append(out, s.verdict)
		}
	}
	j.verdicts = slices.DeleteFunc(j.verdicts, func(s *standing) bool {
		return s.verdict.Finding.Status == model.StatusClosed
	})
	return out
}
