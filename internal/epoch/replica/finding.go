// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// What an operator would do next.
const (
	decidedAction   = "take the GPU of the minority out and test it (dcgmi diag), unless the rank has loaded another save; resume from a save from before the first step that differs"
	undecidedAction = "find which replica is wrong (three or more would tell): test the GPUs of all of them; resume from a save from before the first step that differs"
)

func (k Key) place() finding.Place {
	return finding.Place{Job: k.Job, Incarnation: k.Incarnation, Name: placePrefix + k.Group}
}

const placePrefix = model.OpFingerprint + " "

func keyOf(p finding.Place) Key {
	return Key{Job: p.Job, Incarnation: p.Incarnation, Group: strings.TrimPrefix(p.Name, placePrefix)}
}

// finding returns a judgement of a group as a finding.
func (g *group) finding(j *Judgement, now time.Time) *model.Finding {
	f := model.Finding{
		Time: now.UnixNano(), Start: now.UnixNano(), Severity: model.SeverityError,
		JobID: g.key.Job, JobName: g.jobName, Incarnation: g.key.Incarnation,
		Kind: model.FindingEpoch, Class: model.ClassMixed, Cause: model.CauseUnknown, Op: model.OpFingerprint,
		Confidence: 1, Action: undecidedAction, Evidence: g.evidence(j),
	}
	if j.MinorityCount > 0 {
		f.Ranks, f.RanksCount, f.Action = j.Minority, model.Some(int64(j.MinorityCount)), decidedAction
	}
	if j.MinorityCount == 1 {
		f.Rank = model.Some(j.Minority[0])
		if len(j.HWIDs) == 1 {
			f.HWID = j.HWIDs[0]
		}
	}
	if len(j.Hosts) == 1 {
		f.Host = j.Hosts[0]
	}
	return &f
}

func (g *group) evidence(j *Judgement) *evidence.Replica {
	ev := evidence.Replica{
		Group: g.key.Group, Step: j.Step, Start: j.Start, Total: j.Total, Hashes: j.HeldCount, Told: j.Told, Replicas: j.Replicas,
		Decided: j.Decided, Slices: j.Slices, Hosts: j.Hosts, GPUs: j.HWIDs,
	}
	for _, h := range j.Held {
		ev.Held = append(ev.Held, evidence.ValueHeld{Value: fmt.Sprintf("%016x", h.Hash), Count: h.Count, Ranks: h.Ranks})
	}
	return &ev
}

// recall doubts the slice of a finding that was open before a restart, until it is seen to agree.
func (w *Watch) recall(g *group) {
	e := w.book.At(g.key.place())
	if e == nil || !e.Restored {
		return
	}
	ev, ok := evidence.As[evidence.Replica](e.Finding.Evidence)
	if !ok {
		return
	}
	j := Judgement{
		Step: ev.Step, Start: ev.Start, Total: ev.Total, HeldCount: ev.Hashes, Told: ev.Told, Replicas: ev.Replicas, Decided: ev.Decided,
		Minority: e.Finding.Ranks, MinorityCount: int(e.Finding.RanksCount.V), Hosts: ev.Hosts, HWIDs: ev.GPUs,
	}
	for _, h := range ev.Held {
		hash, err := strconv.ParseUint(h.Value, 16, 64)
		if err != nil {
			return
		}
		j.Held = append(j.Held, Held{Hash: hash, Ranks: h.Ranks, Count: h.Count})
	}
	g.jobName = e.Finding.JobName
	g.doubt[j.Start] = &j
	g.doubts = j.size()
}
