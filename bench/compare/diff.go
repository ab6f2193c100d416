// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// change is a line that only one side has: base (-) or head (+).
type change struct {
	sign byte
	at   int // its line in that side, from 1
	text string
}

// maxEdits bounds the search for the shortest list of changes: beyond it, what is between the
// common head and tail counts as replaced.
const maxEdits = 1500

// changes lists what turns base into head, by lines.
func changes(base, head string) []change {
	a, b := strings.Split(base, "\n"), strings.Split(head, "\n")
	first := 0
	for first < len(a) && first < len(b) && a[first] == b[first] {
		first++
	}
	endA, endB := len(a), len(b)
	for endA > first && endB > first && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
	}
	return script(a[first:endA], b[first:endB], first+1)
}

// script is Myers' shortest edit script.
func script(a, b []string, line int) []change {
	n, m := len(a), len(b)
	limit := min(n+m, maxEdits)
	v := make([]int, 2*limit+3)
	at := func(k int) *int { return &v[k+limit+1] }
	var trace [][]int
	for d := 0; d <= limit; d++ {
		trace = append(trace, append([]int(nil), v[limit+1-d:limit+2+d]...))
		for k := -d; k <= d; k += 2 {
			var x int
			if k == -d || k != d && *at(k - 1) < *at(k + 1) {
				x = *at(k + 1)
			} else {
				x = *at(k - 1) + 1
			}
			y := x - k
			for x < n && y < m && a[x] == b[y] {
				x, y = x+1, y+1
			}
			*at(k) = x
			if x >= n && y >= m {
				return backtrack(a, b, trace, line)
			}
		}
	}
	var out []change
	for i, t := range a {
		out = append(out, change{'-', line + i, t})
	}
	for i, t := range b {
		out = append(out, change{'+', line + i, t})
	}
	return out
}

// backtrack walks the edits from the end. trace[d] holds the furthest lines before d edits, for
// the diagonals from -d to d.
func backtrack(a, b []string, trace [][]int, line int) []change {
	var out []change
	x, y := len(a), len(b)
	for d := len(trace) - 1; d > 0; d-- {
		v := trace[d]
		at := func(k int) int { return v[k+d] }
		k := x - y
		down := k == -d || k != d && at(k-1) < at(k+1)
		before := k - 1
		if down {
			before = k + 1
		}
		px := at(before)
		py := px - before
		if down {
			out = append(out, change{'+', line + py, b[py]})
		} else {
			out = append(out, change{'-', line + px, a[px]})
		}
		x, y = px, py
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// texts returns the lines with their signs.
func texts(all []change) []string {
	out := make([]string, len(all))
	for i, c := range all {
		out[i] = string(c.sign) + c.text
	}
	return out
}

// excerpt returns at most so many of the changes, in the manner of a unified diff.
func excerpt(all []change, lines int) string {
	var b strings.Builder
	last := -2
	for i, c := range all {
		if i == lines {
			fmt.Fprintf(&b, "  and %d more changed lines\n", len(all)-i)
			break
		}
		if c.at > last+1 || c.at < last {
			fmt.Fprintf(&b, "  @@ line %d @@\n", c.at)
		}
		last = c.at
		fmt.Fprintf(&b, "  %c%s\n", c.sign, cut(c.text, counterpart(all, i)))
	}
	return b.String()
}

// counterpart returns the line of the other side in the place of change i; "" where there is none.
func counterpart(all []change, i int) string {
	for _, c := range all {
		if c.sign != all[i].sign && c.at == all[i].at {
			return c.text
		}
	}
	return ""
}

// cut shortens a long line to what is around its first difference from another.
func cut(text, other string) string {
	const width, before = 200, 60
	a, b := []rune(text), []rune(other)
	if len(a) <= width {
		return text
	}
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	from := 0
	if len(b) > 0 {
		from = max(0, min(same-before, len(a)-width))
	}
	to := min(len(a), from+width)
	head, tail := "", ""
	if from > 0 {
		head = "..."
	}
	if to < len(a) {
		tail = "..."
	}
	return head + string(a[from:to]) + tail
}
