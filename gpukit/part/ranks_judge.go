// SPDX-License-Identifier: Apache-2.0

package part

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// judge adds whether the findings, in the latest revision of each, name the rank.
func (c rankCase) judge(p *report.Part, status report.Status, found []model.Finding, did []rankDid) {
	figures := []report.Figure{}
	for _, d := range did {
		figures = append(figures, report.Figure{Name: fmt.Sprintf("step of rank %d", d.Rank), Value: d.StepMS, Unit: "ms"})
	}
	later, known := laterBy(did, ranksFault)
	if known {
		figures = append(figures, report.Figure{Name: fmt.Sprintf("rank %d came later by", ranksFault), Value: later, Unit: "ms"})
	}
	found, right := latest(found), status
	status, text := c.verdict(right, found)
	if status == report.Failed && right == report.Shown && known && c.truly(found, later) {
		status, text = report.NotShown, fmt.Sprintf("no healthy job: the ranks take turns on the GPU, and one came %.1f ms later in each step, as was found: %s", max(later, -later), text)
	}
	p.Add(c.name, status, text, figures...)
}

// ended adds a failure where the process of a rank did not end in time after its answer,
// which counts all the same.
func (c rankCase) ended(p *report.Part, did []rankDid) {
	var late []string
	for _, d := range did {
		if d.Late {
			late = append(late, fmt.Sprintf("the process of rank %d gave its answer and did not end within %v", d.Rank, ranksLimit))
		}
	}
	if len(late) > 0 {
		p.Add(c.name+"-end", report.Failed, strings.Join(late, "; "))
	}
}

// readLine is what `lockstep run` prints at its end.
var readLine = regexp.MustCompile(`(?m)^Read (\d+) operations of (\d+) ranks\.$`)

// wasRead tests that the collector read operations of both ranks: without any, no finding
// means nothing.
func wasRead(printed string) error {
	m := readLine.FindStringSubmatch(printed)
	if len(m) != 3 || m[1] == "0" || m[2] != strconv.Itoa(ranksWorld) {
		line, _, _ := strings.Cut(strings.TrimSpace(printed), "\n")
		return fmt.Errorf("read what the collector read: got %q; want operations of %d ranks", line, ranksWorld)
	}
	return nil
}

// laterBy returns by how many ms the rank came to the collectives of a step after the
// other, the median over the steps, by what the ranks noted themselves.
func laterBy(did []rankDid, rank int) (ms float64, known bool) {
	if len(did) != ranksWorld || len(did[0].CameMS) == 0 || len(did[0].CameMS) != len(did[1].CameMS) {
		return 0, false
	}
	var gaps []float64
	for i, at := range did[rank].CameMS {
		gaps = append(gaps, at-did[1-rank].CameMS[i])
	}
	return stats.MedianOf(gaps), true
}

// truly reports whether all that was found in a job without a fault is true all the same:
// the rank named came later than the other by half of the cost at least. later is by how
// much the rank that would have the fault did.
func (c rankCase) truly(found []model.Finding, later float64) bool {
	if len(c.classes) > 0 {
		return false
	}
	return !slices.ContainsFunc(found, func(f model.Finding) bool {
		by := later
		if f.Rank != model.Some[int64](ranksFault) {
			by = -later
		}
		return f.Kind != model.FindingStraggler || !f.Rank.OK || !f.CostSeconds.OK || f.CostSeconds.V <= 0 || by < f.CostSeconds.V*1e3/2
	})
}

// turn is what a rank may wait, s a step, since two processes take turns on one GPU: the
// one that is served second ends later, by a slice or two of some milliseconds.
const turn = 0.008

// verdict returns what the findings come to: right, where they are as they must be.
func (c rankCase) verdict(right report.Status, found []model.Finding) (report.Status, string) {
	var texts []string
	named, turns, wrong := 0, 0, 0
	for _, f := range found {
		texts = append(texts, findingText(f))
		switch {
		case c.names(f):
			named++
		case right == report.Shown && f.CostSeconds.OK && f.CostSeconds.V < turn:
			turns++
		default:
			wrong++
		}
	}
	if len(texts) == 0 {
		texts = []string{"nothing"}
	}
	text := strings.Join(texts, "; ")
	if turns > 0 {
		text += fmt.Sprintf(" (of these, %d within the %.0f ms that turns on one GPU may cost)", turns, 1e3*turn)
	}
	if len(c.classes) == 0 {
		text = "a healthy job: found " + text
		switch {
		case wrong > 0:
			return report.Failed, text
		case turns > 0:
			return report.NotShown, text
		}
		return right, text
	}
	want := fmt.Sprintf("rank %d, class %s", ranksFault, strings.Join(c.classes, " or "))
	if c.cause != "" {
		want += ", cause " + c.cause
	}
	text = fmt.Sprintf("fault %s: found %s; want %s", c.fault, text, want)
	if named == 0 || wrong > 0 {
		return report.Failed, text
	}
	return right, text
}

// names reports whether the finding names the rank with the fault as it should.
func (c rankCase) names(f model.Finding) bool {
	return f.Kind == model.FindingStraggler && f.Rank == model.Some[int64](ranksFault) && slices.Contains(c.classes, f.Class) && (c.cause == "" || f.Cause == c.cause)
}

func findingText(f model.Finding) string {
	rank := "no rank"
	if f.Rank.OK {
		rank = fmt.Sprintf("rank %d", f.Rank.V)
	}
	text := fmt.Sprintf("%s, class %s", rank, f.Class)
	if f.Cause != "" && f.Cause != model.CauseUnknown {
		text += ", cause " + f.Cause
	}
	if f.CostSeconds.OK {
		text += fmt.Sprintf(", %.1f ms a step", f.CostSeconds.V*1e3)
	}
	return fmt.Sprintf("%s (confidence %.2f)", text, f.Confidence)
}

// latest returns the newest revision of each finding, in order of their first.
func latest(found []model.Finding) []model.Finding {
	at := map[string]int{}
	var newest []model.Finding
	for _, f := range found {
		i, known := at[f.ID]
		switch {
		case !known:
			at[f.ID] = len(newest)
			newest = append(newest, f)
		case f.Revision >= newest[i].Revision:
			newest[i] = f
		}
	}
	return newest
}

// analyzedFindings reads the findings of lockstep analyze --json, as far as they are
// judged here. An answer that read no operation is an error.
func analyzedFindings(answer []byte) ([]model.Finding, error) {
	var a struct {
		Findings []map[string]any `json:"findings"`
		Input    struct {
			Operations int64 `json:"operations"`
		} `json:"input"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, fmt.Errorf("read what lockstep analyze found: %w", err)
	}
	if a.Input.Operations == 0 {
		return nil, fmt.Errorf("read what lockstep analyze found: got no operations; want those of the traces")
	}
	var found []model.Finding
	for _, attributes := range a.Findings {
		text := func(name string) string { s, _ := attributes[name].(string); return s }
		f := model.Finding{ID: text(semconv.FindingID), Kind: text(semconv.FindingKind), Class: text(semconv.FindingClass), Cause: text(semconv.FindingCause)}
		if rank, ok := attributes[semconv.FindingRank].(float64); ok {
			f.Rank = model.Some(int64(rank))
		}
		if cost, ok := attributes[semconv.FindingCostSeconds].(float64); ok {
			f.CostSeconds = model.Some(cost)
		}
		f.Confidence, _ = attributes[semconv.FindingConfidence].(float64)
		found = append(found, f)
	}
	return found, nil
}
