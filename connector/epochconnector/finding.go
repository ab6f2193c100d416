// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/epoch/watch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// actions are what an operator would do next.
var actions = map[watch.Class]string{
	watch.Mixed:       "do not resume from this save: take the newest that can be recovered, and delete what is newer",
	watch.Partial:     "do not resume from this save; look at the writer of the first domain that is missing",
	watch.WeightsOnly: "resume from the newest save that can be recovered, or begin a job from these weights; if the job was to be resumed from it, have it save its optimizer, too",
	watch.Revoked:     "find what deleted it (retention, a cleaner, a disk) before the job needs it; lockstep preflight says what is there",
}

// findings makes what the watch says what is told everywhere; the caller holds the watch.
func (h *hub) findings(episodes []watch.Episode, now time.Time) []model.Finding {
	out := make([]model.Finding, 0, len(episodes))
	frontiers := map[string]model.Optional[int64]{}
	for i := range episodes {
		e := &episodes[i]
		k := e.Job + "\x00" + e.Generation
		if _, ok := frontiers[k]; !ok {
			frontiers[k] = h.watch.Frontier(e.Job, e.Generation)
		}
		out = append(out, h.finding(e, frontiers[k], now))
	}
	return out
}

func (h *hub) finding(e *watch.Episode, frontier model.Optional[int64], now time.Time) model.Finding {
	f := model.Finding{
		Time: now.UnixNano(), Start: e.Began.UnixNano(), Severity: model.SeverityError,
		JobID: e.Job, JobName: h.names[e.Job], Kind: model.FindingEpoch, Class: string(e.Class), Cause: model.CauseUnknown,
		Op: fmt.Sprintf("save %d", e.Save), Confidence: 1, Action: actions[e.Class],
		ID: model.FindingID(e.Job, model.FindingEpoch, fmt.Sprintf("%s %d", e.Generation, e.Save), e.Began.UnixNano()),
	}
	switch {
	case e.Class == watch.WeightsOnly && frontier.OK: // the job was made to save so, and can go on from another
		f.Severity = model.SeverityInfo
	case e.Class == watch.Partial, e.Class == watch.WeightsOnly: // it may be a job that was stopped: nothing is lost but the save
		f.Severity = model.SeverityWarn
	}
	setStatus(&f, e.Revision, e.Ended)
	f.Evidence = checkpointEvidence(e, frontier)
	return f
}

func checkpointEvidence(e *watch.Episode, frontier model.Optional[int64]) *evidence.Checkpoint {
	j := &e.Judgement
	ev := evidence.Checkpoint{Save: e.Save, Generation: e.Generation, Domains: j.Domains, MissingCount: j.MissingCount}
	for _, h := range j.Held {
		held := evidence.CheckpointHeld{Epoch: h.Epoch, Domains: h.Count}
		if len(h.Domains) > 0 {
			held.First = domainText(h.Domains[0])
		}
		ev.Held = append(ev.Held, held)
	}
	for _, d := range j.Missing {
		ev.Missing = append(ev.Missing, evidence.CheckpointMissing{Domain: domainText(d.Domain), State: stateText(d)})
	}
	if frontier.OK {
		ev.Frontier = &frontier.V
	}
	return &ev
}

func domainText(d model.Domain) string {
	return strings.TrimSpace(string(d.Kind) + " " + d.ID)
}

func stateText(d epoch.Doubt) string {
	if d.State == "" {
		return "not heard of"
	}
	return string(d.State)
}
