// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// keptFinding is the form of a finding in a snapshot. Times are Unix ns; what is absent is unknown.
type keptFinding struct {
	Time            int64          `json:"time"`
	Start           int64          `json:"start"`
	Severity        model.Severity `json:"severity"`
	JobName         string         `json:"job_name,omitempty"`
	JobID           string         `json:"job_id,omitempty"`
	Incarnation     string         `json:"incarnation,omitempty"`
	Kind            string         `json:"kind"`
	Class           string         `json:"class"`
	Cause           string         `json:"cause,omitempty"`
	ID              string         `json:"id"`
	Revision        int64          `json:"revision"`
	Status          string         `json:"status"`
	Rank            *int64         `json:"rank,omitempty"`
	Host            string         `json:"host,omitempty"`
	HWID            string         `json:"hw_id,omitempty"`
	Op              string         `json:"op,omitempty"`
	CommID          string         `json:"comm_id,omitempty"`
	CommName        string         `json:"comm_name,omitempty"`
	Peer            *int64         `json:"peer,omitempty"`
	Link            string         `json:"link,omitempty"`
	Clock           string         `json:"clock,omitempty"`
	Ranks           []int64        `json:"ranks,omitempty"`
	RanksCount      *int64         `json:"ranks_count,omitempty"`
	StepFirst       *int64         `json:"step_first,omitempty"`
	StepLast        *int64         `json:"step_last,omitempty"`
	BeforeWindow    bool           `json:"before_window,omitempty"`
	CostSeconds     *float64       `json:"cost_seconds,omitempty"`
	CostShare       *float64       `json:"cost_share,omitempty"`
	CostJoint       *float64       `json:"cost_joint,omitempty"`
	CostLeast       *float64       `json:"cost_at_least,omitempty"`
	CostMost        *float64       `json:"cost_at_most,omitempty"`
	WaitCaused      *float64       `json:"wait_caused_seconds,omitempty"`
	WaitCausedShare *float64       `json:"wait_caused_share,omitempty"`
	Waiting         []int64        `json:"waiting,omitempty"`
	WaitingCount    *int64         `json:"waiting_count,omitempty"`
	Through         *int64         `json:"waiting_through,omitempty"`
	Candidates      []int64        `json:"candidates,omitempty"`
	CandidatesCount *int64         `json:"candidates_count,omitempty"`
	Stack           string         `json:"stack,omitempty"`
	Confidence      float64        `json:"confidence"`
	Evidence        string         `json:"evidence,omitempty"`
	Action          string         `json:"action,omitempty"`
	Links           []string       `json:"links,omitempty"`
	IncidentID      string         `json:"incident_id,omitempty"`
	Unnumbered      bool           `json:"unnumbered,omitempty"`
}

func keep(f *model.Finding) keptFinding {
	return keptFinding{
		Time: f.Time, Start: f.Start, Severity: f.Severity, JobName: f.JobName, JobID: f.JobID, Incarnation: f.Incarnation,
		Kind: f.Kind, Class: f.Class, Cause: f.Cause, ID: f.ID, Revision: f.Revision, Status: f.Status,
		Rank: pointer(f.Rank), Host: f.Host, HWID: f.HWID, Op: f.Op, CommID: f.CommID, CommName: f.CommName, Peer: pointer(f.Peer),
		Link: f.Link, Clock: f.Clock, Ranks: f.Ranks, RanksCount: pointer(f.RanksCount),
		StepFirst: pointer(f.StepFirst), StepLast: pointer(f.StepLast), BeforeWindow: f.BeforeWindow,
		CostSeconds: finite(f.CostSeconds), CostShare: finite(f.CostShare), CostJoint: finite(f.CostJoint),
		CostLeast: finite(f.CostLeast), CostMost: finite(f.CostMost),
		WaitCaused: finite(f.WaitCaused), WaitCausedShare: finite(f.WaitCausedShare),
		Waiting: f.Waiting, WaitingCount: pointer(f.WaitingCount), Through: pointer(f.Through),
		Candidates: f.Candidates, CandidatesCount: pointer(f.CandidatesCount), Stack: f.Stack,
		Confidence: number(f.Confidence), Evidence: evidence.Encode(f.Evidence), Action: f.Action, Links: links(f.Links), IncidentID: f.IncidentID, Unnumbered: f.Unnumbered,
	}
}

func (k *keptFinding) finding() model.Finding {
	return model.Finding{
		Time: k.Time, Start: k.Start, Severity: k.Severity, JobName: k.JobName, JobID: k.JobID, Incarnation: k.Incarnation,
		Kind: k.Kind, Class: k.Class, Cause: k.Cause, ID: k.ID, Revision: k.Revision, Status: k.Status,
		Rank: optional(k.Rank), Host: k.Host, HWID: k.HWID, Op: k.Op, CommID: k.CommID, CommName: k.CommName, Peer: optional(k.Peer),
		Link: k.Link, Clock: k.Clock, Ranks: k.Ranks, RanksCount: optional(k.RanksCount),
		StepFirst: optional(k.StepFirst), StepLast: optional(k.StepLast), BeforeWindow: k.BeforeWindow,
		CostSeconds: optional(k.CostSeconds), CostShare: optional(k.CostShare), CostJoint: optional(k.CostJoint),
		CostLeast: optional(k.CostLeast), CostMost: optional(k.CostMost),
		WaitCaused: optional(k.WaitCaused), WaitCausedShare: optional(k.WaitCausedShare),
		Waiting: k.Waiting, WaitingCount: optional(k.WaitingCount), Through: optional(k.Through),
		Candidates: k.Candidates, CandidatesCount: optional(k.CandidatesCount), Stack: k.Stack,
		Confidence: k.Confidence, Evidence: evidence.FromText(k.Evidence), Action: k.Action, Links: refs(k.Links), IncidentID: k.IncidentID, Unnumbered: k.Unnumbered,
	}
}

func pointer[T any](o model.Optional[T]) *T {
	if !o.OK {
		return nil
	}
	return &o.V
}

func optional[T any](p *T) (o model.Optional[T]) {
	if p != nil {
		o = model.Some(*p)
	}
	return o
}

// number returns a number that JSON can hold.
func number(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

func finite(o model.Optional[float64]) *float64 {
	o.OK = o.OK && !math.IsNaN(o.V) && !math.IsInf(o.V, 0)
	return pointer(o)
}

func links(refs []model.SpanRef) (texts []string) {
	for _, r := range refs {
		texts = append(texts, r.String())
	}
	return texts
}

// refs leaves out what is not a reference.
func refs(texts []string) (all []model.SpanRef) {
	for _, text := range texts {
		if r, ok := model.ParseSpanRef(text); ok {
			all = append(all, r)
		}
	}
	return all
}
