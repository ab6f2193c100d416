// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"

	"github.com/lockstep-otel/lockstep/bench/scoreboard/score"
)

// How an aim fared.
const (
	reached     = "reached"
	missed      = "missed"
	notMeasured = "not measured" // nothing was run that could have missed it
	notShown    = "not shown"    // it was not missed, and too little was run to say more
)

// aims prints what the method should reach, and what it reached, and returns how many
// aims it missed.
func aims(w io.Writer, all []outcome, method string) (misses int) {
	t := sum(all, counted(method))
	rows := [][]string{
		recall(all, method, "who and class, of faults at a slowdown of 1.1 and above or without a factor", false),
		recall(all, method, "the same, with those that cost less than is asked for", true),
		{"precision of what was decided", fmt.Sprintf("%d of %d", t.right, t.accusations), "", ""},
		none("victims accused", t.victims, fmt.Sprintf("in %d jobs with a fault", t.faultyJobs), t.faultyJobs),
		none("accusations on imbalance-only jobs", t.falseUneven, fmt.Sprintf("in %d steps", t.unevenSteps), t.unevenSteps),
		falseAlarms(t),
		calibrated("expected calibration error, families that report", told(all, method, reports)),
		calibrated("the same, faults of a nature that nothing calibrates", told(all, method, novel)),
		floors(all, of(method, partFaults), "floors of the share decided"),
		floors(all, func(o *outcome) bool { return of(method, partCurve)(o) || of(method, partWitness)(o) }, "the same, curves and witnesses"),
	}
	for _, r := range rows {
		misses += count(r[3] == missed)
	}
	table(w, method+": aims", []string{"", "got", "aim", ""}, rows,
		"False accusations: in brackets the rate that more of the same could have, at 95 %. It is shown where that is within the aim.")
	return misses
}

// leastSlowdown is the factor on a culprit's own time from which it must be found.
const leastSlowdown = 1.1

// mark says how an aim fared that so many things could have missed.
func mark(ok bool, of int) string {
	switch {
	case of == 0:
		return notMeasured
	case ok:
		return reached
	}
	return missed
}

// recall is of faults that must be found; what must be told of nobody's is not among them.
func recall(all []outcome, method, what string, small bool) []string {
	faults, right := 0, 0
	for i := range all {
		if o := &all[i]; of(method, partFaults)(o) {
			for _, f := range o.Result.Faults {
				if !f.Unseen && (small || !f.Small) && (f.Slowdown == 0 || f.Slowdown >= leastSlowdown) {
					faults++
					right += count(f.WithClass)
				}
			}
		}
	}
	got := fmt.Sprintf("%d of %d", right, faults)
	if faults > 0 {
		got += fmt.Sprintf(" (%.1f %%)", 100*float64(right)/float64(faults))
	}
	return []string{what, got, ">= 99 %", mark(float64(right) >= 0.99*float64(faults), faults)}
}

// none is an aim of zero.
func none(what string, got int, in string, of int) []string {
	return []string{what, fmt.Sprintf("%d %s", got, in), "0", mark(got == 0, of)}
}

// perRankSteps is what the aim of false accusations counts by.
const perRankSteps = 1e7

func falseAlarms(t *tally) []string {
	const what, want = "false accusations per 10,000,000 healthy rank-steps", "<= 1"
	if t.healthyRankSteps == 0 {
		return []string{what, "-", want, notMeasured}
	}
	scale := perRankSteps / t.healthyRankSteps
	got, most := float64(t.falseHealthy)*scale, mostEvents(t.falseHealthy)*scale
	verdict := notShown
	switch {
	case got > 1:
		verdict = missed
	case most <= 1:
		verdict = reached
	}
	return []string{what, fmt.Sprintf("%.3g (%d in %.3g; up to %.3g)", got, t.falseHealthy, t.healthyRankSteps, most), want, verdict}
}

// mostEvents returns the highest mean of a Poisson law that brings no more than n events
// in at least one of twenty runs: 3 for none.
func mostEvents(n int) float64 {
	low, high := float64(n), 10+3*float64(n)
	for range 60 {
		mean := (low + high) / 2
		term, sum := math.Exp(-mean), 0.0
		for k := range n + 1 {
			sum += term
			term *= mean / float64(k+1)
		}
		if sum > 0.05 {
			low = mean
		} else {
			high = mean
		}
	}
	return high
}

func calibrated(what string, told []score.Told) []string {
	wrong := score.ExpectedError(score.Reliability(told, calibrationBins))
	got := "-"
	if len(told) > 0 {
		got = fmt.Sprintf("%.3f of %d findings", wrong, len(told))
	}
	return []string{what, got, "<= 0.05", mark(wrong <= 0.05, len(told))}
}

// Which cases a calibration is of.
func calibrates(o *outcome) bool { return o.Calibrate }
func reports(o *outcome) bool    { return !o.Calibrate }
func novel(o *outcome) bool      { return !o.Calibrate && o.Novel }

// told lists the method's findings that have a confidence, in cases that are kept.
func told(all []outcome, method string, keep func(*outcome) bool) (out []score.Told) {
	for i := range all {
		o := &all[i]
		if !counted(method)(o) || !keep(o) {
			continue
		}
		for _, r := range o.Result.Rows {
			if r.Confidence.OK {
				out = append(out, score.Told{Confidence: r.Confidence.V, Right: r.WithClass})
			}
		}
	}
	return out
}

// floors counts the cases that missed their floor. A case of which every fault costs
// less than is asked for has shown nothing.
func floors(all []outcome, keep func(*outcome) bool, what string) []string {
	cases, unmeasured, below := 0, 0, 0
	labels, by := group(all, keep, func(o *outcome) string { return o.Case })
	for _, l := range labels {
		switch t := by[l]; {
		case t.floor == 0:
		case t.asked() == 0:
			unmeasured++
		default:
			cases++
			below += count(t.missed())
		}
	}
	got := fmt.Sprintf("%d of %d cases missed", below, cases)
	if unmeasured > 0 {
		got += fmt.Sprintf(", %d not measured", unmeasured)
	}
	return []string{what, got, "0", mark(below == 0, cases)}
}

// missedTable lists the cases that missed their floor, or did not measure it.
func missedTable(w io.Writer, all []outcome, method string) {
	var rows [][]string
	for _, part := range []string{partFaults, partCurve, partWitness} {
		labels, by := group(all, of(method, part), func(o *outcome) string { return o.Case })
		for _, l := range labels {
			t := by[l]
			if t.floor == 0 || t.asked() > 0 && !t.missed() {
				continue
			}
			got := notMeasured
			if t.asked() > 0 {
				got = fmt.Sprintf("%d of %d", t.met(), t.asked())
			}
			rows = append(rows, []string{l, fmt.Sprintf("%.0f", 100*t.floor), got})
		}
	}
	if len(rows) > 0 {
		table(w, method+": floors that are not met", []string{"case", "floor%", "decided, or told"}, rows)
	}
}
