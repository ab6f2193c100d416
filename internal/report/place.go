// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// Place names what a finding is about: a rank, ranks, a host, a link, a communicator, a job.
func Place(f *model.Finding) string {
	switch {
	case f.Class == model.ClassFleetMixed && f.CommID != "":
		return fmt.Sprintf("communicator %s of job %s", ShortName(cmp.Or(f.CommName, f.CommID)), ShortName(f.JobID))
	case f.Class == model.ClassLink && f.Link != "":
		return linkPlace(f)
	case f.Class == model.ClassNode && f.Host != "":
		return "host " + ShortName(f.Host) + ofRanks(f)
	case f.Class == model.ClassStageImbalance && f.Op != "":
		return ShortName(f.Op) + ofRanks(f)
	case f.Kind == model.FindingDesync && namesProcess(f):
		return HangPlace(f)
	case f.Rank.OK:
		return fmt.Sprintf("rank %d", f.Rank.V) + onHost(f)
	case len(f.Ranks) > 0 && f.Kind == model.FindingStraggler:
		return SpansOf(f.Ranks, f.RanksCount) + onHost(f)
	case len(f.Ranks) > 0:
		return Plural(f.RanksCount.Or(int64(len(f.Ranks))), "rank")
	case f.Host != "":
		return "host " + ShortName(f.Host)
	case f.Link != "":
		return "link " + ShortName(f.Link)
	case f.CommID != "":
		return "communicator " + ShortName(cmp.Or(f.CommName, f.CommID))
	case f.JobID == "":
		return "a job or host that nothing names"
	}
	return "job " + ShortName(f.JobID)
}

// linkPlace names a card, or a link of which the finding names the sender's host.
func linkPlace(f *model.Finding) string {
	switch {
	case f.EndDecided():
		return f.Link + onHost(f)
	case f.Host != "":
		return "link " + f.Link + ", sent from " + ShortName(f.Host)
	}
	return "link " + f.Link
}

func onHost(f *model.Finding) string {
	if f.Host == "" {
		return ""
	}
	return " on " + ShortName(f.Host)
}

// ofRanks returns how many ranks a place holds.
func ofRanks(f *model.Finding) string {
	if n := f.RanksCount.Or(int64(len(f.Ranks))); n > 0 {
		return " (" + Plural(n, "rank") + ")"
	}
	return ""
}

// Subject names what makes the others wait: the place, or what has none.
func Subject(f *model.Finding) string {
	if traitIsSubject(f) {
		return trait(f)
	}
	return Place(f)
}

// Several reports whether the subject is one of many: the verb follows it.
func Several(f *model.Finding) bool {
	switch f.Class {
	case model.ClassJitter, model.ClassJobWide:
		return true
	case model.ClassNode, model.ClassStageImbalance, model.ClassLink:
		return false
	}
	return !f.Rank.OK && f.RanksCount.Or(int64(len(f.Ranks))) > 1
}

// structural reports whether the subject of a straggler is neither its rank nor its ranks.
func structural(f *model.Finding) bool {
	return traitIsSubject(f) || f.Class == model.ClassNode && f.Host != "" || f.Class == model.ClassStageImbalance && f.Op != ""
}

// traitIsSubject reports whether a straggler is no place, but what happens to the job.
func traitIsSubject(f *model.Finding) bool {
	return f.Kind == model.FindingStraggler && (f.Class == model.ClassJitter || f.Class == model.ClassJobWide || rotates(f))
}

// rotates reports whether the rank that has more work than its peers changes.
func rotates(f *model.Finding) bool {
	return f.Class == model.ClassWorkImbalance && !f.Rank.OK && len(f.Ranks) == 0
}

// Parts of both a sentence and a list of labels.
const (
	blameless     = "nobody is at fault"
	outsideScopes = "outside of any scope"
	beforeWindow  = "the cause precedes the recording"
)

// trait returns what a class is that names a structure, or a choice, instead of a slow rank.
func trait(f *model.Finding) string {
	switch {
	case f.Class == model.ClassNode:
		return "all of its ranks are slow alike"
	case f.Class == model.ClassKernelChoice:
		return "it runs another kernel than its peers for the same work"
	case f.Class == model.ClassStageImbalance:
		return "more work than the other stages"
	case rotates(f):
		return "unequal work that changes from rank to rank"
	case f.Class == model.ClassWorkImbalance:
		return "more work than their peers"
	case f.Class == model.ClassJitter:
		return pausesText(f)
	case f.Class == model.ClassJobWide:
		return "all ranks alike"
	}
	return ""
}

// pausesText returns how long pauses are and how often each rank has one, as far as the evidence knows.
func pausesText(f *model.Finding) string {
	text, law := "pauses", lawOf(stragglerEvidence(f))
	if law.Median > 0 {
		text += " of " + Seconds(law.Median)
	}
	text += " that rotate over the ranks"
	if law.Period > 0 {
		text += fmt.Sprintf(" (every %s steps on each)", Significant(law.Period))
	}
	return text
}

// lawOf returns the law of pauses, s and steps; 0 where it is not known.
func lawOf(ev *evidence.Straggler) (law evidence.Pauses) {
	if ev.Pauses != nil {
		law = *ev.Pauses
	}
	return law
}

// stragglerEvidence returns the numbers of a straggler; none of a finding of another kind.
func stragglerEvidence(f *model.Finding) *evidence.Straggler {
	if f.Kind != model.FindingStraggler {
		return &evidence.Straggler{}
	}
	ev, _ := evidence.StragglerOf(f.Evidence)
	return ev
}
