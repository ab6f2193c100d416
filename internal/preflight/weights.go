// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/epoch"
)

// addState notes whether one of the saves of an epoch has more than weights.
func (s *Save) addState(of *ckpt.Save, places int) {
	s.weights.Add(of, places > 1)
	s.WeightsOnly, s.Export = s.weights.Why, s.weights.Export
}

// resumable reports whether training can go on from a save that is whole.
func (s *Save) resumable() bool { return !s.weights.Alone() }

// IsWeightsOnly reports whether the save has weights and nothing else of a job, as an export has by its nature.
func (s *Save) IsWeightsOnly() bool { return s.Export || !s.resumable() }

// Verdict is what is known of the save, whatever a caller accepts.
func (s *Save) Verdict() epoch.Verdict {
	if s.contents == epoch.Converged && !s.resumable() {
		return WeightsOnly
	}
	return s.Judgement.Verdict
}

// weightsOnly refuses a save of weights alone, unless the caller accepts it. Where another save of the same epoch
// has more, it depends on which of them a resume takes.
func (r *Result) weightsOnly(s *Save) bool {
	if s.WeightsOnly == "" || s.Export || r.accept.WeightsOnly {
		return false
	}
	if s.resumable() && slices.ContainsFunc(r.Resumes, func(p Pointer) bool { return slices.Contains(s.weights.Full, p.Path) }) {
		return false
	}
	r.Verdict = WeightsOnly
	r.Why = s.weights.Sentence() + "; " + r.instead(s)
	return true
}

// instead is what to do about a save of weights alone.
func (r *Result) instead(s *Save) string {
	const accept = "accept it as initial weights with --allow-weights-only"
	switch {
	case r.Frontier.OK && r.Frontier == s.Epoch:
		return fmt.Sprintf("have the job load %s, or %s", strings.Join(s.weights.Full, ", "), accept)
	case r.Frontier.OK:
		return fmt.Sprintf("have the job load epoch %d, the newest that can be resumed from, or %s", r.Frontier.V, accept)
	}
	return "no other save can be resumed from; " + accept + ", or start a new job"
}

// empty reports whether there is nothing at all, which the caller accepts.
func (r *Result) empty(places []Place) bool {
	if !r.accept.Empty || slices.ContainsFunc(places, func(p Place) bool { return !p.Root.Bare }) {
		return false
	}
	r.Verdict, r.Problems = Empty, nil
	return true
}

// inPart: where something could not be read, or was left out, it may be what a resume takes, or what is missing.
// What was read is not enough for a yes.
func (r *Result) inPart(places []Place) {
	if r.Verdict == Empty {
		return
	}
	for _, p := range places {
		why := leftOut(p)
		if p.Root.Counts.EntriesLeftOut > 0 {
			r.Frontier.OK, r.Frontier.V = false, 0
		}
		if why == "" {
			why = unread(p)
		}
		if why != "" && r.OK() {
			r.Verdict, r.Why = epoch.Unknown, why
		}
	}
}

func leftOut(p Place) string {
	switch c := p.Root.Counts; {
	case c.EntriesLeftOut > 0:
		return fmt.Sprintf("a folder in %s has more entries than are read", p.Name)
	case c.SavesLeftOut > 0:
		return fmt.Sprintf("%s has %d more saves than are read; give the folder of one save, or delete old ones", p.Name, c.SavesLeftOut)
	}
	return ""
}

// unread names the first thing in a place that could not be read.
func unread(p Place) string {
	for _, q := range p.Root.Problems {
		if q.Severity == ckpt.Unreadable {
			return notAll(p, q)
		}
	}
	for i := range p.Root.Saves {
		for _, q := range p.Root.Saves[i].Problems {
			if q.Severity == ckpt.Unreadable {
				return notAll(p, q)
			}
		}
	}
	return ""
}

func notAll(p Place, q ckpt.Problem) string {
	return fmt.Sprintf("not everything in %s could be read: %s: %s; make it readable, or take it out of the folder", p.Name, q.File, q.What)
}
