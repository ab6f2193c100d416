// SPDX-License-Identifier: Apache-2.0

// Command hostile sends valid but hostile telemetry to a collector with a published
// configuration, and measures whether its memory stays bounded and whether jobs that behave
// are still judged right. See the page above this one.
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
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// options are the flags.
type options struct {
	program, configs string // the collector, and the folder of its configurations
	config           string // instead of that of each kind
	kinds            []kind
	duration         time.Duration
	rate             int
	limit            int // MiB
	floor            float64
	soak             bool
	rings            string
	verbose          bool
}

// lower returns limits, or none where those are to be as published.
func (o *options) lower(by func(mib int) limits) limits {
	if o.limit == 0 {
		return nil
	}
	return by(o.limit)
}

func parse(args []string, stderr io.Writer) (*options, error) {
	var o options
	var names string
	fs := flag.NewFlagSet("hostile", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.program, "collector", "bin/otelcol-lockstep", "`path` of the collector")
	fs.StringVar(&o.configs, "configs", "distro/config", "`folder` of its configurations")
	fs.StringVar(&o.config, "config", "", "use this `file` of them; empty: that of each kind")
	fs.StringVar(&names, "kinds", "", "send these kinds, a `list` with commas; empty: all")
	fs.DurationVar(&o.duration, "duration", 5*time.Minute, "send each kind for this `time`")
	fs.IntVar(&o.rate, "rate", 1000, "send this `number` of messages a second")
	fs.IntVar(&o.limit, "limit", 48, "give each engine this `number` of MiB, and small stores, so that limits are reached; 0: as published")
	fs.Float64Var(&o.floor, "floor", 6, "fail above this `slope` of memory, MiB a minute, where it is no noise")
	fs.BoolVar(&o.soak, "soak", false, "send what ordinary jobs send, and nothing hostile")
	fs.StringVar(&o.rings, "rings", "bin/inject/ring_events", "`path` of a program that writes a rank's ring, for -soak")
	fs.BoolVar(&o.verbose, "v", false, "print what the collector counted")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("parse flags: got argument %q; want flags alone", fs.Arg(0))
	}
	if o.duration < 45*time.Second || o.rate < 1 || o.limit < 0 {
		return nil, fmt.Errorf("parse flags: got -duration %v -rate %d -limit %d; want at least 45s, 1 and 0", o.duration, o.rate, o.limit)
	}
	var err error
	o.kinds, err = selected(names)
	return &o, err
}

func selected(names string) ([]kind, error) {
	if names == "" {
		return kinds, nil
	}
	var list []kind
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if i < 0 {
			return nil, fmt.Errorf("parse -kinds: got %q; want some of %s", name, strings.Join(kindNames(), ", "))
		}
		list = append(list, kinds[i])
	}
	return list, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.soak {
		return soak(ctx, o, stdout, stderr)
	}
	return attack(ctx, o, stdout, stderr)
}

// attack sends one kind after the other, each to a collector of its own.
func attack(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	var results []*result
	var errs []error
	for i := range o.kinds {
		fmt.Fprintf(stderr, "send %s for %v\n", o.kinds[i].name, o.duration)
		r, err := sendKind(ctx, o, &o.kinds[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("send %s: %w", o.kinds[i].name, err))
			break
		}
		results = append(results, r)
		errs = append(errs, r.check(o.floor))
		if o.verbose {
			fmt.Fprintf(stderr, "counted under %s:\n%s", r.kind, r.counted)
		}
	}
	printTable(stdout, results)
	return errors.Join(errs...)
}
