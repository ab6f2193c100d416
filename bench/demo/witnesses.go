// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// witnessRows are those that `lockstep demo` can be watched with, each with what is
// before it.
var witnessRows = []string{"host-events", "kernels", "proxy", "scopes", "cupti"}

// outcome is how far a run came; the first finding of it counts.
type outcome string

const (
	named     outcome = "right"  // rank, class, and the cause where there is one to know
	causeless outcome = "class"  // rank and class, but not the cause
	misread   outcome = "rank"   // the rank, but in another class
	silent    outcome = "silent" // nothing
	wronged   outcome = "wrong"  // another rank
)

var outcomes = []outcome{named, causeless, misread, silent, wronged}

// outcomeOf judges a run; for a job that nothing ails, the fault's class is empty,
// and silence is right.
func outcomeOf(e *expectation, rank int64, lines []said) outcome {
	at := slices.IndexFunc(lines, func(l said) bool { return l.Finding != "" })
	if at < 0 {
		return silent
	}
	l := &lines[at]
	switch {
	case e.class == "" || l.Rank == nil || *l.Rank != rank:
		return wronged
	case l.Class != e.class:
		return misread
	case l.Cause != e.cause:
		return causeless
	}
	return named
}

// witnesses runs every fault with the witnesses of every row, and prints what they
// came to.
func witnesses(ctx context.Context, f *flag.FlagSet, args []string, w io.Writer) error {
	bin := f.String("bin", "bin", "folder of lockstep, the worker, the plugin and the stand-in for CUPTI")
	runs := f.Int("runs", 3, "runs of each fault with each row")
	steps := f.Int("steps", 60, "steps of a run")
	rows := f.String("rows", strings.Join(witnessRows, ","), "rows to run")
	if err := f.Parse(args); err != nil {
		return err
	}
	chosen := strings.Split(*rows, ",")
	fmt.Fprintf(w, "%d runs of %d steps each. right: rank, class and cause; class: rank and class without the cause;\n"+
		"rank: in another class; silent: nothing found; wrong: another rank.\n\n%-11s", *runs, *steps, "fault")
	for _, row := range chosen {
		fmt.Fprintf(w, " %-20s", row)
	}
	fmt.Fprintln(w)
	var notes []string
	for _, e := range append(slices.Clone(expectations), expectation{fault: "none"}) {
		fmt.Fprintf(w, "%-11s", e.fault)
		for _, row := range chosen {
			count := map[outcome]int{}
			for i := range *runs {
				rank := int64(i % 4)
				lines, err := runWitness(ctx, *bin, e.fault, row, rank, *steps)
				if err != nil {
					return err
				}
				count[outcomeOf(&e, rank, lines)]++
				notes = append(notes, surprises(&e, row, rank, lines)...)
			}
			fmt.Fprintf(w, " %-20s", counted(count))
		}
		fmt.Fprintln(w)
	}
	for _, n := range notes {
		fmt.Fprintf(w, "  %s\n", n)
	}
	return nil
}

func runWitness(ctx context.Context, bin, fault, row string, rank int64, steps int) ([]said, error) {
	args := []string{"--fault", fault, "--witness", row, "--steps", strconv.Itoa(steps)}
	if fault != "none" {
		args = append(args, "--rank", strconv.FormatInt(rank, 10))
	}
	return demo(ctx, bin, args...)
}

// surprises are findings of ranks that nothing ails, and of other classes.
func surprises(e *expectation, row string, rank int64, lines []said) (notes []string) {
	for i := range lines {
		l := &lines[i]
		if l.Finding == "" || (e.class == l.Class && deref(l.Rank) == rank) {
			continue
		}
		notes = append(notes, fmt.Sprintf("%s of rank %d with %s: class %s of rank %d, %q, %.1f ms per step",
			e.fault, rank, row, l.Class, deref(l.Rank), l.Op, 1e3*l.Cost))
	}
	return notes
}

func counted(count map[outcome]int) string {
	var parts []string
	for _, o := range outcomes {
		if n := count[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	return strings.Join(parts, ", ")
}
