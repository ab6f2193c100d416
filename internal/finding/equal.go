// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// Equal reports whether two findings of one place report the same to people, whatever their times,
// ids, revisions and the name of their job.
func Equal(a, b *model.Finding) bool {
	return a.Severity == b.Severity && a.Kind == b.Kind && a.Class == b.Class && a.Cause == b.Cause &&
		equalPlaces(a, b) && equalCosts(a, b) && equalWaits(a, b) &&
		a.Confidence == b.Confidence && equalEvidence(a.Evidence, b.Evidence) && a.Action == b.Action && a.Stack == b.Stack && slices.Equal(a.Links, b.Links)
}

func equalPlaces(a, b *model.Finding) bool {
	return a.Rank == b.Rank && a.Host == b.Host && a.HWID == b.HWID && a.Op == b.Op && a.CommID == b.CommID && a.CommName == b.CommName &&
		a.Peer == b.Peer && a.Link == b.Link && a.Clock == b.Clock && a.RanksCount == b.RanksCount && slices.Equal(a.Ranks, b.Ranks) &&
		a.StepFirst == b.StepFirst && a.StepLast == b.StepLast && a.BeforeWindow == b.BeforeWindow
}

func equalCosts(a, b *model.Finding) bool {
	return a.CostSeconds == b.CostSeconds && a.CostShare == b.CostShare && a.CostJoint == b.CostJoint &&
		a.CostLeast == b.CostLeast && a.CostMost == b.CostMost && a.WaitCaused == b.WaitCaused && a.WaitCausedShare == b.WaitCausedShare
}

func equalWaits(a, b *model.Finding) bool {
	return a.WaitingCount == b.WaitingCount && a.Through == b.Through && a.CandidatesCount == b.CandidatesCount &&
		slices.Equal(a.Waiting, b.Waiting) && slices.Equal(a.Candidates, b.Candidates)
}

// equalEvidence compares what is sent: the evidence of a finding that was restored is text.
func equalEvidence(a, b evidence.Evidence) bool {
	return a == b || evidence.Encode(a) == evidence.Encode(b)
}
