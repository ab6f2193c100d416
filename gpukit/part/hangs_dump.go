// SPDX-License-Identifier: Apache-2.0

package part

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/torchname"
)

// dumpTruth is what one process of programs/dumps.py wrote down of itself.
type dumpTruth struct {
	Rank    int      `json:"rank"`
	World   int      `json:"world"`
	Backend string   `json:"backend"`
	NCCL    string   `json:"nccl"`
	Ops     []dumpOp `json:"ops"` // that were over
	Doomed  *dumpOp  `json:"doomed"`
	Missing int      `json:"missing_rank"`
	Timeout int64    `json:"timeout_ms"`
	Dumped  int64    `json:"dumped_ns"`
	Error   string   `json:"error"`
}

// problems tests that the rank came as far as it should. hung: it should be in the
// operation that does not end.
func (t *dumpTruth) problems(hung bool) (problems []string) {
	if t.Error != "" {
		problems = append(problems, fmt.Sprintf("rank %d: %s", t.Rank, t.Error))
	}
	if len(t.Ops) == 0 {
		problems = append(problems, fmt.Sprintf("rank %d: did no operation; want some", t.Rank))
	}
	if t.Dumped == 0 {
		problems = append(problems, fmt.Sprintf("rank %d: ended before it saw the dumps", t.Rank))
	}
	if hung && t.Doomed == nil {
		problems = append(problems, fmt.Sprintf("rank %d: did not come to the operation that hangs", t.Rank))
	}
	return problems
}

// dumpOp is one operation; times are Unix ns.
type dumpOp struct {
	Name   string    `json:"name"`
	DType  string    `json:"dtype"`
	In     [][]int64 `json:"in"`
	Before int64     `json:"before_ns"`
	After  int64     `json:"after_ns"`
}

func (o *dumpOp) sizes() string {
	return strings.ReplaceAll(fmt.Sprint(o.In), " ", ", ")
}

// dumpSeen counts what a dump has.
type dumpSeen struct {
	Completed, Started, Scheduled int
	Timed                         int // with a duration
}

// compareDump compares a dump with what its rank did. hung: the rank is in the
// operation that does not end.
func compareDump(d *flightrecorder.Dump, t *dumpTruth, hung bool) (seen dumpSeen, problems []string) {
	want := len(t.Ops)
	if hung {
		want++
	}
	if len(d.Entries) != want {
		problems = append(problems, fmt.Sprintf("rank %d: got %d operations in the dump; want %d", t.Rank, len(d.Entries), want))
	}
	if !d.Version.AtLeast(2, 0) {
		problems = append(problems, fmt.Sprintf("rank %d: got version %v of the dump; want 2.0 or later", t.Rank, d.Version))
	}
	if t.NCCL != "" && d.LibVersion != t.NCCL {
		problems = append(problems, fmt.Sprintf("rank %d: got NCCL %q in the dump; want %s", t.Rank, d.LibVersion, t.NCCL))
	}
	if d.Partial != "" {
		problems = append(problems, fmt.Sprintf("rank %d: %s", t.Rank, d.Partial))
	}
	for i := range d.Entries {
		e := &d.Entries[i]
		seen.add(e)
		switch {
		case i < len(t.Ops):
			problems = append(problems, entryProblems(d, e, t, &t.Ops[i], false)...)
		case i == len(t.Ops) && hung && t.Doomed != nil:
			problems = append(problems, entryProblems(d, e, t, t.Doomed, true)...)
		}
	}
	return seen, problems
}

func (s *dumpSeen) add(e *flightrecorder.Entry) {
	switch e.State {
	case flightrecorder.Completed:
		s.Completed++
	case flightrecorder.Started:
		s.Started++
	default:
		s.Scheduled++
	}
	if e.Duration >= 0 && e.State == flightrecorder.Completed {
		s.Timed++
	}
}

func entryProblems(d *flightrecorder.Dump, e *flightrecorder.Entry, t *dumpTruth, o *dumpOp, open bool) (problems []string) {
	add := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("rank %d, %s %s: ", t.Rank, o.Name, o.sizes())+fmt.Sprintf(format, args...))
	}
	backend, name, _ := strings.Cut(d.Name(e), ":")
	if got := torchname.Collective(name); got != o.Name || backend != t.Backend {
		add("got %s", d.Name(e))
	}
	in, _ := d.Sizes(e)
	types, _ := d.Types(e)
	if in.Text != o.sizes() || types != o.DType {
		add("got %s %s", in.Text, types)
	}
	over := e.State == flightrecorder.Completed || e.Retired
	if over == open {
		add("got it over: %t; want %t", over, !open)
	}
	until := o.After
	if open {
		until = t.Dumped
	}
	if e.Created < o.Before || e.Created > until {
		add("got its call at %.3f ms; want 0 to %.3f", msOf(e.Created, o.Before), msOf(until, o.Before))
	}
	for what, at := range map[string]int64{"start": e.StartSeen, "end": e.EndSeen} {
		if at != 0 && (at < e.Created || at > t.Dumped) {
			add("got its %s seen %.3f ms after its call; want 0 to %.3f", what, msOf(at, e.Created), msOf(t.Dumped, e.Created))
		}
	}
	if !open && e.Duration > msOf(o.After, o.Before) {
		add("got %.3f ms; want at most the call's %.3f", e.Duration, msOf(o.After, o.Before))
	}
	return problems
}

// msOf returns a less b in milliseconds.
func msOf(a, b int64) float64 { return float64(a-b) / 1e6 }

// hangAnalysis is what `lockstep analyze --json` prints of dumps.
type hangAnalysis struct {
	Hangs []struct {
		Verdict string `json:"verdict"`
		MayRun  string `json:"may_run"`
		Roots   []struct {
			Finding struct {
				Body       string  `json:"body"`
				Class      string  `json:"lockstep.finding.class"`
				Op         string  `json:"lockstep.finding.op"`
				Rank       *int    `json:"lockstep.finding.rank"`
				Waiting    []int   `json:"lockstep.finding.waiting"`
				Confidence float64 `json:"lockstep.finding.confidence"`
			} `json:"finding"`
		} `json:"roots"`
	} `json:"hangs"`
}

func parseHang(out string) (*hangAnalysis, error) {
	a := &hangAnalysis{}
	if err := json.Unmarshal([]byte(out), a); err != nil {
		return nil, fmt.Errorf("read analysis: %w", err)
	}
	return a, nil
}

// missingProblems tests that the analysis names the rank that did not join, and the
// operation. t is of a rank that came to it.
func missingProblems(a *hangAnalysis, t *dumpTruth, world int) (sentence string, problems []string) {
	if len(a.Hangs) != 1 || len(a.Hangs[0].Roots) != 1 {
		roots := 0
		for _, h := range a.Hangs {
			roots += len(h.Roots)
		}
		return "", []string{fmt.Sprintf("got %d incidents with %d roots; want one with one", len(a.Hangs), roots)}
	}
	h := a.Hangs[0]
	f := h.Roots[0].Finding
	if h.Verdict != "hang" {
		problems = append(problems, strings.TrimRight(fmt.Sprintf("got verdict %s; want hang: %s", h.Verdict, h.MayRun), ": "))
	}
	if f.Class != "not_scheduled" || f.Rank == nil || *f.Rank != t.Missing {
		problems = append(problems, fmt.Sprintf("got %q; want rank %d, class not_scheduled", f.Body, t.Missing))
	}
	if name, _, _ := strings.Cut(f.Op, " "); name != t.Doomed.Name {
		problems = append(problems, fmt.Sprintf("got operation %q; want %s", f.Op, t.Doomed.Name))
	}
	if len(f.Waiting) != world-1 {
		problems = append(problems, fmt.Sprintf("got ranks %v waiting; want %d", f.Waiting, world-1))
	}
	return f.Body, problems
}
