// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/lockstep-otel/lockstep/bench/internal/broker"
	"github.com/lockstep-otel/lockstep/bench/internal/recording"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "stages:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// options are the flags.
type options struct {
	ranks                            []int
	steps                            int
	layout, jars, collector, configs string
}

const (
	mostRanks = 32_768 // that the connectors follow
	// leastSteps is the fewest steps by which a rank is judged.
	leastSteps = 3
	// aim is about how many spans a job of many steps has: CPU time of seconds, which varies little.
	aim       = 1_500_000
	mostSteps = 192
	opsOfRank = 140 // about, in a step
	warmRanks = recording.PerNode
)

func parse(args []string, stderr io.Writer) (*options, error) {
	var o options
	var ranks string
	fs := flag.NewFlagSet("stages", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&ranks, "ranks", "64,512,4096,16384", "sizes of jobs, a `list` with commas")
	fs.IntVar(&o.steps, "steps", 0, "steps of each job; 0: as many as its size asks for")
	fs.StringVar(&o.layout, "layout", "experts", "how a job is divided: experts, sharded or tensor")
	fs.StringVar(&o.jars, "jars", "bin/kafka", "`folder` with the jars of the broker, which make bin/kafka makes")
	fs.StringVar(&o.collector, "collector", "bin/otelcol-lockstep", "the collector's `program`, which make distro makes")
	fs.StringVar(&o.configs, "configs", "distro/config", "`folder` with the published configurations")
	if err := fs.Parse(args); err != nil {
		return nil, fmt.Errorf("parse flags: %w", err)
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("parse flags: got argument %q; want none", fs.Arg(0))
	}
	for s := range strings.SplitSeq(ranks, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < recording.PerNode || n%recording.PerNode != 0 || n > mostRanks {
			return nil, fmt.Errorf("parse -ranks: got %q; want multiples of %d up to %d", s, recording.PerNode, mostRanks)
		}
		o.ranks = append(o.ranks, n)
	}
	if o.steps != 0 && o.steps < leastSteps {
		return nil, fmt.Errorf("parse -steps: got %d; want at least %d, since fewer are not judged, and more for small jobs", o.steps, leastSteps)
	}
	slices.Sort(o.ranks)
	return &o, nil
}

// stepsOf returns how many steps a job has.
func (o *options) stepsOf(ranks int) int {
	if o.steps > 0 {
		return o.steps
	}
	return max(leastSteps, min(mostSteps, aim/(ranks*opsOfRank)))
}

func bench(ctx context.Context, args []string, w, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "lockstep-bench-stages-")
	if err != nil {
		return fmt.Errorf("make a folder for the processes: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Fprintln(stderr, "start a broker")
	b, err := broker.Start(ctx, o.jars, dir)
	if err != nil {
		return err //nolint:wrapcheck // says what it is
	}
	defer b.End()
	fmt.Fprintln(stderr, "a first job, which is not measured: the broker compiles itself")
	if _, err := o.size(ctx, b, dir, warmRanks, mostSteps); err != nil {
		return fmt.Errorf("run %d ranks: %w", warmRanks, err)
	}
	var rows []row
	for _, ranks := range o.ranks {
		fmt.Fprintf(stderr, "%d ranks, %d steps\n", ranks, o.stepsOf(ranks))
		r, err := o.size(ctx, b, dir, ranks, o.stepsOf(ranks))
		if err != nil {
			return fmt.Errorf("measure %d ranks: %w", ranks, err)
		}
		rows = append(rows, *r)
	}
	render(w, o.layout, rows)
	return nil
}
