// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

// preflightOutput is the one object of preflight --json; docs/checkpoints.md is its
// reference. Epochs are null where nothing says them.
type preflightOutput struct {
	Verdict  epoch.Verdict   `json:"verdict"`
	Safe     bool            `json:"safe"`
	Epoch    *int64          `json:"epoch"`
	Frontier *int64          `json:"frontier"`
	By       string          `json:"judged_by,omitempty"`
	Why      string          `json:"why,omitempty"`
	Next     string          `json:"next,omitempty"`
	Judged   *saveOutput     `json:"judged"`
	Saves    []saveOutput    `json:"saves"`
	Resumes  []resumeOutput  `json:"resumes"`
	Problems []problemOutput `json:"problems"`
}

type saveOutput struct {
	Epoch        *int64          `json:"epoch"`
	Verdict      epoch.Verdict   `json:"verdict"`
	Format       string          `json:"format"`
	Paths        []string        `json:"paths"`
	Domains      int             `json:"domains"`
	Held         []heldOutput    `json:"held"`
	Missing      []doubtOutput   `json:"missing"` // the first 64
	MissingCount int             `json:"missing_count"`
	WeightsOnly  string          `json:"weights_only,omitempty"` // why
	Problems     []problemOutput `json:"problems"`
}

type heldOutput struct {
	Epoch   int64          `json:"epoch"`
	Count   int            `json:"count"`
	Domains []domainOutput `json:"domains"` // the first 64
}

type domainOutput struct {
	Kind string `json:"lockstep.epoch.domain.kind"`
	ID   string `json:"lockstep.epoch.domain.id"`
}

type doubtOutput struct {
	domainOutput
	State string `json:"lockstep.epoch.state"`
}

type resumeOutput struct {
	Place string `json:"place"`
	Path  string `json:"path"`
	Epoch *int64 `json:"epoch"`
	By    string `json:"by"`
}

type problemOutput struct {
	Place    string `json:"place"`
	Check    string `json:"check"`
	Severity string `json:"severity"`
	File     string `json:"file"`
	What     string `json:"what"`
}

func writePreflightJSON(w io.Writer, r *preflight.Result) error {
	out := preflightOutput{
		Verdict: r.Verdict, Safe: r.OK(), Epoch: known(r.Epoch), Frontier: known(r.Frontier),
		By: r.By, Why: r.Why, Next: r.Next, Saves: make([]saveOutput, 0, len(r.Saves)),
		Resumes: make([]resumeOutput, 0, len(r.Resumes)), Problems: problemsOf(r.Problems),
	}
	for i := range r.Saves {
		s := saveOf(&r.Saves[i])
		if r.Judged == &r.Saves[i] {
			out.Judged = &s
		}
		out.Saves = append(out.Saves, s)
	}
	for _, p := range r.Resumes {
		out.Resumes = append(out.Resumes, resumeOutput{p.Place, p.Path, known(p.Epoch), p.By})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

func saveOf(s *preflight.Save) saveOutput {
	j := &s.Judgement
	out := saveOutput{
		Epoch: known(s.Epoch), Verdict: s.Verdict(), Format: string(s.Format), Paths: append([]string{}, s.Paths...),
		Domains: j.Domains, Held: []heldOutput{}, Missing: []doubtOutput{}, MissingCount: j.MissingCount, Problems: problemsOf(s.Problems),
	}
	if s.IsWeightsOnly() {
		out.WeightsOnly = s.WeightsOnly
	}
	for _, h := range j.Held {
		held := heldOutput{Epoch: h.Epoch, Count: h.Count, Domains: []domainOutput{}}
		for _, d := range h.Domains {
			held.Domains = append(held.Domains, domainOutput{string(d.Kind), d.ID})
		}
		out.Held = append(out.Held, held)
	}
	for _, d := range j.Missing {
		out.Missing = append(out.Missing, doubtOutput{domainOutput{string(d.Domain.Kind), d.Domain.ID}, string(d.State)})
	}
	return out
}

func problemsOf(in []preflight.Problem) []problemOutput {
	out := make([]problemOutput, 0, len(in))
	for i := range in {
		p := &in[i]
		out = append(out, problemOutput{p.Place, string(p.Check), p.Severity.String(), p.File, p.What})
	}
	return out
}

func known(e model.Optional[int64]) *int64 {
	if !e.OK {
		return nil
	}
	return &e.V
}
