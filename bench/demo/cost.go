// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
)

// variant is one way to run the job.
type variant struct {
	name  string
	level string // of our plugin
	empty int    // mask of one that does nothing
}

// variants; the first is what the others are compared with. A job pays for being
// profiled twice: NCCL, here the worker, gathers the events and has a thread that
// polls the device's stamps; and the plugin takes them. The empty plugin asks for
// the same events as ours at the level that it is named for, so that the
// difference of the two is ours.
var variants = []variant{
	{name: "absent"},
	{name: "empty, as summary", empty: 1<<1 | 1<<2 | 1<<3 | 1<<6},
	{name: "summary", level: "summary"},
	{name: "empty, as collectives", empty: 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<6},
	{name: "collectives", level: "collectives"},
	{name: "empty, as all", empty: 0xffff},
	{name: "all", level: "all"},
}

// cost measures the iteration time of a job without padding: nothing but its
// maths, its transfers and the plugin. Each round runs every variant once, in a
// new order, so that a machine that gets slower does so for all.
func cost(ctx context.Context, f *flag.FlagSet, args []string, w io.Writer) error {
	bin := f.String("bin", "bin", "folder of the worker and the plugins")
	in := f.String("rings", tmpfs(), "where to make the rings")
	rounds := f.Int("rounds", 20, "runs of each variant")
	ranks := f.Int("ranks", 2, "ranks")
	steps := f.Int("steps", 400, "steps of a run")
	pace := f.Bool("pace", false, "pad kernels to nominal device time; leaves the empty plugin out")
	poll := f.Int("poll-us", 1000, "pause of the worker's profiler thread between looks")
	if err := f.Parse(args); err != nil {
		return err
	}
	variants := variants
	if *pace {
		variants = slices.DeleteFunc(slices.Clone(variants), func(v variant) bool { return v.empty != 0 })
	}
	rng := rand.New(rand.NewPCG(1, 2)) // the order and the interval, the same in every call
	p50, cpu := make([][]float64, len(variants)), make([][]float64, len(variants))
	for range *rounds {
		for _, i := range rng.Perm(len(variants)) {
			j := job{bin: *bin, in: *in, ranks: *ranks, steps: *steps, pace: *pace, poll: *poll, level: variants[i].level, empty: variants[i].empty}
			results, err := j.run(ctx, nil)
			if err != nil {
				return err
			}
			p50[i] = append(p50[i], 1000*results[0].Iteration.P50)
			cpu[i] = append(cpu[i], cpuOf(results)/float64(*steps))
		}
	}
	fmt.Fprintf(w, "%d ranks, padded: %t; %d rounds of one run of %d steps each, in turns. Differences are means of\n"+
		"paired ones, with their 95 %% interval by bootstrap over rounds.\n", *ranks, *pace, *rounds, *steps)
	printCost(w, "iteration", variants, p50, rng)
	printCost(w, "CPU per rank and step", variants, cpu, rng)
	return nil
}

// cpuOf returns the mean CPU time of a rank, µs.
func cpuOf(results []result) float64 {
	var all []float64
	for i := range results {
		all = append(all, float64(results[i].cpu.Nanoseconds())/1e3)
	}
	return mean(all)
}

// printCost prints a table of values in µs.
func printCost(w io.Writer, name string, variants []variant, values [][]float64, rng *rand.Rand) {
	fmt.Fprintf(w, "\n%-24s %12s  %-40s %-40s\n", name, "", "more than absent", "more than empty")
	for i, v := range variants {
		fmt.Fprintf(w, "%-24s %9.1f µs", v.name, mean(values[i]))
		if i > 0 {
			printDifference(w, values[0], values[i], rng)
		}
		if i > 0 && variants[i-1].empty != 0 {
			printDifference(w, values[i-1], values[i], rng)
		}
		fmt.Fprintln(w)
	}
}

func printDifference(w io.Writer, base, values []float64, rng *rand.Rand) {
	var share, micros []float64
	for i, v := range values {
		share = append(share, 100*(v/base[i]-1))
		micros = append(micros, v-base[i])
	}
	low, high := interval(share, rng)
	fmt.Fprintf(w, "  %-40s", fmt.Sprintf("%+.2f %% (%+.2f to %+.2f), %+.0f µs", mean(share), low, high, mean(micros)))
}
