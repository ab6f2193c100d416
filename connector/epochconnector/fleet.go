// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"fmt"
	"slices"
	"time"

	fleet "github.com/lockstep-otel/lockstep/internal/fleet/watch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// fleetAction is what an operator would do next.
const fleetAction = "bring the nodes of the minority to the version of the others, or run the job elsewhere; where the versions may mix, say so in fleet.compatible of the epoch connector"

// fleetFindings makes what is told everywhere of what the watch of versions says.
func fleetFindings(episodes []fleet.Episode, now time.Time) []model.Finding {
	return findingsOf(episodes, now, fleetFinding)
}

func fleetFinding(e *fleet.Episode, now time.Time) model.Finding {
	j := &e.Judgement
	op := string(e.Domain)
	if j.Model != "" {
		op += " of " + j.Model
	}
	f := model.Finding{
		Time: now.UnixNano(), Start: e.Began.UnixNano(), Severity: model.SeverityWarn, // many such jobs run well
		JobID: e.Job, JobName: e.JobName, Incarnation: e.Incarnation, CommID: e.CommID, CommName: e.CommName,
		Kind: model.FindingEpoch, Class: model.ClassFleetMixed, Cause: model.CauseUnknown, Op: op,
		Ranks: j.Minority, RanksCount: model.Some(int64(j.MinorityCount)),
		Confidence: 1, Action: fleetAction,
		ID: model.FindingID(e.Incarnation, model.FindingEpoch, fmt.Sprintf("%s %d %d %s", e.CommID, e.First, j.Ranks, op), e.Began.UnixNano()),
	}
	if len(j.MinorityHosts) == 1 {
		f.Host = j.MinorityHosts[0]
	}
	if j.MinorityCount == 1 {
		f.Rank = model.Some(j.Minority[0])
	}
	setStatus(&f, e.Revision, e.Ended)
	f.Evidence = fleetEvidence(e)
	return f
}

func fleetEvidence(e *fleet.Episode) *evidence.Fleet {
	j := &e.Judgement
	ev := evidence.Fleet{
		Domain: string(e.Domain), Model: j.Model, Ranks: j.Ranks, Known: j.Known, Hosts: slices.Clone(j.MinorityHosts), Covers: e.Covers,
	}
	for _, h := range j.Held {
		ev.Held = append(ev.Held, evidence.FleetHeld{Versions: slices.Clone(h.Versions), Nodes: h.Nodes, Ranks: h.Ranks, First: h.First})
	}
	return &ev
}
