// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/kair"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// kairNamed returns whom KAIR accuses.
func (j *job) kairNamed() []judge.Conclusion {
	if j.rhythm.accuser == nil {
		return nil
	}
	var out []judge.Conclusion
	for _, a := range j.rhythm.accuser.Accusations() {
		out = append(out, conclusionOf(&a))
	}
	return out
}

// conclusionOf says what KAIR knows: neither what the peers took nor how sure it is. The
// chance is that of a z-score of one operation under a normal distribution, as its rule
// implies, and the confidence the share of the recent steps.
func conclusionOf(a *kair.Accusation) judge.Conclusion {
	return judge.Conclusion{
		Class: a.Class, Rank: a.Rank, Ranks: []int64{a.Rank}, Stage: -1, Peer: -1, Op: a.Op, OpSec: a.Excess,
		First: a.First, Last: a.Last, Steps: a.Steps, Excess: a.Excess, Mean: a.Excess * a.Share,
		Chance: math.Erfc(a.Score/math.Sqrt2) / 2, Steadiness: a.Score, Confidence: a.Share, Peers: a.Peers,
		Numbers: map[string]float64{
			"z_score": a.Score, "z_score_limit": a.Gates.Sigmas, "steps_recent": float64(a.Recent),
			"steps_blamed": float64(a.Steps), "steps_blamed_limit": float64(a.Gates.MinSteps),
			"steps_blamed_share": a.Share, "steps_blamed_share_limit": a.Gates.MinShare,
			"rhythm_windows": float64(a.Gates.Windows),
		},
	}
}
