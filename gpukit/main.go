// SPDX-License-Identifier: Apache-2.0

// Gpu-check shows on one machine what Lockstep does with a real GPU, and writes a
// report. README.md describes the kit that it is part of.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/part"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// What build.sh sets.
var (
	version = "unknown"
	commit  = "unknown"
)

// Exit statuses.
const (
	exitFailed = 1
	exitUsage  = 2
)

type options struct {
	kit, out, work, python, only string
	limit                        time.Duration
	list                         bool
}

func main() {
	// Who reads the output may go away: the report is written all the same.
	signal.Ignore(syscall.SIGPIPE)
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "gpu-check:", err)
		return exitUsage
	}
	parts, err := choose(part.All(), o.only)
	if err != nil {
		fmt.Fprintln(stderr, "gpu-check:", err)
		return exitUsage
	}
	if o.list {
		for _, a := range parts {
			fmt.Fprintf(stdout, "%-10s %4.0f s  %s\n", a.Name, a.Limit.Seconds(), a.Title)
		}
		return 0
	}
	r, err := check(ctx, o, parts, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "gpu-check:", err)
	}
	if r == nil {
		return exitUsage
	}
	fmt.Fprintf(stdout, "%d shown, %d right on stand-ins, %d noted, %d not shown here, %d failed: %s\n",
		r.Count(report.Shown), r.Count(report.StandIn), r.Count(report.Noted), r.Count(report.NotShown), r.Count(report.Failed), filepath.Join(o.out, report.MarkdownName))
	if err != nil || ctx.Err() != nil || r.Count(report.Failed) > 0 {
		return exitFailed
	}
	return 0
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	self, err := os.Executable()
	if err != nil {
		return o, fmt.Errorf("find the kit: %w", err)
	}
	f := flag.NewFlagSet("gpu-check", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.kit, "kit", filepath.Dir(self), "the kit's `folder`")
	f.StringVar(&o.out, "out", "gpu-report", "`folder` for the report and the fixtures")
	f.StringVar(&o.work, "work", os.TempDir(), "`folder` for scratch files, 1 GiB")
	f.StringVar(&o.python, "python", "", "`interpreter` that has PyTorch (default: python3); none: do without")
	f.StringVar(&o.only, "only", "", "`names` of parts to run, joined by commas (default: all)")
	f.DurationVar(&o.limit, "limit", 9*time.Minute+30*time.Second, "time for everything")
	f.BoolVar(&o.list, "list", false, "list the parts")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("read arguments: got %q; want flags only", f.Arg(0))
	}
	if o.out == "" {
		return o, fmt.Errorf("read -out: got nothing; want a folder")
	}
	if o.limit <= 0 {
		return o, fmt.Errorf("read -limit: got %v; want more than 0", o.limit)
	}
	for _, path := range []*string{&o.kit, &o.out, &o.work} {
		if *path, err = filepath.Abs(*path); err != nil {
			return o, fmt.Errorf("find folder: %w", err)
		}
	}
	return o, nil
}

// choose returns the parts with these names, in their own order.
func choose(all []part.Part, names string) ([]part.Part, error) {
	if names == "" {
		return all, nil
	}
	var chosen, known []string
	for _, a := range all {
		known = append(known, a.Name)
	}
	for name := range strings.SplitSeq(names, ",") {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("read -only: got %q; want some of %s", name, strings.Join(known, ","))
		}
		chosen = append(chosen, name)
	}
	return slices.DeleteFunc(slices.Clone(all), func(a part.Part) bool { return !slices.Contains(chosen, a.Name) }), nil
}

// noPython is what stands for no interpreter.
const noPython = "none"

// python returns the interpreter's path; empty where there is none. The error is of one
// that was named.
func python(name string) (string, error) {
	if name == noPython {
		return "", nil
	}
	named := name != ""
	if !named {
		name = "python3"
	}
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	switch {
	case err == nil:
		return path, nil
	case named:
		return "", fmt.Errorf("find Python: got no program %s; want -python or PYTHON= an interpreter that has PyTorch", name)
	}
	return "", nil
}
