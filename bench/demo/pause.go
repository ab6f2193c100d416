// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/lockstep-otel/lockstep/internal/ring"
)

// span is one reading of all rings, MONOTONIC_RAW ns.
type span struct{ from, to uint64 }

// pause measures what the training thread of each rank feels as workers become
// more: the time that it spends in the plugin in each step, and whether the
// steps in which the rings were read were longer than the others.
func pause(ctx context.Context, f *flag.FlagSet, args []string, w io.Writer) error {
	bin := f.String("bin", "bin", "folder of the worker and the plugin")
	in := f.String("rings", tmpfs(), "where to make the rings")
	steps := f.Int("steps", 400, "steps of a run")
	level := f.String("level", "all", "detail of the events")
	every := f.Duration("every", 200*time.Millisecond, "between two readings of the rings")
	if err := f.Parse(args); err != nil {
		return err
	}
	fmt.Fprintf(w, "The training thread at level %s, rings read every %v; all ranks and %d steps together.\n\n", *level, *every, *steps)
	fmt.Fprintf(w, "%7s  %-38s  %-34s  %s\n", "", "in the plugin, per step", "median step", "")
	fmt.Fprintf(w, "%7s  %12s %12s %12s  %12s %12s  %12s\n", "workers", "p50", "p99", "max", "not read", "read", "reading took")
	for _, n := range []int{1, 2, 4, 8} {
		j := job{bin: *bin, in: *in, ranks: n, steps: *steps, level: *level, pace: true, times: true, clocks: true}
		var spans []span
		results, err := j.run(ctx, func(ctx context.Context, rings string) { spans = readRings(ctx, rings, *every) })
		if err != nil {
			return err
		}
		printPause(w, n, results, spans, uint64(*every)/2)
	}
	return nil
}

// readRings reads all rings again and again, as a receiver does.
func readRings(ctx context.Context, dir string, every time.Duration) (spans []span) {
	open := map[string]*ring.Ring{}
	defer func() {
		for _, r := range open {
			_ = r.Close()
		}
	}()
	for ctx.Err() == nil {
		paths, _ := ring.Discover(dir, ring.Options{})
		for _, p := range paths {
			if open[p] == nil {
				if r, err := ring.Open(p, ring.Options{}); err == nil {
					open[p] = r
				}
			}
		}
		s := span{from: ring.Now()}
		for _, r := range open {
			r.Poll(ring.LevelAll, func(int, *ring.Record) {})
		}
		s.to = ring.Now()
		spans = append(spans, s)
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
	}
	return spans
}

// warmUp steps come before all ranks run evenly.
const warmUp = 5

// A long step is more likely to be one in which the rings are read. So the steps
// that it is compared with are those at the same instants half a period later.
func printPause(w io.Writer, n int, results []result, spans []span, half uint64) {
	var in, with, without, reading []float64
	var between []span
	for _, s := range spans {
		between = append(between, span{s.from + half, s.to + half})
		reading = append(reading, float64(s.to-s.from)/1e3)
	}
	for i := range results {
		for _, s := range results[i].steps[min(warmUp, len(results[i].steps)):] {
			in = append(in, float64(s.callbacks)/1e3)
			if overlaps(spans, s) {
				with = append(with, float64(s.took)/1e6)
			}
			if overlaps(between, s) {
				without = append(without, float64(s.took)/1e6)
			}
		}
	}
	fmt.Fprintf(w, "%7d  %9.2f µs %9.2f µs %9.2f µs  %9.3f ms %9.3f ms  %9.1f µs\n",
		n, quantile(in, 0.5), quantile(in, 0.99), quantile(in, 1), quantile(without, 0.5), quantile(with, 0.5), quantile(reading, 0.5))
}

func overlaps(spans []span, s stepTime) bool {
	for _, r := range spans {
		if r.from < s.start+s.took && s.start < r.to {
			return true
		}
	}
	return false
}
