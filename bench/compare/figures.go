// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// figure is one cell of a table.
type figure struct{ table, row, column, text string }

func (f figure) key() string { return f.table + "\x00" + f.row + "\x00" + f.column }

// Whether more is better, by the name of a column, or of a row whose columns have no meaning of
// their own. The first that matches counts.
var directions = []struct {
	name *regexp.Regexp
	up   int // 1: more is better; -1: less is better; 0: neither
}{
	{regexp.MustCompile(`^(ns/op|floor%?|healthy rank-steps|ranks|jobs|steps|rank-steps|faults|small|unseen|findings|confidence|mean|fit)$`), 0},
	{regexp.MustCompile(`(?i)victim|false|silent|wrong|error|steps p50|p95|blame|imbalance/|healthy/|/10M|candidates$|missed`), -1},
	{regexp.MustCompile(`(?i)decided|told|right|who|class|op%|top1|precision|candidate|recall|missing`), 1},
}

var leading = regexp.MustCompile(`^[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?`)

// unmeasured are figures of the machine, not of the analysis.
var unmeasured = regexp.MustCompile(`^ns/op$`)

// tablesOf reads the tables of a text: those of Markdown, and those of aligned columns below a
// heading "## ...".
func tablesOf(text string) (out []figure) {
	title := ""
	var block []string
	flush := func() {
		out = append(out, tableOf(title, block)...)
		block = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "## "):
			flush()
			title = strings.TrimPrefix(line, "## ")
		case strings.TrimSpace(line) == "":
			flush()
		default:
			block = append(block, line)
		}
	}
	flush()
	return out
}

// tableOf reads one table, whose first line names the columns; other blocks give nothing.
func tableOf(title string, block []string) (out []figure) {
	if len(block) < 2 {
		return nil
	}
	var rows [][]string
	if strings.HasPrefix(block[0], "|") {
		for i, line := range block {
			if i != 1 && strings.HasPrefix(line, "|") {
				rows = append(rows, strings.Split(strings.Trim(line, "|"), "|"))
			}
		}
	} else {
		rows = aligned(block)
	}
	if len(rows) < 2 {
		return nil
	}
	for i := range rows {
		for j := range rows[i] {
			rows[i][j] = strings.TrimSpace(rows[i][j])
		}
	}
	labels := labelColumns(rows[0])
	if title == "" {
		title = strings.Join(rows[0][:min(labels+1, len(rows[0]))], ", ")
	}
	for _, row := range rows[1:] {
		label := strings.Join(row[:min(labels, len(row))], ", ")
		for j := labels; j < len(row) && j < len(rows[0]); j++ {
			if !unmeasured.MatchString(rows[0][j]) {
				out = append(out, figure{title, label, rows[0][j], row[j]})
			}
		}
	}
	return out
}

// labelColumns counts the first columns that name a row.
func labelColumns(header []string) int {
	names := map[string]bool{"family": true, "case": true, "method": true, "ranks": true, "witness": true, "fault": true, "dumps": true, "missing": true, "": true, "confidence": true}
	n := 0
	for n < len(header) && names[header[n]] {
		n++
	}
	return max(1, n)
}

// aligned splits lines at the places where all of them have two blanks or more.
func aligned(block []string) [][]string {
	width := 0
	runes := make([][]rune, len(block))
	for i, l := range block {
		runes[i] = []rune(l)
		width = max(width, len(runes[i]))
	}
	// A line that has no gap is a note below the table.
	rows := runes[:0]
	for _, l := range runes {
		if strings.Contains(string(l), "  ") {
			rows = append(rows, l)
		}
	}
	blank := func(col int) bool {
		for _, l := range rows {
			if col < len(l) && l[col] != ' ' {
				return false
			}
		}
		return true
	}
	var starts []int
	for col, gap := 0, 2; col < width; col++ {
		if blank(col) {
			gap++
			continue
		}
		if gap >= 2 {
			starts = append(starts, col)
		}
		gap = 0
	}
	out := make([][]string, len(rows))
	for i, l := range rows {
		for j, from := range starts {
			to := len(l)
			if j+1 < len(starts) {
				to = min(to, starts[j+1])
			}
			cell := ""
			if from < to {
				cell = string(l[from:to])
			}
			out[i] = append(out[i], cell)
		}
	}
	return out
}

// figureDiff is a figure that differs; verdict is better, worse or changed.
type figureDiff struct {
	figure
	was, verdict string
}

// figureDiffs are those of an input, and how many are equal.
type figureDiffs struct {
	all   []figureDiff
	equal int
}

func (d *figureDiffs) lines() (out []string) {
	for _, f := range d.all {
		out = append(out, fmt.Sprintf("%s | %s | %s: %s -> %s: %s", f.table, f.row, f.column, f.was, f.text, f.verdict))
	}
	return out
}

func (n *counts) add(d figureDiffs) {
	n.same += d.equal
	for _, f := range d.all {
		switch f.verdict {
		case "better":
			n.better++
		case "worse":
			n.worse++
		default:
			n.changed++
		}
	}
}

// figureChanges compares the tables of two texts figure by figure.
func figureChanges(base, head string) (out figureDiffs) {
	was := map[string]string{}
	for _, f := range tablesOf(base) {
		was[f.key()] = f.text
	}
	for _, f := range tablesOf(head) {
		old, ok := was[f.key()]
		delete(was, f.key())
		switch {
		case !ok:
			out.all = append(out.all, figureDiff{f, "(none)", "changed"})
		case old == f.text:
			out.equal++
		default:
			out.all = append(out.all, figureDiff{f, old, verdict(f, old)})
		}
	}
	for _, f := range tablesOf(base) {
		if _, gone := was[f.key()]; gone {
			out.all = append(out.all, figureDiff{figure{f.table, f.row, f.column, "(none)"}, f.text, "changed"})
		}
	}
	return out
}

// verdict says whether a figure became better.
func verdict(f figure, old string) string {
	was, err1 := strconv.ParseFloat(leading.FindString(old), 64)
	is, err2 := strconv.ParseFloat(leading.FindString(f.text), 64)
	if err1 != nil || err2 != nil || was == is {
		return "changed"
	}
	names := []string{f.column, f.row, f.table}
	if f.column == "" || f.column == "got" {
		names = names[1:]
	}
	for _, name := range names {
		for _, d := range directions {
			if !d.name.MatchString(name) {
				continue
			}
			switch {
			case d.up == 0:
				return "changed"
			case (is > was) == (d.up > 0):
				return "better"
			}
			return "worse"
		}
	}
	return "changed"
}
