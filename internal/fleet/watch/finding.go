// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// action is what an operator would do next.
const action = "bring the nodes of the minority to the version of the others, or run the job elsewhere; where the versions may mix, say so in fleet.compatible of the epoch connector"

// op names a domain, and the hardware that its versions are of.
func op(domain model.VersionDomain, of string) string {
	if of == "" {
		return string(domain)
	}
	return string(domain) + " of " + of
}

// placeOf is the place of a case of a job. It is all that an id follows from: which of several versions come
// first depends on when the watch looks.
func placeOf(j *job, k *caseKey) finding.Place {
	return finding.Place{
		Job: cmp.Or(j.id, j.key), Incarnation: j.key,
		Name: fmt.Sprintf("%s %d %d %s", k.comm.id, k.comm.first, k.comm.size, op(model.VersionDomains[k.place], k.model)),
	}
}

// finding returns a span as a finding.
func (s *span) finding(now time.Time) *model.Finding {
	j := &s.judgement
	f := model.Finding{
		Time: now.UnixNano(), Start: s.began.UnixNano(), Severity: model.SeverityWarn, // many such jobs run well
		JobID: s.place.Job, JobName: s.jobName, Incarnation: s.place.Incarnation, CommID: s.key.comm.id, CommName: s.commName,
		Kind: model.FindingEpoch, Class: model.ClassFleetMixed, Cause: model.CauseUnknown, Op: op(s.domain(), j.Model),
		Ranks: j.Minority, RanksCount: model.Some(int64(j.MinorityCount)), Confidence: 1, Action: action, Evidence: s.evidence(),
	}
	if len(j.MinorityHosts) == 1 {
		f.Host = j.MinorityHosts[0]
	}
	if j.MinorityCount == 1 {
		f.Rank = model.Some(j.Minority[0])
	}
	return &f
}

func (s *span) evidence() *evidence.Fleet {
	j := &s.judgement
	ev := evidence.Fleet{
		Domain: string(s.domain()), Model: j.Model, Ranks: j.Ranks, Known: j.Known, Hosts: j.MinorityHosts, Covers: s.covers,
	}
	for _, h := range j.Held {
		ev.Held = append(ev.Held, evidence.FleetHeld{Versions: h.Versions, Nodes: h.Nodes, Ranks: h.Ranks, First: h.First})
	}
	return &ev
}
