// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "skew:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("skew", flag.ContinueOnError)
	runs := f.Int("runs", 5, "rounds of the costs")
	cfg := usual
	f.Uint64Var(&cfg.seed, "seed", cfg.seed, "of the world")
	f.IntVar(&cfg.hosts, "hosts", cfg.hosts, "hosts, each with a service and a clock")
	f.IntVar(&cfg.traces, "traces", cfg.traces, "traces")
	seconds := f.Int("seconds", int(cfg.duration/second), "over which they begin")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *runs < 1 || cfg.hosts < 2 || cfg.traces < 1 || *seconds < 1 {
		return fmt.Errorf("check flags: got %d runs, %d hosts, %d traces, %d seconds; want at least 1, 2 of hosts", *runs, cfg.hosts, cfg.traces, *seconds)
	}
	cfg.duration = int64(*seconds) * second
	w := newWorld(cfg)
	fmt.Fprintf(out, "%d spans of %d traces, %d hosts off by up to %d ms and %.0f ppm, %d s\n",
		len(w.events), cfg.traces, cfg.hosts, cfg.offset/ms, cfg.drift*1e6, *seconds)
	r, err := w.compare(ctx)
	if err != nil {
		return err
	}
	r.print(out)
	c, err := w.cost(ctx, *runs)
	if err != nil {
		return err
	}
	c.print(out)
	return goals(r)
}

// result is what each made of the world.
type result struct {
	raw, jaeger, ours placement
	verdicts          map[string]int64
	outside, bounded  int
}

func (w *world) compare(ctx context.Context) (result, error) {
	batches := w.batches()
	raw := w.errors(batches)
	theirs := w.whole()
	jaeger(theirs)
	o, err := newOurs(ctx)
	if err != nil {
		return result{}, err
	}
	if err := o.run(ctx, batches); err != nil {
		return result{}, err
	}
	v, err := o.verdicts()
	if err != nil {
		return result{}, err
	}
	off := w.errors(batches)
	r := result{raw: w.judge(raw, raw), jaeger: w.judge(w.errors(theirs), raw), ours: w.judge(off, raw), verdicts: v}
	r.outside, r.bounded = w.outside(batches, off)
	return r, o.close(ctx)
}

func (r *result) print(out io.Writer) {
	fmt.Fprintf(out, "\n%-12s %10s %10s %10s %10s %12s   %s\n", "error, µs", "mean", "p50", "p99", "max", "after 20 s", "async moved wrongly")
	for _, x := range []struct {
		name string
		p    placement
	}{{"as it came", r.raw}, {"Jaeger", r.jaeger}, {"clock_skew", r.ours}} {
		fmt.Fprintf(out, "%-12s %10.1f %10.1f %10.1f %10.1f %12.1f   %d of %d, %d after 20 s\n",
			x.name, x.p.mean, x.p.p50, x.p.p99, x.p.max, x.p.settled, x.p.moved, x.p.async, x.p.movedLate)
	}
	fmt.Fprintf(out, "Jaeger's mean error is %.1f times ours, %.0f times after 20 s (aim: 100)\n",
		r.jaeger.mean/r.ours.mean, r.jaeger.settled/r.ours.settled)
	fmt.Fprintf(out, "outside our bounds: %d of %d (goal: 0)\n", r.outside, r.bounded)
	fmt.Fprintf(out, "relations by verdict: %v (goal: 0 introduced)\n", r.verdicts)
}

// costs are medians.
type costs struct{ jaeger, ours, floor cost }

// cost is of a span: ns of processor time, and bytes allocated.
type cost struct{ time, bytes float64 }

func (w *world) cost(ctx context.Context, runs int) (costs, error) {
	batches, whole := w.batches(), w.whole()
	done := clone(batches)
	o, err := newOurs(ctx)
	if err == nil {
		err = o.run(ctx, done)
	}
	if err != nil {
		return costs{}, err
	}
	fs := floors(batches, done)
	if err := o.close(ctx); err != nil {
		return costs{}, err
	}
	var j, u, f []cost
	for range runs {
		j = append(j, w.timed(whole, jaeger))
		if o, err = newOurs(ctx); err != nil {
			return costs{}, err
		}
		u = append(u, w.timed(batches, func(b []ptrace.Traces) { err = o.run(ctx, b) }))
		if err == nil {
			err = o.close(ctx)
		}
		if err != nil {
			return costs{}, err
		}
		f = append(f, w.timed(batches, func(b []ptrace.Traces) { floor(b, fs) }))
	}
	return costs{median(j), median(u), median(f)}, nil
}

// timed returns what f takes of the processor for a copy of the spans. No garbage is
// collected meanwhile: when it is depends on what the benchmark itself keeps, and what
// it takes is in proportion to what is allocated.
func (w *world) timed(batches []ptrace.Traces, f func([]ptrace.Traces)) cost {
	b := clone(batches)
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := processorTime()
	f(b)
	took := processorTime() - begin
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(b)
	n := float64(len(w.events))
	return cost{float64(took) / n, float64(after.TotalAlloc-before.TotalAlloc) / n}
}

func processorTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // of a call that cannot fail
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func median(x []cost) cost {
	slices.SortFunc(x, func(a, b cost) int { return cmp.Compare(a.time, b.time) })
	return stats.MedianHigh(x)
}

func (c *costs) print(out io.Writer) {
	fmt.Fprintf(out, "\nprocessor time, ns per span: Jaeger %.0f, clock_skew %.0f, writing the same to pdata %.0f\n", c.jaeger.time, c.ours.time, c.floor.time)
	fmt.Fprintf(out, "allocated, bytes per span: Jaeger %.0f, clock_skew %.0f, writing the same to pdata %.0f\n", c.jaeger.bytes, c.ours.bytes, c.floor.bytes)
	fmt.Fprintf(out, "clock_skew takes %.1f times the floor (aim: 2)\n", c.ours.time/c.floor.time)
}

// goals are what must hold; aims are printed.
func goals(r result) error {
	var errs []error
	if r.ours.moved > 0 {
		errs = append(errs, fmt.Errorf("compare: clock_skew moved %d asynchronous spans wrongly; want 0", r.ours.moved))
	}
	if r.outside > 0 {
		errs = append(errs, fmt.Errorf("compare: %d spans are outside of their bounds; want 0", r.outside))
	}
	if n := r.verdicts[semconv.VerdictIntroduced]; n > 0 {
		errs = append(errs, fmt.Errorf("compare: clock_skew introduced %d violations; want 0", n))
	}
	return errors.Join(errs...)
}
