// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lockstep-otel/lockstep/bench/scoreboard/methods"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scoreboard:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// options are the flags.
type options struct {
	scenarios string
	cases     *regexp.Regexp
	scale     int
	seeds     int
	methods   []methods.About
	json      string
	quick     bool
	check     bool
	workers   int
	parts     []string
}

func parse(args []string, stderr io.Writer) (*options, error) {
	var o options
	var cases, list, parts string
	fs := flag.NewFlagSet("scoreboard", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.scenarios, "scenarios", "bench/scoreboard/scenarios.yaml", "the scenario `file`")
	fs.StringVar(&cases, "cases", "", "only cases whose name or family match this `regexp`")
	fs.IntVar(&o.scale, "scale", 0, "only jobs of at most so many `ranks`; 0: all")
	fs.IntVar(&o.seeds, "seeds", 0, "at most so many seeds of each case; 0: as many as the file says")
	fs.StringVar(&list, "methods", "", "only these methods, a `list` with commas")
	fs.StringVar(&parts, "parts", "faults,curve,witness,limit,growth", "what to run, a `list` with commas; and rate")
	fs.StringVar(&o.json, "json", "", "write one JSON object for each job and for each finding, one a line, into this `file`")
	fs.BoolVar(&o.quick, "quick", false, "a minute or two on two cores: each case once and at its smallest scale, no curves and no growth")
	fs.BoolVar(&o.check, "check", false, "exit with 1 where an aim is missed")
	fs.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "jobs side by side")
	if err := fs.Parse(args); err != nil {
		return nil, fmt.Errorf("parse flags: %w", err)
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("parse flags: got argument %q; want none", fs.Arg(0))
	}
	var err error
	if o.cases, err = regexp.Compile(cases); err != nil {
		return nil, fmt.Errorf("parse -cases: %w", err)
	}
	if o.methods, err = methods.Select(list); err != nil {
		return nil, err
	}
	o.parts = strings.Split(parts, ",")
	o.workers = max(1, o.workers)
	if o.quick {
		o.seeds, o.scale = 1, atMost(o.scale, quickRanks)
		o.parts = slices.DeleteFunc(o.parts, func(p string) bool { return p == partGrowth || p == partCurve })
	}
	return &o, nil
}

const (
	quickRanks = 64
	partGrowth = "growth"
)

// atMost returns limit where n is 0, that is, without a limit.
func atMost(n, limit int) int {
	if n == 0 {
		return limit
	}
	return min(n, limit)
}

func run(ctx context.Context, args []string, w, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(o.scenarios)
	if err != nil {
		return fmt.Errorf("read scenarios: %w", err)
	}
	tasks, growing, err := load(o)
	if err != nil {
		return err
	}
	hash := sha256.Sum256(text)
	fmt.Fprintf(w, "# Scoreboard\n\nscenarios %s\n  sha256 %s\nsimulator\n  sha256 %s\n", o.scenarios, hex.EncodeToString(hash[:]), training.SourceHash())
	fmt.Fprintf(w, "%s\n%s\n", scope(tasks), machine())
	begin, used := time.Now(), processorTime()
	progress, done, whole := 0, 0, rankSteps(tasks)
	all, err := runAll(ctx, tasks, o.methods, o.workers, func(t *task) {
		progress, done = progress+1, done+t.Ranks*t.Steps
		took := time.Since(begin)
		fmt.Fprintf(stderr, "\r%d of %d jobs, %s, about %s more  ", progress, len(tasks), took.Round(time.Second), left(took, done, whole).Round(time.Second))
	})
	fmt.Fprintln(stderr)
	if err != nil && ctx.Err() == nil {
		return err
	}
	if o.json != "" {
		if err := writeRaw(o.json, all); err != nil {
			return err
		}
	}
	misses := tables(w, all)
	if err != nil { // what is there is better than nothing
		return fmt.Errorf("run jobs: %d of %d were run: %w", progress, len(tasks), err)
	}
	for i := range o.methods {
		if o.methods[i].Name == methods.Lockstep {
			if err := grow(w, growing, &o.methods[i]); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(w, "\n%d jobs, %s on the clock, %s of processor time\n", len(tasks), time.Since(begin).Round(time.Second), (processorTime() - used).Round(time.Second))
	if o.check && misses > 0 {
		return fmt.Errorf("check aims: got %d missed; want none", misses)
	}
	return nil
}

// scope says what is run.
func scope(tasks []*task) string {
	seeds, least, most := 0, 0, 0
	cases := map[string]bool{}
	for _, t := range tasks {
		cases[t.Case] = true
		seeds, most = max(seeds, t.Number+1), max(most, t.Ranks)
		if least == 0 || t.Ranks < least {
			least = t.Ranks
		}
	}
	return fmt.Sprintf("%d jobs of %d cases, %d to %d ranks, up to %d seeds of each, %d rank-steps", len(tasks), len(cases), least, most, seeds, rankSteps(tasks))
}

// rankSteps counts those of all jobs.
func rankSteps(tasks []*task) (n int) {
	for _, t := range tasks {
		n += t.Ranks * t.Steps
	}
	return n
}

// left returns how much longer it takes where the rest is as fast as what was done.
func left(took time.Duration, done, whole int) time.Duration {
	if done == 0 {
		return 0
	}
	return time.Duration(float64(took) * float64(whole-done) / float64(done))
}

// tables prints all of them, and returns how many aims are missed.
func tables(w io.Writer, all []outcome) (misses int) {
	for _, m := range present(all) {
		if m.Name == methods.Lockstep {
			misses += aims(w, all, m.Name)
			missedTable(w, all, m.Name)
		}
	}
	summary(w, all)
	for _, m := range present(all) {
		if m.Name == methods.Lockstep {
			faultTable(w, all, m.Name)
			caseTable(w, all, m.Name)
		}
	}
	smallTable(w, all)
	sideBySide(w, all)
	innocent(w, all)
	limits(w, all)
	calibration(w, all)
	curves(w, all)
	return misses
}
