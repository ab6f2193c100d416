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
	"strings"
	"syscall"
	"time"

	"github.com/lockstep-otel/lockstep/internal/mutation"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// options are the flags.
type options struct {
	n        int
	seed     uint64
	packages []string
	state    string
	jobs     int
	deadline time.Duration
	list     bool
}

func parse(args []string, stderr io.Writer) (*options, error) {
	var o options
	var packages string
	fs := flag.NewFlagSet("mutation", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.IntVar(&o.n, "n", 200, "how many `mutants` to judge")
	fs.Uint64Var(&o.seed, "seed", 1, "`number` that selects the sample")
	fs.StringVar(&packages, "packages", "", "patterns of packages, a `list` with commas; empty: those of packages.txt")
	fs.StringVar(&o.state, "state", "", "keep verdicts in this `file`, and do not judge again what it has")
	fs.IntVar(&o.jobs, "jobs", 2, "how many `mutants` to judge at the same time")
	fs.DurationVar(&o.deadline, "deadline", 0, "stop after this `time` and report what was judged; 0: never")
	fs.BoolVar(&o.list, "list", false, "print the sample and run no tests")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("parse flags: got argument %q; want flags alone", fs.Arg(0))
	}
	if o.n < 1 || o.jobs < 1 || o.deadline < 0 {
		return nil, fmt.Errorf("parse flags: got -n %d -jobs %d -deadline %v; want at least 1, 1 and 0", o.n, o.jobs, o.deadline)
	}
	if packages != "" {
		o.packages = strings.Split(packages, ",")
	}
	return &o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.deadline)
		defer cancel()
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	patterns, further := listed(packagesFile)
	if o.packages != nil {
		patterns = o.packages
	}
	packages, err := mutation.Load(ctx, dir, patterns)
	if err != nil {
		return err
	}
	sampler := mutation.NewSampler(o.seed, packages)
	if o.list {
		sample, _ := sampler.Sample(o.n)
		for _, m := range sample {
			printMutant(stdout, m, "")
		}
		return nil
	}
	state, err := mutation.OpenState(o.state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	config := mutation.Config{
		Dir: dir, Packages: packages, Jobs: o.jobs, State: state,
		Quick: mutation.Tier{Name: "quick", Variable: tier.Env, Value: "quick"},
		Full:  mutation.Tier{Name: "full", Variable: tier.Env, Value: "full"},
	}
	if config.Further, err = byImportPath(dir, packages, further); err != nil {
		return err
	}
	return judge(ctx, o, config, sampler, stdout, stderr)
}

func judge(ctx context.Context, o *options, config mutation.Config, sampler *mutation.Sampler, stdout, stderr io.Writer) error {
	fmt.Fprintln(stderr, "run the tests without any change")
	judge, err := mutation.NewJudge(ctx, config)
	if err != nil {
		return err
	}
	judged := 0
	campaign := mutation.Campaign{
		Sampler: sampler, Judge: judge.Judge, Jobs: o.jobs,
		Done: func(r mutation.Record) {
			judged++
			fmt.Fprintf(stderr, "%d %s:%d %s: %s (%.0f s)\n", judged, r.File, r.Line, r.Kind, verdict(r), r.Seconds)
		},
	}
	result, err := campaign.Run(ctx, o.n)
	if err != nil {
		return err
	}
	return report(stdout, result)
}
