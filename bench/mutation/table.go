// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"text/tabwriter"

	"github.com/lockstep-otel/lockstep/internal/mutation"
)

// goal is the share of the mutants killed by either tier that the quick tier has to kill.
const goal = 0.95

// report prints the tables, the mutants that the quick tier leaves alive, and the share. It
// returns an error where the goal is missed or unknown.
func report(w io.Writer, result mutation.Result) error {
	ofPackage := func(r mutation.Record) string { return path.Dir(r.File) }
	ofKind := func(r mutation.Record) string { return string(r.Kind) }
	all, byPackage := mutation.Count(result.Records, ofPackage)
	_, byKind := mutation.Count(result.Records, ofKind)
	kinds := slices.DeleteFunc(slices.Clone(mutation.Kinds), func(k mutation.Kind) bool {
		return byKind[string(k)] == mutation.Counts{}
	})
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	table(w, "kind", names, byKind, all)
	table(w, "package", slices.Sorted(maps.Keys(byPackage)), byPackage, all)
	leftAlive(w, "Killed by the full tier alone", result.Records, mutation.Killed, mutation.TimedOut)
	leftAlive(w, "Alive after both tiers", result.Records, mutation.Alive)
	fmt.Fprintf(w, "judged %d mutants, %d not judged, %d replaced that do not compile, a test failed by chance on %d\n",
		len(result.Records), result.Unjudged, result.Rejected, all.Chance)
	return conclude(w, all)
}

func conclude(w io.Writer, all mutation.Counts) error {
	if all.Dead() == 0 {
		return errors.New("compare tiers: got no mutant that was killed; want at least one")
	}
	low, high := mutation.Wilson(all.Quick, all.Dead())
	fmt.Fprintf(w, "the quick tier kills %d of the %d mutants that either tier kills: %s (95 %% interval %s to %s)\n",
		all.Quick, all.Dead(), percent(all.Share()), percent(low), percent(high))
	if all.Share() < goal {
		return fmt.Errorf("compare tiers: got a share of %s; want %s", percent(all.Share()), percent(goal))
	}
	return nil
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func table(w io.Writer, of string, names []string, by map[string]mutation.Counts, all mutation.Counts) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%s\tquick\ttimed out\tfull only\ttimed out\talive\tshare\t\n", of)
	for _, name := range names {
		row(t, name, by[name])
	}
	row(t, "all", all)
	_ = t.Flush()
	fmt.Fprintln(w)
}

func row(w io.Writer, name string, c mutation.Counts) {
	share := "-"
	if c.Dead() > 0 {
		share = percent(c.Share())
	}
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t\n",
		name, c.Quick, c.QuickTimedOut, c.FullOnly, c.FullTimedOut, c.Alive, share)
}

// leftAlive prints the mutants that the quick tier left alive and that the full tier made one
// of outcomes of.
func leftAlive(w io.Writer, title string, records []mutation.Record, outcomes ...mutation.Outcome) {
	fmt.Fprintf(w, "%s:\n", title)
	for _, r := range records {
		if slices.Contains(outcomes, r.Full) {
			printMutant(w, r.Mutant, killer(r))
		}
	}
	fmt.Fprintln(w)
}

func printMutant(w io.Writer, m mutation.Mutant, note string) {
	fmt.Fprintf(w, "%s:%d:%d: %s%s\n  - %s\n  + %s\n", m.File, m.Line, m.Column, m.Kind, note, m.Before, m.After)
}

// verdict returns what both tiers made of a mutant, in words.
func verdict(r mutation.Record) string {
	if r.Full == "" {
		return string(r.Quick) + killer(r)
	}
	return fmt.Sprintf("%s, in full %s%s", r.Quick, r.Full, killer(r))
}

// killer returns which test killed the mutant, in words to append.
func killer(r mutation.Record) string {
	switch {
	case r.By == "":
		return ""
	case r.Test == "":
		return fmt.Sprintf(" (a test of %s)", r.By)
	}
	return fmt.Sprintf(" (%s of %s)", r.Test, r.By)
}
