// SPDX-License-Identifier: Apache-2.0

// Hang judges the diagnosis of hangs on simulated jobs with known truth, and prints who was
// right. See README.md.
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
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/lockstep-otel/lockstep/bench/hang/suite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hang:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// options are the flags.
type options struct {
	suite.Selection
	held, check, print bool
	failures           string
	copied             bool
	workers            int

	scale, plain      bool
	dir, generate, in string
	ranks             int
}

func parse(args []string, stderr io.Writer) (*options, error) {
	var o options
	var families, layouts, evidences, rates, seeds string
	fs := flag.NewFlagSet("hang", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&families, "family", "", "only these families, a `list` with commas")
	fs.StringVar(&layouts, "layout", "", "only these layouts, a `list` with commas")
	fs.StringVar(&evidences, "evidence", "", "only these kinds of evidence, a `list` with commas")
	fs.StringVar(&rates, "missing", "", "only these shares of missing dumps, a `list` of percents")
	fs.StringVar(&seeds, "seed", "", "these seeds, a `list`, instead of those for work")
	fs.BoolVar(&o.held, "held", false, "the seeds held out")
	fs.BoolVar(&o.check, "check", false, "exit with 1 where an aim or a floor is missed")
	fs.BoolVar(&o.print, "print", false, "print states and findings of each case")
	fs.StringVar(&o.failures, "failures", "", "write what went wrong into this `file`")
	fs.BoolVar(&o.scale, "scale", false, "measure time and memory of large jobs instead")
	fs.StringVar(&o.dir, "dir", os.TempDir(), "where -scale writes its dumps, 6 GB at most, and removes them again")
	fs.BoolVar(&o.copied, "copied", false, "judge jobs that run by dumps that do not say when they were taken instead")
	fs.BoolVar(&o.plain, "plain", false, "of -generate: all of the job's parallelism is over data")
	fs.StringVar(&o.generate, "generate", "", "part of -scale: write dumps into this `folder`")
	fs.StringVar(&o.in, "analyze", "", "part of -scale: judge the dumps of this `folder`")
	fs.IntVar(&o.ranks, "ranks", 0, "of -scale: at most so many; of -generate: so many")
	fs.IntVar(&o.workers, "workers", runtime.NumCPU(), "jobs at a time")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	o.Families, o.Layouts, o.Evidences = list(families), list(layouts), list(evidences)
	o.Seeds = suite.WorkSeeds
	if o.held {
		o.Seeds = suite.HeldSeeds
	}
	for _, s := range list(rates) {
		n, err := strconv.Atoi(s)
		if err != nil || !slices.Contains(suite.Rates, n) {
			return nil, fmt.Errorf("read -missing: got %q; want some of %v", s, suite.Rates)
		}
		o.Rates = append(o.Rates, n)
	}
	if seeds != "" {
		o.Seeds = nil
	}
	for _, s := range list(seeds) {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read -seed: %w", err)
		}
		o.Seeds = append(o.Seeds, n)
	}
	return &o, nil
}

func list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	switch {
	case o.generate != "":
		return generate(o.generate, o.ranks, o.plain)
	case o.in != "":
		return analyze(ctx, o.in, stdout)
	case o.copied:
		return copied(o, stdout)
	case o.scale:
		return scale(ctx, o, stdout, stderr)
	}
	return judge(o, stdout)
}

// judge runs the suite.
func judge(o *options, stdout io.Writer) error {
	var t suite.Tally
	var wrong []suite.Case
	err := suite.Run(&o.Selection, suite.Engine, o.workers, func(c suite.Case) {
		t.Add(&c)
		if o.print {
			c.Print(stdout)
		}
		if c.Wrong() && o.failures != "" {
			c.In = nil
			wrong = append(wrong, c)
		}
	})
	if err != nil {
		return err
	}
	t.Print(stdout)
	missed := t.Missed()
	for _, m := range missed {
		fmt.Fprintln(stdout, "missed:", m)
	}
	if o.failures != "" {
		if err := writeFailures(o.failures, wrong); err != nil {
			return err
		}
	}
	if o.check && len(missed) > 0 {
		return errors.New("an aim or a floor was missed")
	}
	return nil
}

// writeFailures writes the cases that went wrong, each with the command that runs it again.
func writeFailures(path string, wrong []suite.Case) error {
	slices.SortFunc(wrong, func(a, b suite.Case) int { return strings.Compare(a.Name(), b.Name()) })
	var b strings.Builder
	for i := range wrong {
		fmt.Fprintf(&b, "## go run ./bench/hang %s -print\n", wrong[i].Name())
		wrong[i].PrintVerdict(&b)
		b.WriteByte('\n')
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil { //nolint:gosec // a report for people
		return fmt.Errorf("write failures: %w", err)
	}
	return nil
}
