// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// Class is what is wrong with a save.
type Class string

// Classes.
const (
	Mixed       Class = model.ClassMixed       // domains hold different epochs
	Partial     Class = model.ClassPartial     // some confirm, others do not, and none moves
	WeightsOnly Class = model.ClassWeightsOnly // all that is there confirms, and there is no optimizer
	Revoked     Class = model.ClassRevoked     // it was the newest that the job could recover, and there is no newer
)

// actions are what an operator would do next.
var actions = map[Class]string{
	Mixed:       "do not resume from this save: take the newest that can be recovered, and delete what is newer",
	Partial:     "do not resume from this save; look at the writer of the first domain that is missing",
	WeightsOnly: "resume from the newest save that can be recovered, or begin a job from these weights; if the job was to be resumed from it, have it save its optimizer, too",
	Revoked:     "find what deleted it (retention, a cleaner, a disk) before the job needs it; lockstep preflight says what is there",
}

// state is what the watch keeps of an open finding.
type state struct {
	key saveKey
	// unseen: the save was not seen to be wrong since a restart.
	unseen bool
}

type episode = finding.Episode[state]

func (k saveKey) place() finding.Place {
	return finding.Place{Job: k.job, Name: fmt.Sprintf("%s %d", k.generation, k.save)}
}

// finding returns what is wrong with a save as a finding.
func (w *Watch) finding(k saveKey, class Class, j *epoch.Judgement, since, now time.Time) *model.Finding {
	frontier := w.engine.Frontier(k.job, k.generation)
	return &model.Finding{
		Time: now.UnixNano(), Start: since.UnixNano(), Severity: severity(class, frontier),
		JobID: k.job, JobName: w.names[k.job], Kind: model.FindingEpoch, Class: string(class), Cause: model.CauseUnknown,
		Op: fmt.Sprintf("save %d", k.save), Confidence: 1, Action: actions[class], Evidence: evidenceOf(k, j, frontier),
	}
}

func severity(class Class, frontier model.Optional[int64]) model.Severity {
	switch {
	case class == WeightsOnly && frontier.OK: // the job was made to save so, and can go on from another
		return model.SeverityInfo
	case class == Partial, class == WeightsOnly: // the job may have been stopped: only this save is lost
		return model.SeverityWarn
	}
	return model.SeverityError
}

func evidenceOf(k saveKey, j *epoch.Judgement, frontier model.Optional[int64]) *evidence.Checkpoint {
	ev := evidence.Checkpoint{Save: k.save, Generation: k.generation, Domains: j.Domains, MissingCount: j.MissingCount}
	for _, h := range j.Held[:min(len(j.Held), epoch.MaxNamed)] {
		held := evidence.CheckpointHeld{Epoch: h.Epoch, Domains: h.Count}
		if len(h.Domains) > 0 {
			held.First = domainText(h.Domains[0])
		}
		ev.Held = append(ev.Held, held)
	}
	for _, d := range j.Missing[:min(len(j.Missing), epoch.MaxNamed)] {
		ev.Missing = append(ev.Missing, evidence.CheckpointMissing{Domain: domainText(d.Domain), State: stateText(d)})
	}
	if frontier.OK {
		ev.Frontier = &frontier.V
	}
	return &ev
}

// domainText is a text of its own, which does not keep an observation alive.
func domainText(d model.Domain) string {
	return strings.Clone(strings.TrimSpace(string(d.Kind) + " " + d.ID))
}

func stateText(d epoch.Doubt) string {
	if d.State == "" {
		return "not heard of"
	}
	return string(d.State)
}

// same reports whether two findings of a save report the same to people, but for the frontier.
func same(a, b *model.Finding) bool {
	x, ok1 := evidence.As[evidence.Checkpoint](a.Evidence)
	y, ok2 := evidence.As[evidence.Checkpoint](b.Evidence)
	return ok1 && ok2 && a.Class == b.Class && x.MissingCount == y.MissingCount && slices.Equal(x.Missing, y.Missing) &&
		slices.EqualFunc(x.Held, y.Held, func(x, y evidence.CheckpointHeld) bool { return x.Epoch == y.Epoch && x.Domains == y.Domains })
}

// Standing returns the findings that are open, with the newest save that can be recovered now.
func (w *Watch) Standing(now time.Time) []model.Finding {
	frontiers := map[genKey]model.Optional[int64]{}
	for _, e := range w.book.Episodes() {
		of := e.Data.key.genKey
		frontier, known := frontiers[of]
		if !known {
			frontier = w.engine.Frontier(of.job, of.generation)
			frontiers[of] = frontier
		}
		w.refresh(e, frontier, now)
	}
	return w.book.Standing(now)
}

func (w *Watch) refresh(e *episode, frontier model.Optional[int64], now time.Time) {
	f := e.Finding
	ev, ok := evidence.As[evidence.Checkpoint](f.Evidence)
	if !ok {
		return
	}
	next := *ev
	if next.Frontier = nil; frontier.OK {
		next.Frontier = &frontier.V
	}
	f.Time, f.Severity, f.Evidence = now.UnixNano(), severity(Class(f.Class), frontier), &next
	f.JobName = w.names[f.JobID]
	w.book.Refresh(e, &f)
}
