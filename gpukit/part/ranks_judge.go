// SPDX-License-Identifier: Apache-2.0

package part

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/gpukit/stats"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
	"github.com/lockstep-otel/lockstep/internal/semconv"
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
	return stats.Median(gaps), true
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
	var says []string
	named, turns, wrong := 0, 0, 0
	for _, f := range found {
		says = append(says, sayFinding(f))
		switch {
		case c.names(f):
			named++
		case right == report.Shown && f.CostSeconds.OK && f.CostSeconds.V < turn:
			turns++
		default:
			wrong++
		}
	}
	if len(says) == 0 {
		says = []string{"nothing"}
	}
	text := strings.Join(says, "; ")
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

// names says whether the finding names the rank with the fault as it should.
func (c rankCase) names(f model.Finding) bool {
	return f.Kind == model.FindingStraggler && f.Rank == model.Some[int64](ranksFault) && slices.Contains(c.classes, f.Class) && (c.cause == "" || f.Cause == c.cause)
}

func sayFinding(f model.Finding) string {
	who := "no rank"
	if f.Rank.OK {
		who = fmt.Sprintf("rank %d", f.Rank.V)
	}
	text := fmt.Sprintf("%s, class %s", who, f.Class)
	if f.Cause != "" {
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

// standInCUPTI is the file of the stand-in. Its soname is not NVIDIA's, so that
// PyTorch, which needs the real one, loads that beside it.
const standInCUPTI = "libcupti-standin.so"

// kernels adds how CUPTI, and with NCCL the plugin, fared in the ranks of a job.
func (c rankCase) kernels(p *report.Part, k *kit.Kit, dir string) {
	name := c.name + "-kernels"
	seen, err := countKernels(filepath.Join(dir, "rings"))
	if err != nil {
		p.Add(name, report.Failed, err.Error())
		return
	}
	status, text := goodOf(k), "CUPTI delivers the kernels of both processes"
	figures := []report.Figure{}
	for _, s := range seen {
		if problem := s.problem(c.nccl); problem != "" {
			status, text = report.Failed, problem
		}
		figures = append(figures,
			report.Figure{Name: fmt.Sprintf("kernels and copies a step of rank %d", s.rank), Value: float64(s.kernels) / ranksSteps, Unit: "1"},
			report.Figure{Name: fmt.Sprintf("collectives a step of rank %d", s.rank), Value: float64(s.operations) / ranksSteps, Unit: "1"},
			report.Figure{Name: fmt.Sprintf("device time a step of rank %d", s.rank), Value: float64(s.ran) / 1e6 / ranksSteps, Unit: "ms"},
			report.Figure{Name: fmt.Sprintf("longest kernel of rank %d", s.rank), Value: float64(s.longest) / 1e6, Unit: "ms"})
	}
	if len(seen) != ranksWorld {
		status, text = report.Failed, fmt.Sprintf("got %d rings; want %d", len(seen), ranksWorld)
	}
	p.Add(name, status, text, figures...)
}

// ringCount is what a rank's ring holds.
type ringCount struct {
	rank       int32
	state      ring.CUPTIState
	result     uint32
	kernels    int
	operations int
	ran        uint64 // of the kernels and copies, in CUPTI's ns; turns of others count, too
	longest    uint64
	byNCCL     bool // NCCL's plugin feeds the ring
}

// problem says what is wrong; empty where nothing is.
func (s ringCount) problem(nccl bool) string {
	switch {
	case s.state != ring.CUPTIActive || s.kernels == 0:
		return fmt.Sprintf("rank %d: CUPTI is %s (its result %d), with %d kernels; want active, and some", s.rank, s.state, s.result, s.kernels)
	case s.operations == 0:
		return fmt.Sprintf("rank %d: got no collective; want some", s.rank)
	case nccl != s.byNCCL:
		return fmt.Sprintf("rank %d: got NCCL as a source of its ring: %t; want %t", s.rank, s.byNCCL, nccl)
	}
	return ""
}

// countKernels reads the rings of a folder.
func countKernels(dir string) ([]ringCount, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+ring.Suffix))
	if err != nil {
		return nil, fmt.Errorf("list rings: %w", err)
	}
	var seen []ringCount
	for _, path := range paths {
		r, err := ring.Open(path, ring.Options{})
		if err != nil {
			return nil, err
		}
		s := ringCount{rank: r.Header().Rank, byNCCL: r.Witnesses()&ring.WitnessNCCL != 0}
		s.state, s.result = r.CUPTI()
		r.Snapshot(func(_ int, rec *ring.Record) {
			switch rec.Kind() {
			case ring.KindKernel:
				k := rec.Kernel()
				s.kernels++
				s.ran += k.End - k.Start
				s.longest = max(s.longest, k.End-k.Start)
			case ring.KindOp:
				s.operations++
			}
		})
		if err := r.Close(); err != nil {
			return nil, fmt.Errorf("close ring: %w", err)
		}
		seen = append(seen, s)
	}
	return seen, nil
}
