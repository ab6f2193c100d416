// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/render"
	"github.com/lockstep-otel/lockstep/internal/kair"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// output is the one object of --json; docs/analyze.md is its reference. What
// the data model names has the data model's name, durations in seconds.
type output struct {
	Verdict         render.Verdict   `json:"verdict"`
	Findings        []map[string]any `json:"findings"`
	Ranks           []map[string]any `json:"ranks"`
	Jobs            []jobOutput      `json:"jobs"`
	Hangs           []hangOutput     `json:"hangs"`
	Problems        []model.Problem  `json:"problems"`
	ProblemsOmitted int64            `json:"problems_omitted"`
	Input           inputOutput      `json:"input"`
	Lost            map[string]int64 `json:"lost"`
}

type inputOutput struct {
	Files        int    `json:"files"`
	FilesSkipped int    `json:"files_skipped"`
	Refused      int64  `json:"refused"`
	Bytes        int64  `json:"bytes"`
	Operations   int64  `json:"operations"`
	ClockApplied bool   `json:"clock_applied"`
	Method       string `json:"method"`
}

type jobOutput struct {
	Name        string           `json:"service.name"`
	ID          string           `json:"lockstep.job.id"`
	Incarnation string           `json:"lockstep.job.incarnation"`
	Steps       int              `json:"steps"`
	StepSeconds float64          `json:"step_seconds"`  // mean
	Missing     []int64          `json:"missing_ranks"` // the first 64
	MissingN    int              `json:"missing_ranks_count"`
	Verdict     render.Verdict   `json:"verdict"`
	Judged      int              `json:"steps_judged"`
	Meetings    int              `json:"collectives"`
	Attributed  int              `json:"collectives_attributed"`
	Apart       []int64          `json:"apart_ranks"`
	Abstained   *abstainedOutput `json:"strongest_candidate,omitempty"`
	// Of --heatmap and --frequency.
	Heatmap   *kair.Heatmap       `json:"heatmap,omitempty"`
	Frequency *kair.FrequencyView `json:"frequency,omitempty"`
}

type abstainedOutput struct {
	Rank       *int64  `json:"lockstep.rank,omitempty"` // absent where it is no rank
	Class      string  `json:"lockstep.finding.class,omitempty"`
	Link       bool    `json:"link"` // not the rank, but the link behind it
	Gate       string  `json:"gate"`
	Got        float64 `json:"got"`
	Want       float64 `json:"want"`
	WaitShare  float64 `json:"lockstep.finding.wait_caused.share"`
	CostShare  float64 `json:"lockstep.finding.cost.share"`
	FalseAlarm float64 `json:"false_alarm"`
}

func (a *analysis) writeJSON(w io.Writer, jobs []straggler.JobReport) error {
	stats := a.engine.Stats()
	out := output{
		Verdict:  a.verdict(),
		Findings: findingsOutput(jobs), Ranks: []map[string]any{}, Jobs: []jobOutput{}, Hangs: hangsOutput(a.dumps),
		Problems: append([]model.Problem{}, a.problems.list...), ProblemsOmitted: a.problems.omitted,
		Input: inputOutput{a.files, a.skipped, a.refused(), a.bytes, a.ops, !a.options.noClock, a.options.engine.Method},
		Lost:  lostOutput(&stats),
	}
	if a.dumps != nil {
		out.Problems = append(out.Problems, a.dumps.Problems...)
		out.ProblemsOmitted += a.dumps.ProblemsOmitted
		for i := range out.Hangs {
			for _, r := range out.Hangs[i].Roots {
				out.Findings = append(out.Findings, r.Finding)
			}
		}
	}
	for i := range jobs {
		out.Jobs = append(out.Jobs, newJobOutput(&jobs[i]))
		a.drawings(&out.Jobs[i], &jobs[i])
		for k := range jobs[i].Ranks {
			out.Ranks = append(out.Ranks, rankOutput(&jobs[i], &jobs[i].Ranks[k]))
		}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(&out); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// lostOutput names all counters of the engine.
func lostOutput(stats *straggler.Stats) map[string]int64 {
	return map[string]int64{
		"operations_dropped":      stats.OpsDropped,
		"operations_without_step": stats.OpsWithoutStep,
		"operations_without_rank": stats.OpsWithoutRank,
		"operations_unsound":      stats.OpsUnsound,
		"operations_miscounted":   stats.OpsMiscounted,
		"launches_contradicted":   stats.LaunchesContradicted,
		"hosts_contradicted":      stats.HostsContradicted,
		"steps_off_unit":          stats.StepsOffUnit,
		"worlds_contradicted":     stats.WorldsContradicted,
		"clock_conflicts":         stats.ClockConflicts,
		"operations_of_twins":     stats.OpsOfTwins,
		"steps_too_large_to_walk": stats.StepsTooLargeToWalk,
		"judge_refused":           stats.JudgeRefused,
		"steps_unended":           stats.StepsUnended,
		"steps_behind":            stats.StepsBehind,
		"steps_incomplete":        stats.StepsIncomplete,
		"operations_late":         stats.LateOps,
		"operations_unmatched":    stats.UnmatchedOps,
		"operations_duplicate":    stats.DuplicateOps,
		"steps_large":             stats.StepsLarge,
		"steps_evicted":           stats.StepsEvicted,
		"jobs_evicted":            stats.JobsEvicted,
		"ranks_refused":           stats.RanksRefused,
		"places_overflowed":       stats.PlacesOverflowed,
		"steps_forgotten":         stats.StepsForgotten,
		"worlds_capped":           stats.WorldsCapped,
		"conclusions_dropped":     stats.ConclusionsDropped,
		"findings_withheld":       stats.FindingsWithheld,
	}
}

func newJobOutput(j *straggler.JobReport) jobOutput {
	out := jobOutput{
		Name: j.JobName, ID: j.JobID, Incarnation: j.Incarnation, Steps: j.Steps,
		StepSeconds: (j.StepTime / time.Duration(max(1, j.Steps))).Seconds(),
		Missing:     append([]int64{}, j.Missing...),
		MissingN:    j.MissingCount,
		Verdict:     render.VerdictOf(*j),
		Judged:      j.Judged,
		Meetings:    j.Meetings,
		Attributed:  j.Attributed,
		Apart:       append([]int64{}, j.Apart...),
	}
	if c := j.Abstained; c != nil {
		out.Abstained = &abstainedOutput{nil, c.Class, c.Link, c.Gate, c.Got, c.Want, c.WaitShare, c.CostShare, c.FalseAlarm}
		if c.Rank >= 0 {
			out.Abstained.Rank = &c.Rank
		}
	}
	return out
}

// drawings adds what was asked for of the ranks' rhythms.
func (a *analysis) drawings(out *jobOutput, j *straggler.JobReport) {
	if a.options.heatmap {
		out.Heatmap = &j.Heatmap
	}
	if a.options.frequency {
		out.Frequency = &j.Frequency
	}
}

// findingsOutput returns the findings of all jobs, most costly first.
func findingsOutput(jobs []straggler.JobReport) []map[string]any {
	var all []straggler.Verdict
	for i := range jobs {
		all = append(all, jobs[i].Verdicts...)
	}
	slices.SortStableFunc(all, func(x, y straggler.Verdict) int { return report.MostCostly(x.Finding, y.Finding) })
	out := []map[string]any{}
	for i := range all {
		f := otelmap.FindingAttributes(&all[i].Finding)
		f["body"] = report.Sentence(&all[i].Finding)
		f["time_unix_nano"] = all[i].Finding.Time
		if m := all[i].Decisive; m != nil {
			f["decisive"] = newMeetingOutput(m)
		}
		out = append(out, f)
	}
	return out
}

type meetingOutput struct {
	Name    string         `json:"lockstep.collective.name"`
	CommID  string         `json:"lockstep.comm.id,omitempty"`
	Seq     int64          `json:"lockstep.collective.seq"`
	Size    int            `json:"size,omitempty"` // members expected
	Gap     float64        `json:"gap_seconds"`    // second-last to last arrival
	Members []memberOutput `json:"members"`        // by arrival
}

type memberOutput struct {
	Rank   int64   `json:"lockstep.rank"`
	Enter  int64   `json:"enter_unix_nano"`
	Exit   int64   `json:"exit_unix_nano"`
	ToLast float64 `json:"to_last_seconds"`
	Wait   float64 `json:"wait_seconds"`
}

func newMeetingOutput(m *straggler.Meeting) meetingOutput {
	out := meetingOutput{
		Name: m.Name, CommID: m.CommID, Seq: m.Key.Seq, Size: m.Size, Gap: m.Gap().Seconds(),
		Members: []memberOutput{},
	}
	for i := range m.Members {
		x := &m.Members[i]
		out.Members = append(out.Members, memberOutput{
			Rank: x.Rank, Enter: x.Enter, Exit: x.Exit,
			ToLast: time.Duration(m.Last().Enter - x.Enter).Seconds(), Wait: x.Wait.Seconds(),
		})
	}
	return out
}

// rankOutput is one rank over all steps of its job; times are sums.
func rankOutput(j *straggler.JobReport, r *straggler.RankTotal) map[string]any {
	excess := map[string]float64{}
	for class, d := range r.Excess {
		excess[class] = d.Seconds()
	}
	out := map[string]any{
		semconv.JobID: j.JobID, semconv.JobIncarnation: j.Incarnation, semconv.Rank: r.Rank,
		semconv.SummaryCompute:           r.Split.Compute.Seconds(),
		semconv.SummaryComputeOverlapped: r.Split.ComputeOverlapped.Seconds(),
		semconv.SummaryTransfer:          r.Split.Transfer.Seconds(),
		semconv.SummaryWait:              r.Split.Wait.Seconds(),
		semconv.SummaryLaunchIdle:        r.Split.LaunchIdle.Seconds(),
		semconv.SummaryDependencyIdle:    r.Split.DependencyIdle.Seconds(),
		semconv.SummaryCopy:              r.Split.Copy.Seconds(),
		semconv.MetricWaitCaused:         r.WaitCaused.Seconds(),
		semconv.MetricWaitSuffered:       r.WaitSuffered.Seconds(),
		semconv.MetricStragglerExcess:    excess,
		"own_seconds":                    r.Split.Own().Seconds(),
		"steps":                          r.Steps,
		"last_arrivals":                  r.LastArrivals,
		"collectives":                    r.Meetings,
		"clock":                          newClockOutput(r),
	}
	if r.Host != "" {
		out[semconv.HostName] = r.Host
	}
	if score, ok := j.Divergence[r.Rank]; ok {
		out[semconv.MetricStragglerDivergence] = score
	}
	return out
}

type clockOutput struct {
	ID        string   `json:"lockstep.clock.id"`
	Reference string   `json:"reference"`
	Offset    float64  `json:"lockstep.clock.offset"` // applied
	Estimate  float64  `json:"estimate_seconds"`
	Sigma     float64  `json:"lockstep.clock.sigma"`
	Lower     *float64 `json:"lower_seconds,omitempty"` // hard interval
	Upper     *float64 `json:"upper_seconds,omitempty"`
	Meetings  int      `json:"collectives"`
}

func newClockOutput(r *straggler.RankTotal) clockOutput {
	o := &r.Offset
	out := clockOutput{
		ID: o.Clock, Reference: o.Reference, Offset: o.Value.Seconds(),
		Estimate: o.Estimate.Seconds(), Sigma: o.Sigma.Seconds(), Meetings: o.Meetings,
	}
	if o.Bounded {
		lower, upper := o.Lower.Seconds(), o.Upper.Seconds()
		out.Lower, out.Upper = &lower, &upper
	}
	return out
}
