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

	"github.com/lockstep-otel/lockstep/gpukit/kit"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
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
		return exitFailed
	}
	fmt.Fprintf(stdout, "%d shown, %d right on stand-ins, %d noted, %d not shown here, %d failed: %s\n",
		r.Count(report.Shown), r.Count(report.StandIn), r.Count(report.Noted), r.Count(report.NotShown), r.Count(report.Failed), filepath.Join(o.out, report.MarkdownName))
	if r.Count(report.Failed) > 0 {
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
	f.StringVar(&o.python, "python", "", "`interpreter` that has PyTorch (default: python3)")
	f.StringVar(&o.only, "only", "", "`names` of parts to run, joined by commas (default: all)")
	f.DurationVar(&o.limit, "limit", 9*time.Minute+30*time.Second, "time for everything")
	f.BoolVar(&o.list, "list", false, "list the parts")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("read arguments: got %q; want flags only", f.Arg(0))
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

// check runs the parts and writes the report after each, so that a run that is cut
// off leaves what it found.
func check(ctx context.Context, o options, parts []part.Part, stdout io.Writer) (*report.Report, error) {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return nil, fmt.Errorf("make output folder: %w", err)
	}
	work, err := os.MkdirTemp(o.work, "lockstep-gpu-")
	if err != nil {
		return nil, fmt.Errorf("make scratch folder: %w", err)
	}
	defer os.RemoveAll(work)
	k := kit.New(o.kit, o.out, work)
	if err := k.Check(); err != nil {
		return nil, err
	}
	k.Python = python(o.python)
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	remove, unpacked := k.Unpack(ctx, work, o.out, o.kit)
	defer remove()

	r := &report.Report{Format: report.Format, Kit: version + " " + commit, Began: time.Now().UTC(), Files: []string{}, Parts: []*report.Part{}}
	r.Machine = k.Look(ctx)
	for _, f := range r.Machine {
		fmt.Fprintf(stdout, "%-20s %s\n", f.Name, f.Value)
	}
	if p := whole(k, unpacked); len(p.Checks) > 0 {
		r.Parts = append(r.Parts, p)
		progress(stdout, p)
	}
	for _, a := range parts {
		p := do(ctx, a, k)
		r.Parts = append(r.Parts, p)
		r.TookS = time.Since(r.Began).Seconds()
		r.Files = k.Fixtures()
		if err := r.Write(o.out, k.Scrub.Text); err != nil {
			return nil, err
		}
		progress(stdout, p)
	}
	return r, keepLog(k, r, o.out)
}

// whole returns a part that has a failed check for each file of the kit that is not as it
// was built, and for a command that could not be unpacked.
func whole(k *kit.Kit, unpacked error) *report.Part {
	began := time.Now()
	p := report.NewPart("kit", "The kit's own files", 0)
	broken, err := k.Verify()
	if err = errors.Join(err, unpacked); err != nil {
		p.Add("kit", report.Failed, err.Error())
	}
	for _, line := range broken {
		p.Add("file", report.Failed, line+": copy the kit to this machine again")
	}
	p.Close(time.Since(began))
	return p
}

// do runs a part, or says that there was no time for it.
func do(ctx context.Context, a part.Part, k *kit.Kit) *report.Part {
	if ctx.Err() == nil {
		return a.Do(ctx, k)
	}
	p := report.NewPart(a.Name, a.Title, a.Limit)
	p.Addf("start", report.NotShown, "not run: the time for everything was over, or the check was interrupted; -only %s runs it alone", a.Name)
	p.Close(0)
	return p
}

func progress(w io.Writer, p *report.Part) {
	fmt.Fprintf(w, "\n%s (%.1f s)\n", p.Title, p.TookS)
	for _, c := range p.Checks {
		fmt.Fprintf(w, "  %-10s %-28s %s\n", c.Status, c.Name, c.Text)
		for _, f := range c.Figures {
			fmt.Fprintf(w, "  %-10s %-28s   %s\n", "", "", f)
		}
	}
}

// keepLog keeps what programs wrote, as one more fixture.
func keepLog(k *kit.Kit, r *report.Report, out string) error {
	if err := k.Fixture("log", kit.Entry{Name: "log.txt", Content: []byte(k.Log.String())}); err != nil {
		return err
	}
	r.Files = k.Fixtures()
	return r.Write(out, k.Scrub.Text)
}

// python returns the interpreter's path; empty where there is none.
func python(name string) string {
	if name == "" {
		name = "python3"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	if path, err = filepath.Abs(path); err != nil {
		return ""
	}
	return path
}
