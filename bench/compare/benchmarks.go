// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// benchmarked are the packages whose benchmarks are compared: those that every operation,
// state or finding passes.
var benchmarked = []string{
	"internal/straggler", "internal/straggler/judge", "internal/straggler/blame", "internal/ks", "internal/ckpt", "internal/desync", "internal/desync/watch",
	"internal/epoch", "internal/epoch/watch", "internal/epoch/replica", "internal/epoch/resume", "internal/epoch/bilateral", "internal/incident", "internal/timeline",
	"internal/clock/graph", "internal/clock/pair", "internal/otelmap", "internal/rankstate", "internal/flightrecorder", "internal/fleet/watch", "internal/bounded",
	"connector/stragglerconnector", "connector/desyncconnector", "processor/clockskewprocessor",
}

// slower is from which ratio a benchmark is marked.
const slower = 1.05

// times are a benchmark's ns per operation, in the order of the runs.
type times map[string][]float64

// benchmark runs the benchmarks of both revisions in turns, base head head base, so that a
// machine that becomes slower is slow for both.
func benchmark(ctx context.Context, o *options, base, head *revision, stdout, stderr io.Writer) error {
	fmt.Fprintf(stdout, "\n%-52s %5s %14s %14s %7s  %s\n", "benchmark", "runs", "base ns/op", "head ns/op", "ratio", "spread of base, head")
	marked := 0
	for _, pkg := range o.benchmarked(base, head, stdout) {
		fmt.Fprintf(stderr, "benchmarks of %s\n", pkg)
		all := map[string]times{base.name: {}, head.name: {}}
		if err := buildBenchmarks(ctx, pkg, base, head); err != nil {
			return err
		}
		for n := range o.runs {
			order := []*revision{base, head}
			if n%2 == 1 {
				order = []*revision{head, base}
			}
			for _, r := range order {
				// A failed benchmark of the base is no reason to stop.
				text, err := r.runBenchmarks(ctx, pkg, o.benchmarks, o.benchtime)
				if err != nil {
					if ctx.Err() != nil {
						return ctx.Err()
					}
					fmt.Fprintf(stdout, "failed: %s of %s: %v\n", pkg, r.name, err)
				}
				all[r.name].add(text)
			}
		}
		marked += report(stdout, pkg, all[base.name], all[head.name])
	}
	fmt.Fprintf(stdout, "\n%d of a ratio above %.2f\n", marked, slower)
	return nil
}

// benchmarked are the packages that both revisions have and -packages names.
func (o *options) benchmarked(base, head *revision, stdout io.Writer) (list []string) {
	for _, pkg := range benchmarked {
		if !o.packages.MatchString(pkg) {
			continue
		}
		if missing := without(pkg, head, base); missing != nil {
			fmt.Fprintf(stdout, "skipped: %s is not in the %s\n", pkg, missing.name)
			continue
		}
		list = append(list, pkg)
	}
	return list
}

// without is the first revision that has no such package.
func without(pkg string, of ...*revision) *revision {
	for _, r := range of {
		if _, err := os.Stat(filepath.Join(r.tree, pkg)); err != nil {
			return r
		}
	}
	return nil
}

func buildBenchmarks(ctx context.Context, pkg string, of ...*revision) error {
	for _, r := range of {
		if err := errors.Join(os.MkdirAll(r.out, 0o750), r.goTool(ctx, "test", "-c", "-trimpath", "-o", r.benchProgram(pkg), "./"+pkg)); err != nil {
			return fmt.Errorf("build benchmarks of %s: %w", r.name, err)
		}
	}
	return nil
}

// benchEnv gives a benchmark one processor, so that goroutines run in the same order each time.
func (r *revision) benchEnv() []string { return append(r.env[:len(r.env):len(r.env)], "GOMAXPROCS=1") }

func (r *revision) runBenchmarks(ctx context.Context, pkg, which, benchtime string) (string, error) {
	return output(ctx, filepath.Join(r.tree, pkg), r.benchEnv(), r.benchProgram(pkg),
		"-test.run", "^$", "-test.bench", which, "-test.benchtime", benchtime, "-test.timeout", "10m")
}

// label names a benchmark in the table.
func label(pkg, name string) string {
	return strings.TrimPrefix(pkg, "internal/") + " " + strings.TrimPrefix(name, "Benchmark")
}

func (r *revision) benchProgram(pkg string) string {
	return r.program(strings.ReplaceAll(pkg, "/", "_") + ".test")
}

var benchLine = regexp.MustCompile(`(?m)^(Benchmark\S+)\s+\d+\s+([\d.]+) ns/op`)

func (t times) add(text string) {
	for _, m := range benchLine.FindAllStringSubmatch(text, -1) {
		if v, err := strconv.ParseFloat(m[2], 64); err == nil {
			t[m[1]] = append(t[m[1]], v)
		}
	}
}

// report prints a line for each benchmark and returns how many it marked.
func report(w io.Writer, pkg string, base, head times) (marked int) {
	for _, name := range slices.Sorted(maps.Keys(head)) {
		is, was := head[name], base[name]
		at := label(pkg, name)
		if len(was) == 0 {
			fmt.Fprintf(w, "%-52s %5d %14s %14.0f %7s  only in the head\n", at, len(is), "-", middle(is), "-")
			continue
		}
		ratio, mark := middle(is)/middle(was), ""
		if ratio > slower {
			marked++
			mark = "  slower"
		}
		fmt.Fprintf(w, "%-52s %5d %14.0f %14.0f %7.3f  %.0f %%, %.0f %%%s\n", at, len(is), middle(was), middle(is), ratio, spread(was), spread(is), mark)
	}
	for _, name := range slices.Sorted(maps.Keys(base)) {
		if len(head[name]) == 0 {
			fmt.Fprintf(w, "%-52s only in the base\n", label(pkg, name))
		}
	}
	return marked
}

// middle returns the median.
func middle(all []float64) float64 {
	s := slices.Sorted(slices.Values(all))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// spread returns how far the fastest and the slowest run are apart, in percent of the median.
func spread(all []float64) float64 {
	return 100 * (slices.Max(all) - slices.Min(all)) / middle(all)
}
