// SPDX-License-Identifier: Apache-2.0

package resume

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// action is what an operator would do next.
const action = "stop the job before it saves, and have all ranks load one save: lockstep preflight says which is whole, the evidence who loaded what"

func (k Key) place() finding.Place {
	return finding.Place{Job: k.Job, Incarnation: k.Incarnation, Name: model.OpResume}
}

func keyOf(p finding.Place) Key { return Key{p.Job, p.Incarnation} }

// finding returns a judgement as a finding.
func (j *Judgement) finding(k Key, jobName string, now time.Time) *model.Finding {
	f := model.Finding{
		Time: now.UnixNano(), Start: now.UnixNano(), Severity: model.SeverityError,
		JobID: k.Job, JobName: jobName, Incarnation: k.Incarnation,
		Kind: model.FindingEpoch, Class: model.ClassMixed, Cause: model.CauseUnknown, Op: model.OpResume,
		Confidence: 1, Action: action, Evidence: j.evidence(),
	}
	if j.MinorityCount > 0 { // else both sides may be wrong
		f.Ranks, f.RanksCount = j.Minority, model.Some(int64(j.MinorityCount))
	}
	if j.MinorityCount == 1 {
		f.Rank = model.Some(j.Minority[0])
	}
	if len(j.Hosts) == 1 {
		f.Host = j.Hosts[0]
	}
	if j.MinorityCount == 1 && len(j.HWIDs) == 1 {
		f.HWID = j.HWIDs[0]
	}
	return &f
}

func (j *Judgement) evidence() *evidence.Resume {
	ev := evidence.Resume{FieldsCount: j.FieldsCount, Ranks: j.Ranks, Of: j.Of, Apart: j.Apart, Hosts: j.Hosts}
	for i := range j.Fields {
		from := &j.Fields[i]
		to := evidence.ResumeField{Name: from.Name, Replica: from.Replica, Values: from.HeldCount, Told: from.Told, Decided: from.Decided}
		for _, h := range from.Held {
			to.Held = append(to.Held, evidence.ValueHeld{Value: h.Value, Count: h.Count, Ranks: h.Ranks})
		}
		ev.Fields = append(ev.Fields, to)
	}
	return &ev
}
