// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"cmp"
	"slices"
)

// Reasons of a [Loss].
const (
	ReasonRestart   = "restart"
	ReasonGap       = "gap"
	ReasonUncertain = "uncertain"
)

// Loss is spans of a job that were lost.
type Loss struct {
	// Step is the first step with such spans; of gaps only the job is known, if anything.
	Step
	Last   int64
	Spans  int64
	Reason string
}

// losses are what was lost since it was asked for last.
type losses []Loss

func compareLosses(a, b Loss) int {
	return cmp.Or(compareKinds(a, b), cmp.Compare(a.Step.Step, b.Step.Step))
}

// compareKinds is 0 for losses of one life of a job for one reason.
func compareKinds(a, b Loss) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Incarnation, b.Incarnation), cmp.Compare(a.Reason, b.Reason))
}

// add adds a loss. Of more than the limit, steps that do not follow each other are one loss, too; of more jobs, what
// comes is left out: nothing asks for it.
func (l losses) add(of Loss, limit int) losses {
	all := l
	if len(all) >= limit {
		all = all.runs()
	}
	if len(all) >= limit {
		all = all.joined(func(Loss, Loss) bool { return true })
	}
	if len(all) < limit {
		return append(all, of)
	}
	i := slices.IndexFunc(all, func(known Loss) bool { return compareKinds(known, of) == 0 })
	if i >= 0 {
		all[i].take(of)
	}
	return all
}

// runs returns the losses in order, one for each run of steps.
func (l losses) runs() losses {
	return l.joined(func(a, b Loss) bool { return b.Step.Step <= a.Last+1 })
}

// joined returns the losses in order, those of one kind as one where a rule has it.
func (l losses) joined(rule func(a, b Loss) bool) (out losses) {
	slices.SortFunc(l, compareLosses)
	for _, of := range l {
		if n := len(out); n > 0 && compareKinds(out[n-1], of) == 0 && rule(out[n-1], of) {
			out[n-1].take(of)
			continue
		}
		out = append(out, of)
	}
	return out
}

// take adds another loss of the kind.
func (l *Loss) take(of Loss) {
	l.Step.Step, l.Last, l.Spans = min(l.Step.Step, of.Step.Step), max(l.Last, of.Last), l.Spans+of.Spans
}
