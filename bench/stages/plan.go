// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
)

// load is a job that is planned for.
type load struct {
	ranks int
	rate  float64 // spans of a rank in a second
}

// loads are collectives alone, and with kernels.
var loads = []load{{16_384, 10}, {16_384, 1000}, {100_000, 1}, {100_000, 10}, {100_000, 1000}}

const (
	replicas    = 3
	retention   = 24 * 3600 // s
	utilisation = 0.7       // of a core that is planned with
)

// plan is what a load takes.
type plan struct {
	load
	spans                         float64        // a second
	cores                         [parts]float64 // brokers: of one copy, followers not counted
	in                            float64        // bytes a second that writers send, both topics
	disk                          float64        // bytes on all brokers
	memory                        float64        // bytes of the concluder
	fits                          bool           // the concluder's core has room
	gateways, partitions, brokers int
}

// planOf computes a plan from the largest job that was measured. Cost of a larger job grows as it did in the rows,
// and does not fall.
func planOf(rows []row, l load) (p plan) {
	last := &rows[len(rows)-1]
	grown := func(of func(*row) float64) float64 {
		return of(last) * math.Pow(max(1, float64(l.ranks)/float64(last.ranks)), max(0, slope(rows, of)))
	}
	p.load, p.spans = l, float64(l.ranks)*l.rate
	for part := range p.cores {
		p.cores[part] = p.spans * grown(func(r *row) float64 { return r.cpu[part] }) / 1e9
	}
	p.in = p.spans * (last.first + last.second)
	p.disk = p.in * replicas * retention
	p.memory = float64(last.peak[concluder]) / float64(last.ranks) * float64(l.ranks)
	p.fits = p.cores[concluder] <= 1
	p.gateways = int(math.Ceil(p.cores[gateway] / utilisation))
	// Each gateway gets several, and a number that leaves room to add gateways.
	p.partitions = max(16, 4*p.gateways)
	p.brokers = max(replicas, int(math.Ceil(p.cores[brokers]*replicas/utilisation/coresOfBroker)))
	return p
}

// coresOfBroker is what a broker's host has.
const coresOfBroker = 8

// plans prints what jobs take that were not run.
func plans(w io.Writer, rows []row) {
	last := &rows[len(rows)-1]
	fmt.Fprintf(w, "\nPlan, computed from the costs at %d ranks; %d replicas, a day of retention, cores used to %.0f %%, brokers of %d cores\n", last.ranks, replicas, 100*utilisation, coresOfBroker)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "GPUs\tspans/s of a rank\tspans/s\texporters, cores\tstage one, cores\tgateways of a core\tpartitions\tconcluder, cores\tconcluder, GiB\tMB/s into Kafka\tTB on disks\tbrokers\t")
	for _, l := range loads {
		p := planOf(rows, l)
		cores := fmt.Sprintf("%.2f", p.cores[concluder])
		if !p.fits {
			cores += ": does not fit"
		}
		fmt.Fprintf(tw, "%d\t%.0f\t%.3g\t%.1f\t%.1f\t%d\t%d\t%s\t%.1f\t%.1f\t%.1f\t%d\t\n", l.ranks, l.rate, p.spans, p.cores[agent], p.cores[gateway], p.gateways, p.partitions,
			cores, p.memory/(1<<30), p.in/1e6, p.disk/1e12, p.brokers)
	}
	_ = tw.Flush() // as all writes to w
	fmt.Fprintf(w, "\nOf one job of %d ranks, a core carries %.0f spans a second as a concluder, and %.0f as the only gateway.\n", last.ranks, 1e9/last.cpu[concluder], 1e9/last.alone)
}
