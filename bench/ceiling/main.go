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
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/lockstep-otel/lockstep/bench/internal/recording"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ceiling:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// options are the flags.
type options struct {
	ranks                        []int
	steps, batch                 int
	quick                        bool
	config, layout, dir, profile string
}

// quickRanks are the most of a quick run.
const quickRanks = 512

func parse(args []string, stderr io.Writer) (*options, error) {
	var o options
	var ranks string
	fs := flag.NewFlagSet("ceiling", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&ranks, "ranks", "8,64,512,4096,16384", "sizes of jobs, a `list` with commas")
	fs.IntVar(&o.steps, "steps", 0, "steps of each job; 0: as many as its size asks for")
	fs.IntVar(&o.batch, "batch", 1, "steps of a node in one request; 5 are 2.6 MB")
	fs.BoolVar(&o.quick, "quick", false, "at most 512 ranks and fewer steps, in 20 seconds")
	fs.StringVar(&o.config, "config", "distro/config/gateway.yaml", "the gateway's configuration `file`")
	fs.StringVar(&o.layout, "layout", "experts", "how a job is divided: experts, sharded or tensor")
	fs.StringVar(&o.dir, "dir", os.TempDir(), "`folder` for the requests of a job, 250 MB at most; they are removed again")
	fs.StringVar(&o.profile, "cpuprofile", "", "write the CPU profile of the whole pipeline into this `file`; of several sizes the last one's")
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
		if !o.quick || n <= quickRanks {
			o.ranks = append(o.ranks, n)
		}
	}
	if o.steps != 0 && o.steps < leastSteps {
		return nil, fmt.Errorf("parse -steps: got %d; want at least %d, since fewer are not judged", o.steps, leastSteps)
	}
	if o.batch < 1 {
		return nil, fmt.Errorf("parse -batch: got %d; want at least 1", o.batch)
	}
	slices.Sort(o.ranks)
	return &o, nil
}

const (
	mostRanks = 32_768 // that the connectors follow
	// leastSteps is the fewest steps by which a rank is judged.
	leastSteps = 3
	// aim is about how many spans a job of many steps has: CPU time of seconds, which varies little.
	aim = 700_000
	// mostSteps fill the window of steps, which then costs most, three times.
	mostSteps = 192
	opsOfRank = 140 // about, in a step
)

// stepsOf returns how many steps a job has.
func (o *options) stepsOf(ranks int) int {
	if o.steps > 0 {
		return o.steps
	}
	steps := min(mostSteps, aim/(ranks*opsOfRank))
	if o.quick {
		steps /= 3
	}
	return max(leastSteps, steps)
}

func bench(ctx context.Context, args []string, w, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	cfg, err := readSettings(o.config)
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	var rows []row
	var errs []error
	for _, ranks := range o.ranks {
		fmt.Fprintf(stderr, "%d ranks\n", ranks)
		r, err := o.size(ctx, cfg, ranks)
		if err != nil {
			errs = append(errs, fmt.Errorf("measure %d ranks: %w", ranks, err))
			continue
		}
		rows = append(rows, *r)
	}
	if len(rows) > 0 {
		fmt.Fprintf(w, "%s\nlayout %s, steps of %d ranks in each request: %d, GOMAXPROCS=1\n\n", machine(), o.layout, recording.PerNode, o.batch)
		render(w, rows)
	}
	return errors.Join(errs...)
}

// size measures a job of one size: first the whole pipeline, then its stages.
func (o *options) size(ctx context.Context, cfg *settings, ranks int) (_ *row, err error) {
	r, err := recording.New(recording.Options{Ranks: ranks, Steps: o.stepsOf(ranks), Batch: o.batch, Layout: o.layout, Dir: o.dir})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	end, err := o.startProfile()
	if err != nil {
		return nil, err
	}
	whole, err := run(ctx, cfg, r, false)
	if err := errors.Join(err, end()); err != nil {
		return nil, err
	}
	staged, err := run(ctx, cfg, r, true)
	if err != nil {
		return nil, err
	}
	return newRow(r, whole, staged), nil
}

// startProfile begins a profile, where one is asked for, and returns what ends it.
func (o *options) startProfile() (func() error, error) {
	if o.profile == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(o.profile)
	if err != nil {
		return nil, fmt.Errorf("write profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("write profile: %w", err), file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
