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
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// Parts of a comparison.
const (
	partAnalyses   = "analyses"
	partCollector  = "collector"
	partScoreboard = "scoreboard"
	partHang       = "hang"
)

var parts = []string{partAnalyses, partCollector, partScoreboard, partHang}

// options are the flags.
type options struct {
	base    string
	parts   []string
	only    *regexp.Regexp
	listed  string
	lines   int
	verbose bool
	keep    bool
	workers int

	bench        bool
	instructions bool
	times        int
	runs         int
	benchtime    string
	benchmarks   string
	packages     *regexp.Regexp
}

func parse(args []string, stderr io.Writer) (*options, error) {
	var o options
	var list, only, packages string
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.base, "base", "", "the `revision` to compare the working tree with")
	fs.StringVar(&list, "parts", strings.Join(parts, ","), "what to compare, a `list` with commas")
	fs.StringVar(&only, "only", "", "only inputs whose name matches this `regexp`")
	fs.StringVar(&o.listed, "listed", "bench/compare/listed.txt", "the `file` of intended differences")
	fs.IntVar(&o.lines, "lines", 24, "print at most so many `lines` of each difference")
	fs.BoolVar(&o.verbose, "v", false, "name each input that is equal, and each file that nothing reads")
	fs.BoolVar(&o.keep, "keep", false, "leave programs and inputs where they are, and say where")
	fs.IntVar(&o.workers, "workers", max(1, runtime.NumCPU()/2), "how many `inputs` at the same time; each takes a processor for either revision")
	fs.BoolVar(&o.bench, "bench", false, "run paired benchmarks instead")
	fs.BoolVar(&o.instructions, "instructions", false, "of -bench: count instructions with valgrind, in place of time")
	fs.IntVar(&o.times, "times", 1, "of -instructions: count so many `times` as many operations as usual")
	fs.IntVar(&o.runs, "runs", 6, "of -bench: `times` that each revision runs")
	fs.StringVar(&o.benchtime, "benchtime", "", "of -bench: as `time` of go test -benchtime (default 200ms)")
	fs.StringVar(&o.benchmarks, "benchmarks", ".", "of -bench: as `regexp` of go test -bench")
	fs.StringVar(&packages, "packages", "", "of -bench: only packages whose path matches this `regexp`")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("parse flags: got argument %q; want flags alone", fs.Arg(0))
	}
	if o.base == "" {
		return nil, errors.New("parse flags: got no -base; want a revision, such as -base main")
	}
	if o.runs < 1 || o.workers < 1 || o.lines < 1 || o.times < 1 {
		return nil, fmt.Errorf("parse flags: got -runs %d -workers %d -lines %d -times %d; want at least 1 each", o.runs, o.workers, o.lines, o.times)
	}
	var err error
	if o.only, err = regexp.Compile(only); err != nil {
		return nil, fmt.Errorf("parse -only: %w", err)
	}
	if o.packages, err = regexp.Compile(packages); err != nil {
		return nil, fmt.Errorf("parse -packages: %w", err)
	}
	if !slices.ContainsFunc(benchmarked, o.packages.MatchString) {
		return nil, fmt.Errorf("parse -packages: got %q; want a regexp that matches one of %s", packages, strings.Join(benchmarked, ", "))
	}
	if o.instructions && o.benchtime != "" {
		return nil, errors.New("parse flags: got -benchtime with -instructions, which counts a number of operations; want one of them")
	}
	o.benchtime = cmp.Or(o.benchtime, "200ms")
	o.parts = strings.Split(list, ",")
	for _, p := range o.parts {
		if !slices.Contains(parts, p) {
			return nil, fmt.Errorf("parse -parts: got %q; want some of %s", p, strings.Join(parts, ","))
		}
	}
	return &o, nil
}

func (o *options) has(part string) bool { return slices.Contains(o.parts, part) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := os.ReadFile(o.listed)
	if err != nil {
		return fmt.Errorf("read intended differences: %w", err)
	}
	intended, err := parseListed(string(text))
	if err != nil {
		return fmt.Errorf("read intended differences: %s: %w", o.listed, err)
	}
	root, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find working tree: %w", err)
	}
	work, err := os.MkdirTemp("", "lockstep-compare-")
	if err != nil {
		return fmt.Errorf("make work folder: %w", err)
	}
	defer func() {
		if o.keep {
			fmt.Fprintf(stdout, "kept: %s\n", work)
			return
		}
		err = errors.Join(err, os.RemoveAll(work))
	}()
	head := &revision{name: "head", tree: root, out: filepath.Join(work, "head"), env: os.Environ()}
	base, remove, err := checkout(ctx, root, o.base, work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	fmt.Fprintf(stdout, "base %s (%s), head: the working tree\n", o.base, base.commit)
	switch {
	case o.instructions:
		return countInstructions(ctx, o, base, head, stdout, stderr)
	case o.bench:
		return benchmark(ctx, o, base, head, stdout, stderr)
	}
	c := &comparison{o: o, base: base, head: head, work: work, intended: intended, stdout: stdout, stderr: stderr, begin: time.Now()}
	return c.run(ctx)
}
