// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/gpukit/stats"
)

// ran is what a device ran of one kind in a window.
type ran struct {
	count int
	ns    uint64
}

// tally is what a device ran in a window, by the kind's name.
type tally map[string]ran

func (t tally) add(name string, ns uint64) {
	r := t[name]
	r.count++
	r.ns += ns
	t[name] = r
}

// take removes the sentinels and returns how many there were.
func (t tally) take() int {
	n := 0
	for name, r := range t {
		if isSentinel(name) {
			n += r.count
			delete(t, name)
		}
	}
	return n
}

// sums returns kernels, copies, sets and the time of all, ns.
func (t tally) sums() (kernels, copies, sets int, ns uint64) {
	for name, r := range t {
		ns += r.ns
		switch name {
		case copyName:
			copies += r.count
		case setName:
			sets += r.count
		default:
			kernels += r.count
		}
	}
	return kernels, copies, sets, ns
}

// differentCounts returns, by name, how the counts of two windows differ.
func differentCounts(ours, theirs tally) []string {
	var out []string
	names := slices.Collect(maps.Keys(ours))
	for name := range theirs {
		if _, ok := ours[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if a, b := ours[name].count, theirs[name].count; a != b {
			out = append(out, fmt.Sprintf("%s %d, torch.profiler %d", name, a, b))
		}
	}
	return out
}

// few joins the first texts of a list, and says how many are left.
func few(texts []string) string {
	const most = 3
	if len(texts) <= most {
		return strings.Join(texts, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(texts[:most], "; "), len(texts)-most)
}

// times compares the device times of two recorders over windows of equal work.
type times struct {
	ours, theirs float64 // ns of a window, the median
	// difference and worst are relative; worst is of a kind with a share of at least
	// worstShare, spread that of windows of the same recorder.
	difference, worst, spread float64
	kind                      string
}

const (
	worstShare = 0.02
	maxTimes   = 0.01
)

func compareTimes(ours, theirs []tally) times {
	t := times{ours: stats.Median(totals(ours)), theirs: stats.Median(totals(theirs))}
	if t.theirs == 0 {
		return t
	}
	t.difference = t.ours/t.theirs - 1
	t.spread = max(spreadOf(totals(ours)), spreadOf(totals(theirs)))
	for name := range theirs[0] {
		of := func(w tally) float64 { return float64(w[name].ns) }
		a, b := stats.Median(each(ours, of)), stats.Median(each(theirs, of))
		if b < worstShare*t.theirs || b == 0 {
			continue
		}
		if d := a/b - 1; t.kind == "" || cmp.Compare(math.Abs(d), math.Abs(t.worst)) > 0 {
			t.kind, t.worst = name, d
		}
	}
	return t
}

func totals(windows []tally) []float64 {
	return each(windows, func(w tally) float64 {
		_, _, _, ns := w.sums()
		return float64(ns)
	})
}

func each(windows []tally, fn func(tally) float64) []float64 {
	out := make([]float64, len(windows))
	for i, w := range windows {
		out[i] = fn(w)
	}
	return out
}

// spreadOf is how far the largest value lies above the smallest, relative.
func spreadOf(values []float64) float64 {
	if len(values) < 2 || slices.Min(values) == 0 {
		return 0
	}
	return slices.Max(values)/slices.Min(values) - 1
}
