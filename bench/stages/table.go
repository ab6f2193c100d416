// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"text/tabwriter"
	"time"
)

// part is who works on a span.
type part int

const (
	agent     part = iota // the exporter of agents
	gateway               // stage one
	concluder             // stage two
	brokers
	parts
)

var partNames = [parts]string{"agents' exporter", "stage one", "stage two", "broker"}

// row is what was measured of one size.
type row struct {
	ranks, steps, spans int
	wall                time.Duration
	cpu                 [parts]float64 // ns a span
	peak                [parts]int64   // bytes of memory at most; of the broker over all sizes so far
	alone               float64        // ns a span of a gateway without Kafka
	first, second       float64        // bytes of a span on the broker's disk, in the topics of each stage
}

// stages is what both stages took of a span, ns.
func (r *row) stages() float64 { return r.cpu[gateway] + r.cpu[concluder] }

// render prints the tables.
func render(w io.Writer, layout string, rows []row) {
	fmt.Fprintf(w, "%d cores, %s %s/%s; layout %s\n\nµs of CPU a span\n", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, layout)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "ranks\tsteps\tspans\t")
	for _, name := range partNames {
		fmt.Fprintf(tw, "%s\t", name)
	}
	fmt.Fprint(tw, "both stages\tover the first\tone gateway\tB/span operations\tB/span jobs\tKiB/rank stage one\tKiB/rank stage two\ts\t\n")
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(tw, "%d\t%d\t%d\t", r.ranks, r.steps, r.spans)
		for _, ns := range r.cpu {
			fmt.Fprintf(tw, "%.2f\t", ns/1000)
		}
		kib := func(p part) float64 { return float64(r.peak[p]) / 1024 / float64(r.ranks) }
		fmt.Fprintf(tw, "%.2f\t%.2f\t%.2f\t%.1f\t%.1f\t%.0f\t%.0f\t%.0f\t\n", r.stages()/1000, r.stages()/rows[0].stages(), r.alone/1000, r.first, r.second, kib(gateway), kib(concluder), r.wall.Seconds())
	}
	_ = tw.Flush() // as all writes to w
	fmt.Fprintln(w)
	if len(rows) < 2 {
		return // which show no slope
	}
	for _, s := range slopes {
		fmt.Fprintf(w, "%s: largest over least %.2f, cost grows as ranks to the power of %+.3f\n", s.name, spread(rows, s.of), slope(rows, s.of))
	}
	plans(w, rows)
}

// slopes are what is followed over sizes.
var slopes = []struct {
	name string
	of   func(*row) float64
}{
	{"stage one", func(r *row) float64 { return r.cpu[gateway] }},
	{"stage two", func(r *row) float64 { return r.cpu[concluder] }},
	{"both stages", (*row).stages},
	{"one gateway", func(r *row) float64 { return r.alone }},
}

// spread returns the largest over the least of something.
func spread(rows []row, of func(*row) float64) float64 {
	least, most := math.Inf(1), 0.0
	for i := range rows {
		least, most = min(least, of(&rows[i])), max(most, of(&rows[i]))
	}
	return most / least
}

// slope returns the power of the ranks with which something grows: least squares over logarithms.
func slope(rows []row, of func(*row) float64) float64 {
	var n, sx, sy, sxx, sxy float64
	for i := range rows {
		x, y := math.Log(float64(rows[i].ranks)), math.Log(of(&rows[i]))
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
