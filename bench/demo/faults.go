// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// expectation is what a fault must be found as; an empty op is any.
type expectation struct{ fault, class, cause, op string }

var expectations = []expectation{
	{"compute", "compute", "unknown", ""},
	{"host", "host", "unknown", "(other)"},
	{"link", "link", "unknown", ""},
	{"compile", "host", "compile", "compile"},
	{"dataloader", "host", "dataloader", "data_loading"},
	{"gc", "host", "gc", "garbage_collection"},
	{"checkpoint", "host", "checkpoint", "checkpoint_save"},
}

// withinSteps is how soon a fault must be found, counted from its first step.
const withinSteps = 10

// said is a line that `lockstep demo --json` prints.
type said struct {
	Finding  string  `json:"finding"`
	Class    string  `json:"class"`
	Cause    string  `json:"cause"`
	Op       string  `json:"op"`
	Rank     *int64  `json:"rank"`
	StepLast *int64  `json:"step_last"`
	AtStep   int64   `json:"at_step"`
	Cost     float64 `json:"cost_seconds"`
	Steps    int64   `json:"steps"`
	Findings *int    `json:"findings"`
	Step     *int64  `json:"step"`
	Limit    float64 `json:"stall_limit_seconds"`
	Phase    string  `json:"limit_of_phase"`
	Still    float64 `json:"still_seconds"`
}

// faults runs the demo with every fault, and without one, and prints how often
// the finding was right. It fails where it was not always.
func faults(ctx context.Context, f *flag.FlagSet, args []string, w io.Writer) error {
	bin := f.String("bin", "bin", "folder of lockstep, the worker and the plugin")
	runs := f.Int("runs", 10, "runs of each fault")
	steps := f.Int("steps", 40, "steps of a run with a fault")
	healthy := f.Int("healthy-steps", 200, "steps of a run without")
	level := f.String("level", "collectives", "detail of the events")
	if err := f.Parse(args); err != nil {
		return err
	}
	failed := 0
	fmt.Fprintf(w, "%-11s %-14s %-34s %-30s\n", "fault", "on rank", "right rank and class in "+strconv.Itoa(withinSteps)+" steps", "judged by step, shown at step")
	for _, e := range expectations {
		t := tally{}
		for i := range *runs {
			rank := i % 4
			lines, err := demo(ctx, *bin, "--fault", e.fault, "--rank", strconv.Itoa(rank), "--steps", strconv.Itoa(*steps), "--level", *level)
			if err != nil {
				return err
			}
			t.add(e, int64(rank), lines)
		}
		t.print(w, e, *runs)
		failed += *runs - t.right
	}
	failed += runHealthy(ctx, w, *bin, *runs, *healthy, *level)
	if failed > 0 {
		return fmt.Errorf("judge runs: got %d wrong; want none", failed)
	}
	return nil
}

// tally counts runs by their first finding. A fault may be found as more than
// one thing; what else was found is listed.
type tally struct {
	right  int
	judged []float64
	shown  []float64
	wrong  []string
	also   []string
}

func (t *tally) add(e expectation, rank int64, lines []said) {
	for i := range lines {
		l := &lines[i]
		if l.Finding == "" {
			continue
		}
		if why := l.wrong(e, rank); why != "" {
			t.wrong = append(t.wrong, why)
			return
		}
		t.right++
		t.judged = append(t.judged, float64(*l.StepLast))
		t.shown = append(t.shown, float64(l.AtStep))
		for _, o := range lines[i+1:] {
			if o.Finding != "" {
				t.also = append(t.also, fmt.Sprintf("of rank %d, then class %s of rank %d (%.1f ms per step)", rank, o.Class, deref(o.Rank), 1e3*o.Cost))
			}
		}
		return
	}
	t.wrong = append(t.wrong, "nothing found")
}

func deref(v *int64) int64 {
	if v == nil {
		return -1
	}
	return *v
}

func (l *said) wrong(e expectation, rank int64) string {
	switch {
	case l.Rank == nil || *l.Rank != rank:
		return fmt.Sprintf("got rank %d, class %s; want rank %d", deref(l.Rank), l.Class, rank)
	case l.Class != e.class || l.Cause != e.cause || (e.op != "" && l.Op != e.op):
		return fmt.Sprintf("got class %s, cause %q, op %q; want %s %q %q", l.Class, l.Cause, l.Op, e.class, e.cause, e.op)
	case l.StepLast == nil || l.AtStep > withinSteps:
		return fmt.Sprintf("rank %d shown at step %d; want by %d", rank, l.AtStep, withinSteps)
	}
	return ""
}

func (t *tally) print(w io.Writer, e expectation, runs int) {
	fmt.Fprintf(w, "%-11s %-14s %-34s %g (most %g), %g (most %g)\n", e.fault, "0 to 3", fmt.Sprintf("%d of %d", t.right, runs),
		quantile(t.judged, 0.5), quantile(t.judged, 1), quantile(t.shown, 0.5), quantile(t.shown, 1))
	for _, why := range t.wrong {
		fmt.Fprintf(w, "  wrong: %s\n", why)
	}
	for _, what := range t.also {
		fmt.Fprintf(w, "  also:  %s\n", what)
	}
}

// runHealthy returns the number of runs with a finding.
func runHealthy(ctx context.Context, w io.Writer, bin string, runs, steps int, level string) (wrong int) {
	for range runs {
		lines, err := demo(ctx, bin, "--fault", "none", "--steps", strconv.Itoa(steps), "--level", level)
		if err != nil || len(lines) != 1 {
			wrong++
			fmt.Fprintf(w, "  without a fault: %+v %v\n", lines, err)
		}
	}
	fmt.Fprintf(w, "%-11s %-14s %d of %d runs of %d steps without a finding\n", "none", "", runs-wrong, runs, steps)
	return wrong
}

// demo runs `lockstep demo` and returns the lines that it printed.
func demo(ctx context.Context, bin string, args ...string) (lines []said, err error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "lockstep"), append([]string{"demo", "--json"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("run lockstep demo %v: %w", args, err)
	}
	for scan := bufio.NewScanner(&out); scan.Scan(); {
		var l said
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("read output of lockstep demo: %w", err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}
