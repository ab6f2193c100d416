// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/lockstep-otel/lockstep/bench/scoreboard/methods"
	"github.com/lockstep-otel/lockstep/bench/scoreboard/score"
)

// table prints rows under a head, columns aligned.
func table(w io.Writer, title string, head []string, rows [][]string, notes ...string) {
	fmt.Fprintf(w, "\n## %s\n\n", title)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range append([][]string{head}, rows...) {
		fmt.Fprintln(tw, strings.Join(r, "\t"))
	}
	_ = tw.Flush()
	for _, n := range notes {
		fmt.Fprintln(w, n)
	}
}

var faultHead = []string{
	"family", "ranks", "jobs", "faults", "small", "decided%", "floor", "precision%", "candidate%",
	"top1%", "who%", "+class%", "+op%", "victims", "steps p50", "p95", "blame",
}

// faultTable has a row for each family and scale of one method.
func faultTable(w io.Writer, all []outcome, method string) {
	labels, by := group(all, func(o *outcome) bool { return of(method, partFaults)(o) && o.Culprits > 0 }, func(o *outcome) string {
		return o.Family + "\t" + strconv.Itoa(o.Ranks)
	})
	sortScales(labels)
	var rows [][]string
	total := &tally{}
	for i := range all {
		if o := &all[i]; of(method, partFaults)(o) && o.Culprits > 0 {
			total.add(o)
		}
	}
	for _, l := range labels {
		rows = append(rows, append(strings.Split(l, "\t"), by[l].faultCells()...))
	}
	rows = append(rows, append([]string{"all", ""}, total.faultCells()...))
	table(w, method+": faults, by family and scale", faultHead, rows,
		"A floor with ! is missed, n.m. is not measured: all its faults are small. Those cost less than must be told, and are in no other column but victims and precision.")
}

// sortScales sorts labels "family\tranks" by ranks, within the order of families.
func sortScales(labels []string) {
	at := map[string]int{}
	for _, l := range labels {
		f, _, _ := strings.Cut(l, "\t")
		if _, ok := at[f]; !ok {
			at[f] = len(at)
		}
	}
	key := func(l string) (int, int) {
		f, n, _ := strings.Cut(l, "\t")
		ranks, _ := strconv.Atoi(n)
		return at[f], ranks
	}
	slices.SortStableFunc(labels, func(a, b string) int {
		fa, na := key(a)
		fb, nb := key(b)
		if fa != fb {
			return fa - fb
		}
		return na - nb
	})
}

func (t *tally) faultCells() []string {
	return []string{
		strconv.Itoa(t.jobs), strconv.Itoa(t.faults), strconv.Itoa(t.small), percent(t.decided, t.faults), t.floorCell(),
		percent(t.right, t.accusations), percent(t.candidate, t.faults), percent(t.top, t.tops), percent(t.who, t.faults),
		percent(t.class, t.faults), percent(t.op, t.hasOp), strconv.Itoa(t.victims),
		quantile(t.late, 0.5, "%.0f"), quantile(t.late, 0.95, "%.0f"), average(t.blame, "%.3f"),
	}
}

// caseTable has a row for each case, which shows severities.
func caseTable(w io.Writer, all []outcome, method string) {
	labels, by := group(all, of(method, partFaults), func(o *outcome) string { return o.Family + "\t" + o.Case })
	var rows [][]string
	for _, l := range labels {
		t := by[l]
		rows = append(rows, append(strings.Split(l, "\t"), strconv.Itoa(t.faults+t.uneven), strconv.Itoa(t.small+t.smallUneven), t.floorCell(), percent(t.decided, t.faults),
			percent(t.who, t.faults), percent(t.class, t.faults), strconv.Itoa(t.victims),
			percent(t.unevenTold, t.uneven), strconv.Itoa(t.falseHealthy+t.falseUneven)))
	}
	table(w, method+": by case", []string{
		"family", "case", "faults", "small", "floor", "decided%", "who%", "+class%", "victims", "told%", "falsely accused",
	}, rows, "A floor, of the share decided, or told of an imbalance, with ! is missed, n.m. is not measured.")
}

func smallTable(w io.Writer, all []outcome) {
	if len(all) == 0 {
		return
	}
	var rows [][]string
	for _, m := range present(all) {
		t := sum(all, func(o *outcome) bool { return of(m.Name, partFaults)(o) && o.Culprits > 0 })
		rows = append(rows, []string{
			m.Name, strconv.Itoa(t.small), percent(t.smallSilent, t.small), percent(t.smallRight, t.small),
			percent(t.small-t.smallSilent-t.smallRight, t.small),
		})
	}
	table(w, fmt.Sprintf("faults that cost less than %g %% of the step", 100*all[0].Small),
		[]string{"method", "faults", "silent%", "right%", "wrong%"}, rows,
		"Silence is right here, and so is naming the right one; naming another is wrong.")
}

func sum(all []outcome, keep func(*outcome) bool) *tally {
	t := &tally{}
	for i := range all {
		if keep(&all[i]) {
			t.add(&all[i])
		}
	}
	return t
}

// sideBySide compares methods by family: who first, and what was named.
func sideBySide(w io.Writer, all []outcome) {
	head := []string{"family"}
	for _, m := range present(all) {
		head = append(head, m.Name)
	}
	for _, c := range []struct {
		title string
		cell  func(*tally, *methods.About) string
		note  string
	}{
		{
			"who, first of the list, %", func(t *tally, _ *methods.About) string { return percent(t.top, t.tops) },
			"Of the method's list: those it names, or where it names nobody, whom it would look at first.",
		},
		{"who, named, %", func(t *tally, _ *methods.About) string { return percent(t.who, t.faults) }, ""},
		{"who and class, named, %", func(t *tally, m *methods.About) string {
			if !m.Classes {
				return ""
			}
			return percent(t.class, t.faults)
		}, "Methods without classes are left blank."},
		{"victims accused, per job", func(t *tally, _ *methods.About) string { return rate(t.victims, 1, float64(t.jobs)) }, ""},
	} {
		var rows [][]string
		for _, f := range append(families(all, partFaults), "") {
			row := []string{f}
			if f == "" {
				row[0] = "all"
			}
			faulty := false
			for _, m := range present(all) {
				t := sum(all, func(o *outcome) bool {
					return of(m.Name, partFaults)(o) && o.Culprits > 0 && (f == "" || o.Family == f)
				})
				faulty = faulty || t.jobs > 0
				row = append(row, c.cell(t, &m))
			}
			if faulty {
				rows = append(rows, row)
			}
		}
		var notes []string
		if c.note != "" {
			notes = append(notes, c.note)
		}
		table(w, c.title, head, rows, notes...)
	}
}

// summary has a row for each method.
func summary(w io.Writer, all []outcome) {
	var rows [][]string
	for _, m := range present(all) {
		t, c := sum(all, of(m.Name, partFaults)), sum(all, counted(m.Name))
		precision, class := c.right, percent(t.class, t.faults)
		if !m.Classes {
			precision, class = c.place, ""
		}
		note := ""
		if !m.Abstains {
			note = "cannot abstain"
		}
		rows = append(rows, []string{
			m.Name, strconv.Itoa(t.faults), percent(t.decided, t.faults), percent(precision, c.accusations), percent(t.top, t.tops),
			percent(t.who, t.faults), class, strconv.Itoa(c.victims),
			rate(c.falseHealthy, 1000, float64(c.healthySteps)), rate(c.falseHealthy, perRankSteps, c.healthyRankSteps),
			rate(c.falseUneven, 1000, float64(c.unevenSteps)), percent(t.unevenTold, t.uneven),
			quantile(t.late, 0.5, "%.0f"), fmt.Sprintf("%.0f", c.budget*1e9/math.Max(1, float64(c.ops))), note,
		})
	}
	table(w, "methods side by side", []string{
		"method", "faults", "decided%", "precision%", "top1%", "who%", "+class%", "victims",
		"healthy/1k steps", "/10M rank-steps", "imbalance/1k steps", "told%", "steps p50", "ns/op", "",
	}, rows,
		"precision: of all accusations, those with the right place (and class, where the method tells classes).",
		"healthy, imbalance: false accusations in jobs in which nobody is at fault. ns/op: wall clock beside other jobs.")
}

// innocent has a row for each family without culprits, and scale.
func innocent(w io.Writer, all []outcome) {
	var rows [][]string
	head := []string{"family", "ranks", "jobs", "steps", "rank-steps", "told%", "small"}
	for _, m := range present(all) {
		head = append(head, m.Name)
	}
	labels, _ := group(all, func(o *outcome) bool { return counted(o.Method)(o) && o.Culprits == 0 }, func(o *outcome) string {
		return o.Family + "\t" + strconv.Itoa(o.Ranks)
	})
	sortScales(labels)
	for _, l := range labels {
		row := strings.Split(l, "\t")
		for i, m := range present(all) {
			t := sum(all, func(o *outcome) bool {
				return counted(m.Name)(o) && o.Culprits == 0 && o.Family+"\t"+strconv.Itoa(o.Ranks) == l
			})
			if i == 0 {
				row = append(row, strconv.Itoa(t.jobs), strconv.Itoa(t.steps), fmt.Sprintf("%.0f", t.rankSteps), percent(t.unevenTold, t.uneven), strconv.Itoa(t.smallUneven))
			}
			row = append(row, strconv.Itoa(t.falseHealthy+t.falseUneven))
		}
		rows = append(rows, row)
	}
	table(w, "jobs in which nobody is at fault: false accusations", head, rows,
		"told%: of the imbalances that are not small, those told by the first method, nobody being accused.")
}

// limits has a row for each family that no method can decide.
func limits(w io.Writer, all []outcome) {
	labels, _ := group(all, func(o *outcome) bool { return o.Part == partLimit }, func(o *outcome) string { return o.Family })
	if len(labels) == 0 {
		return
	}
	head := []string{"family", "jobs"}
	for _, m := range present(all) {
		head = append(head, m.Name)
	}
	var rows [][]string
	for _, l := range labels {
		row := []string{l}
		for i, m := range present(all) {
			t := sum(all, func(o *outcome) bool { return of(m.Name, partLimit)(o) && o.Family == l })
			if i == 0 {
				row = append(row, strconv.Itoa(t.jobs))
			}
			row = append(row, fmt.Sprintf("%d / %d", t.right+t.toldRight, t.accusations+t.told-t.right-t.toldRight))
		}
		rows = append(rows, row)
	}
	table(w, "what cannot be told from what is recorded: findings right / wrong", head, rows,
		"Nothing must be told here. False accusations, victims and confidence count as elsewhere.")
}

// calibration prints how often findings are right, beside the confidence that they had.
func calibration(w io.Writer, all []outcome) {
	for _, m := range present(all) {
		for _, c := range []struct {
			title string
			keep  func(*outcome) bool
		}{
			{"families that calibrate", calibrates},
			{"families that report", reports},
			{"of those that report, faults of a nature that nothing calibrates", novel},
		} {
			told := told(all, m.Name, c.keep)
			if len(told) == 0 {
				continue
			}
			bins := score.Reliability(told, calibrationBins)
			var rows [][]string
			fit := score.Fit(bins)
			for i, b := range bins {
				rows = append(rows, []string{
					fmt.Sprintf("%.3f to %.3f", b.Low, b.High), strconv.Itoa(b.N), fmt.Sprintf("%.3f", b.Mean), fmt.Sprintf("%.3f", b.Right),
					fmt.Sprintf("%.3f", fit[i]),
				})
			}
			table(w, m.Name+": calibration, "+c.title, []string{"confidence", "findings", "mean", "right", "fit"}, rows,
				fmt.Sprintf("expected calibration error %.3f of %d findings", score.ExpectedError(bins), len(told)))
		}
	}
}

const calibrationBins = 10

// curves prints what losses and clocks cost, by method.
func curves(w io.Writer, all []outcome) {
	varied(w, all, partCurve, "what is varied", "robustness: who and class (who, for methods without classes) of faults, % / victims + false accusations", func(o *outcome) string {
		return fmt.Sprintf("%s %g", o.Curve, o.X)
	})
	varied(w, all, partWitness, "witness", "witnesses: who and class (who, for methods without classes) of faults, % / victims + false accusations", func(o *outcome) string { return o.Row })
}

func varied(w io.Writer, all []outcome, part, what, title string, label func(*outcome) string) {
	labels, _ := group(all, func(o *outcome) bool { return o.Part == part }, label)
	if len(labels) == 0 {
		return
	}
	head := []string{what, "jobs", "faults", "unseen"}
	for _, m := range present(all) {
		head = append(head, m.Name)
	}
	var rows [][]string
	for _, l := range labels {
		row := []string{l}
		for i, m := range present(all) {
			t := sum(all, func(o *outcome) bool { return of(m.Name, part)(o) && label(o) == l })
			if i == 0 {
				row = append(row, strconv.Itoa(t.jobs), strconv.Itoa(t.faults), strconv.Itoa(t.unseen))
			}
			n := t.class
			if !m.Classes {
				n = t.who
			}
			row = append(row, fmt.Sprintf("%s / %d", percent(n, t.faults), t.victims+t.falseHealthy+t.falseUneven))
		}
		rows = append(rows, row)
	}
	table(w, title, head, rows, "unseen: nothing was recorded of whoever is at fault. Silence is right there; naming another is not.")
}
