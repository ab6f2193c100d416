// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// verdict renders a candidate that passed all gates.
func (j *job) verdict(c *candidate, joint float64) (Verdict, bool) {
	if c.place.sort == placeLink && c.Side == "" && c.in.wired(c.Rank) {
		return j.wireVerdict(c, joint)
	}
	j.locate(c)
	shown, ev := c.evidence(j.e.cfg.Method)
	if c.place.sort == placeRank {
		ev.BlameShare, ev.BlameOp = j.blamed(c.Rank)
	}
	if shown == nil && c.few {
		return Verdict{}, false
	}
	f := j.finding(c, joint)
	f.Op = c.Op
	f.Confidence = c.confidence(&ev)
	f.Evidence = &ev
	f.BeforeWindow = c.before >= 0.5
	switch c.place.sort {
	case placeLink, placeGroup:
		f.Link, f.CommID = c.linkName(), c.Comm
	case placeStage:
		f.Op = stageName(c.Stage)
	}
	if shown != nil && c.place.accuses() && f.Link == "" {
		f.CommID = shown.CommID
		f.WaitCaused, f.WaitCausedShare = model.Some(c.caused), model.Some(c.waitShare)
		f.Links = []model.SpanRef{shown.spanOf(shown.LastRank)}
	}
	f.Action = c.action(&f)
	if c.undivided() {
		f.Action += ". No launches are known by which to tell its host from what its device did or waited for: record them"
	}
	return Verdict{Finding: f, Decisive: shown, Steps: len(c.in)}, true
}

// finding returns what findings of every class have in common.
func (j *job) finding(c *candidate, joint float64) model.Finding {
	first, last := c.in.extent()
	f := model.Finding{
		Time: max(first.end, last.end), Start: min(first.start, last.start), Severity: severity(c.share(c.worth())),
		JobName: j.name, JobID: j.id, Incarnation: j.incarnation,
		Kind: model.FindingStraggler, Class: c.Class, Cause: cmp.Or(c.Cause, model.CauseUnknown),
		StepFirst: model.Some(first.step), StepLast: model.Some(last.step),
		CostSeconds: model.Some(c.cost), CostShare: model.Some(c.share(c.cost)), CostJoint: model.Some(joint),
	}
	if least := c.leastCost(); least != nil {
		f.CostLeast = model.Some(*least)
	}
	if most := c.mostCost(); most > 0 {
		f.CostMost = model.Some(most)
	}
	switch {
	case c.place.sort == placeHost:
		f.Host = c.Host
	case c.rank != nil:
		f.Rank, f.Host, f.HWID = model.Some(c.Rank), c.rank.HostName, c.rank.HWID
	}
	if c.Peer >= 0 {
		f.Peer = model.Some(c.Peer)
	}
	if n := len(c.Ranks); n > 0 {
		f.Ranks, f.RanksCount = c.Ranks[:min(n, maxListed)], model.Some(int64(n))
	}
	return f
}

// severity warns from a cost of 1 % of the step, as the data model has it.
func severity(costShare float64) model.Severity {
	if costShare > 0.01 {
		return model.SeverityWarn
	}
	return model.SeverityInfo
}
