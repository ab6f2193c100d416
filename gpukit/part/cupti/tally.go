// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/stats"
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

// few joins the first texts of a list, and adds how many are left.
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
	difference   float64 // relative
	// spread is how much equal windows differ, relative, whoever records them.
	spread float64
	worst  kindTimes // the one with the worst verdict, and closest to its limit or furthest beyond it
	kinds  verdict   // the worst of all
}

// kindTimes compares one kind.
type kindTimes struct {
	name       string
	difference float64 // relative
	stamps     float64 // relative: how coarse stamps are beside the kernels
	spread     float64 // relative: of equal windows
}

const (
	worstShare = 0.02
	maxTimes   = 0.01
	// stampStep is the step of the device's stamps, ns: a time may be off by one.
	stampStep = 32
)

// verdict reports how a difference lies to its limit.
type verdict int

const (
	within verdict = iota
	vague          // equal windows differ by as much
	beyond
)

// limit is how far a kind may be off.
func (k kindTimes) limit() float64 { return maxTimes + k.stamps }

func (k kindTimes) judge() verdict {
	switch d := math.Abs(k.difference); {
	case d > k.limit()+k.spread:
		return beyond
	case d > k.limit():
		return vague
	}
	return within
}

// worse reports whether a kind has a worse verdict than another, or is closer to its limit.
func (k kindTimes) worse(than kindTimes) bool {
	return cmp.Or(cmp.Compare(k.judge(), than.judge()), cmp.Compare(math.Abs(k.difference)/k.limit(), math.Abs(than.difference)/than.limit())) > 0
}

func (k kindTimes) describe() string {
	if k.name == "" {
		return "none"
	}
	return fmt.Sprintf("%s, %+.2f %%, limit %.2f %% (%.0f, stamps of %d ns %.2f), spread of equal windows %.2f %%",
		k.name, 100*k.difference, 100*k.limit(), 100*maxTimes, stampStep, 100*k.stamps, 100*k.spread)
}

// compareTimes takes for the spread of equal windows that of the reference's. Ours may
// show an error of ours, so that it counts only as far as others confirm it.
func compareTimes(ours, theirs []tally, confirmed float64) times {
	t := times{ours: stats.MedianOf(totals(ours)), theirs: stats.MedianOf(totals(theirs))}
	if t.theirs == 0 {
		return t
	}
	t.difference = t.ours/t.theirs - 1
	t.spread = max(spreadOf(totals(theirs)), confirmed)
	for _, name := range slices.Sorted(maps.Keys(theirs[0])) {
		of := func(w tally) float64 { return float64(w[name].ns) }
		reference := each(theirs, of)
		a, b := stats.MedianOf(each(ours, of)), stats.MedianOf(reference)
		if b < worstShare*t.theirs || b == 0 {
			continue
		}
		k := kindTimes{name: name, difference: a/b - 1, stamps: stampStep * float64(theirs[0][name].count) / b, spread: max(spreadOf(reference), confirmed)}
		if t.worst.name == "" || k.worse(t.worst) {
			t.worst = k
		}
		t.kinds = max(t.kinds, k.judge())
	}
	return t
}

// judge returns the worst verdict, on all together and on each kind.
func (t times) judge() verdict {
	all := within
	if d := math.Abs(t.difference); d > maxTimes {
		all = beyond
		if t.spread >= d {
			all = vague
		}
	}
	return max(all, t.kinds)
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
