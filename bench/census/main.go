// SPDX-License-Identifier: Apache-2.0

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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "census:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var base string
	var verbose bool
	fs := flag.NewFlagSet("census", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&base, "base", "", "count this `revision`, too, and print it before the working tree")
	fs.BoolVar(&verbose, "v", false, "list what was counted in the working tree")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("parse flags: got argument %q; want flags alone", fs.Arg(0))
	}
	why, err := readReasons()
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find working tree: %w", err)
	}
	if base != "" {
		if err := git(ctx, dir, "rev-parse", "--verify", "--end-of-options", base+"^{commit}"); err != nil {
			return fmt.Errorf("find base %q: %w; want a revision that git knows", base, err)
		}
	}
	now, err := take(ctx, dir, why)
	if err != nil {
		return err
	}
	var before *census
	if base != "" {
		if before, err = takeBase(ctx, dir, base, why); err != nil {
			return err
		}
	}
	show(stdout, before, now)
	if verbose {
		list(stdout, now)
	}
	return nil
}

// census is what was counted in one tree.
type census struct {
	lives, parses, quantiles, hubs, retries, upward []count
	maps                                            grown
	evictions                                       evictions
	lines                                           lines
}

func take(ctx context.Context, dir string, why reasons) (*census, error) {
	t, err := load(ctx, dir, "./...")
	if err != nil {
		return nil, err
	}
	n, err := countLines(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &census{lives(t), parses(t), quantiles(t), hubs(t), retries(t), upward(t), mapFields(t, why.maps), evictsFrom(t, why.evictions), n}, nil
}

// takeBase counts a revision in a worktree, which it removes again.
func takeBase(ctx context.Context, dir, base string, why reasons) (c *census, err error) {
	work, err := os.MkdirTemp("", "lockstep-census-")
	if err != nil {
		return nil, fmt.Errorf("make folder for base: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	tree := filepath.Join(work, "base")
	if err := git(ctx, dir, "worktree", "add", "--detach", "--quiet", tree, base); err != nil {
		return nil, fmt.Errorf("check out base: %w", err)
	}
	defer func() {
		const patience = time.Minute
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err = errors.Join(err, git(ctx, dir, "worktree", "remove", "--force", tree))
	}()
	return take(ctx, tree, why)
}

func git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// rows are the lines of the table.
var rows = []struct {
	name string
	of   func(*census) int
}{
	{"life cycles of findings outside internal/finding", func(c *census) int { return groups(c.lives, everything) }},
	{"  packages that have them", func(c *census) int { return packages(c.lives) }},
	{"  places", func(c *census) int { return len(c.lives) }},
	{"parses of evidence outside internal/model/evidence", func(c *census) int { return len(c.parses) }},
	{"quantiles outside internal/stats: functions", func(c *census) int { return len(only(c.quantiles, ofProduct, isFunction)) }},
	{"  histogram types", func(c *census) int { return len(only(c.quantiles, ofProduct, isHistogram)) }},
	{"  both, in bench and gpukit", func(c *census) int { return len(only(c.quantiles, ofBench)) }},
	{"maps that grow, without a limit or a reason", func(c *census) int { return len(c.maps.unlimited) }},
	{"  whose length is compared by hand", func(c *census) int { return len(c.maps.checked) }},
	{"  with a reason in bench/census/maps.txt", func(c *census) int { return c.maps.excused }},
	{"bounded maps whose length is compared by hand", func(c *census) int { return len(c.maps.bounded) }},
	{"plain maps that functions evict from", func(c *census) int { return len(c.evictions.unexplained) + len(c.evictions.excused) }},
	{"  without a reason in bench/census/evictions.txt", func(c *census) int { return len(c.evictions.unexplained) }},
	{"what instances of connectors share: types", func(c *census) int { return len(c.hubs) }},
	{"functions that retry a delivery", func(c *census) int { return len(c.retries) }},
	{"imports that point up", func(c *census) int { return len(c.upward) }},
	{"lines of Go, written by hand", func(c *census) int { return c.lines.written }},
	{"  of connectors", func(c *census) int { return c.lines.connectors }},
	{"  of receivers", func(c *census) int { return c.lines.receivers }},
	{"  of tests", func(c *census) int { return c.lines.tests }},
	{"  generated", func(c *census) int { return c.lines.generated }},
}

func everything(count) bool    { return true }
func ofBench(c count) bool     { return below(c.place, "bench", "gpukit") }
func ofProduct(c count) bool   { return !ofBench(c) }
func isHistogram(c count) bool { return c.what == "histogram" }
func isFunction(c count) bool  { return !isHistogram(c) }

func only(all []count, keep ...func(count) bool) (out []count) {
	for _, c := range all {
		if !slices.ContainsFunc(keep, func(k func(count) bool) bool { return !k(c) }) {
			out = append(out, c)
		}
	}
	return out
}

// groups counts what is different among the groups.
func groups(all []count, keep func(count) bool) int {
	seen := map[string]bool{}
	for _, c := range all {
		if keep(c) {
			seen[c.group] = true
		}
	}
	return len(seen)
}

func packages(all []count) int {
	seen := map[string]bool{}
	for _, c := range all {
		seen[filepath.Dir(c.place)] = true
	}
	return len(seen)
}

func show(w io.Writer, before, now *census) {
	if before != nil {
		fmt.Fprintf(w, "%-54s %8s %8s\n", "", "before", "after")
	}
	for _, r := range rows {
		if before != nil {
			fmt.Fprintf(w, "%-54s %8d %8d\n", r.name, r.of(before), r.of(now))
			continue
		}
		fmt.Fprintf(w, "%-54s %8d\n", r.name, r.of(now))
	}
	for _, name := range now.maps.unused {
		fmt.Fprintf(w, "unused entry of maps.txt: %s\n", name)
	}
	for _, name := range now.evictions.unused {
		fmt.Fprintf(w, "unused entry of evictions.txt: %s\n", name)
	}
}

func list(w io.Writer, c *census) {
	for _, part := range []struct {
		name string
		all  []count
	}{
		{"life cycles of findings", c.lives},
		{"parses of evidence", c.parses},
		{"quantiles and histograms", c.quantiles},
		{"maps that grow, without a limit or a reason", c.maps.unlimited},
		{"maps that grow, whose length is compared by hand", c.maps.checked},
		{"bounded maps whose length is compared by hand", c.maps.bounded},
		{"plain maps that functions evict from, without a reason", c.evictions.unexplained},
		{"plain maps that functions evict from, with a reason", c.evictions.excused},
		{"what instances of connectors share: types", c.hubs},
		{"functions that retry a delivery", c.retries},
		{"imports that point up", c.upward},
	} {
		fmt.Fprintf(w, "\n## %s\n\n", part.name)
		for _, x := range part.all {
			fmt.Fprintf(w, "%s  %s  %s\n", x.group, x.place, x.what)
		}
	}
}
