// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lockstep-otel/lockstep/bench/internal/recording"
)

// row is what was measured of one size.
type row struct {
	ranks, steps int
	opsPerStep   int // of a rank
	// stages are ns per span of each stage, in the order of columns; sum is all of them, and total what
	// the whole pipeline took in a run of its own. mapping is part of both connectors.
	stages     [len(columns)]float64
	mapping    float64
	sum, total float64
	heap       float64 // bytes a rank
	raw, zstd  float64 // bytes a span
	limits     map[string]int64
}

// columns are the stages as the tables name them.
var columns = [...]string{"decode", "clock_skew", "straggler", "desync", "step trace"}

func newRow(r *recording.Recording, whole, staged *measure) *row {
	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(r.Spans) }
	t := &staged.times
	out := &row{
		ranks: r.Ranks, steps: r.Steps, opsPerStep: r.Spans / r.Steps / r.Ranks, total: per(whole.total),
		heap: float64(whole.heap) / float64(r.Ranks),
		raw:  float64(r.Raw) / float64(r.Spans), zstd: float64(r.Packed) / float64(r.Spans),
		limits: map[string]int64{},
	}
	out.mapping = per(t[mapping])
	out.stages = [...]float64{per(t[decode]), per(t[skew]), per(t[straggle] - t[stepTrace]), per(t[desync]), per(t[stepTrace])}
	for _, ns := range out.stages {
		out.sum += ns
	}
	for name := range limits {
		if n := whole.counters[name]; n > 0 {
			out.limits[name] = n
		}
	}
	return out
}

// relativeTo is the size that the cost of others is compared with.
const relativeTo = 64

// render prints the tables.
func render(w io.Writer, rows []row) {
	base := math.NaN()
	if i := slices.IndexFunc(rows, func(r row) bool { return r.ranks == relativeTo }); i >= 0 {
		base = rows[i].total
	}
	fmt.Fprintln(w, "1,000 spans a second and core")
	perSecond := func(ns float64) string { return fmt.Sprintf("%.0f", 1e6/ns) }
	table(w, rows, perSecond, "cost to 64", func(r *row) string { return ratio(r.total, base) })
	fmt.Fprintln(w, "\nns of a core a span")
	table(w, rows, func(ns float64) string { return fmt.Sprintf("%.0f", ns) }, "total/sum", func(r *row) string { return ratio(r.total, r.sum) })
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "ranks\tsteps\tspans/rank and step\theap KiB/rank\tB/span\tB/span zstd\t")
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(tw, "%d\t%d\t%d\t%.0f\t%.0f\t%.1f\t\n", r.ranks, r.steps, r.opsPerStep, r.heap/1024, r.raw, r.zstd)
	}
	_ = tw.Flush() // as all writes to w
	fmt.Fprintf(w, "\nA gateway of one core carries, at so many spans a rank and second: %s\n", carriedLine(rows))
	for i := range rows {
		for _, name := range slices.Sorted(maps.Keys(rows[i].limits)) {
			fmt.Fprintf(w, "%d ranks: %d %s (%s)\n", rows[i].ranks, rows[i].limits[name], limits[name], name)
		}
	}
}

func table(w io.Writer, rows []row, show func(ns float64) string, last string, of func(*row) string) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "ranks\t%s\tsum\ttotal\t%s\tmapping once\t\n", strings.Join(columns[:], "\t"), last)
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(tw, "%d\t", r.ranks)
		for _, ns := range r.stages {
			fmt.Fprintf(tw, "%s\t", show(ns))
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t\n", show(r.sum), show(r.total), of(r), show(r.mapping))
	}
	_ = tw.Flush() // as all writes to w
}

func ratio(of, to float64) string {
	if math.IsNaN(of / to) {
		return "-"
	}
	return fmt.Sprintf("%.2f", of/to)
}

// rates are spans of a rank in a second.
var rates = []float64{10, 100, 1000, 10_000}

// carried returns how many ranks of one job a core carries at a rate. A span of a job costs at most what
// it costs in the next larger size that was measured.
func carried(rows []row, rate float64) (ranks int) {
	for i := range rows {
		ranks = max(ranks, min(rows[i].ranks, int(1e9/rows[i].total/rate)))
	}
	return ranks
}

func carriedLine(rows []row) string {
	var out []string
	for _, rate := range rates {
		n, more := carried(rows, rate), ""
		if n == rows[len(rows)-1].ranks {
			more = " or more"
		}
		out = append(out, fmt.Sprintf("%.0f: %d ranks%s", rate, n, more))
	}
	return strings.Join(out, "; ")
}

// machine describes what the figures were taken on.
func machine() string {
	return fmt.Sprintf("%s, %d cores, %s %s/%s", cpu(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func cpu() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown CPU"
}
