// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// comparison is one run of the command.
type comparison struct {
	o              *options
	base, head     *revision
	work           string
	intended       listed
	stdout, stderr io.Writer
	begin          time.Time

	mu     sync.Mutex
	counts counts
}

// counts sum up the inputs.
type counts struct {
	equal, listed, unlisted, unsteady int
	failed                            int
	better, worse, changed, same      int // figures
	skipped, unread                   []string
	findings                          map[string]int // revisions from connectors, by kind and status
}

// input is something that both revisions get, and how.
type input struct {
	name string
	// run returns what a revision makes of it, and nothing that may differ without meaning.
	run func(ctx context.Context, r *revision) (string, error)
	// figures: what comes back is tables, which are compared figure by figure.
	figures bool
}

func (c *comparison) run(ctx context.Context) error {
	for _, r := range []*revision{c.base, c.head} {
		fmt.Fprintf(c.stderr, "build %s\n", r.name)
		if err := r.build(ctx, c.o); err != nil {
			return err
		}
	}
	if c.o.has(partCollector) {
		note, err := buildCollectors(ctx, c.base, c.head)
		if err != nil {
			return err
		}
		if note != "" {
			fmt.Fprintln(c.stdout, note)
		}
	}
	all, err := c.inputs(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stderr, "built and prepared after %s; %d inputs\n", time.Since(c.begin).Round(time.Second), len(all))
	if len(all) == 0 {
		return fmt.Errorf("select inputs: got none for -only %q; want some", c.o.only)
	}
	if err := c.each(ctx, all); err != nil {
		return err
	}
	return c.conclude()
}

// inputs lists and prepares what is compared.
func (c *comparison) inputs(ctx context.Context) (all []input, err error) {
	var found places
	if c.o.has(partAnalyses) || c.o.has(partCollector) {
		if found, err = c.find(ctx); err != nil {
			return nil, err
		}
		made, err := c.generate()
		if err != nil {
			return nil, err
		}
		found = append(found, made...)
	}
	if c.o.has(partAnalyses) {
		all = append(all, c.analyses(found)...)
	}
	if c.o.has(partCollector) {
		more, err := c.collectors(found)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	if c.o.has(partScoreboard) {
		all = append(all, c.scoreboard()...)
	}
	if c.o.has(partHang) {
		all = append(all, c.hangs())
	}
	kept := all[:0]
	for _, in := range all {
		if c.o.only.MatchString(in.name) {
			kept = append(kept, in)
		}
	}
	return kept, nil
}

// each compares all inputs, some at a time.
func (c *comparison) each(ctx context.Context, all []input) error {
	todo := make(chan input)
	var wg sync.WaitGroup
	errs := make([]error, c.o.workers)
	for w := range errs {
		wg.Go(func() {
			for in := range todo {
				if errs[w] == nil {
					errs[w] = c.one(ctx, &in)
				}
			}
		})
	}
	const every = 100
	for i, in := range all {
		if i > 0 && i%every == 0 {
			fmt.Fprintf(c.stderr, "%d of %d inputs after %s\n", i, len(all), time.Since(c.begin).Round(time.Second))
		}
		todo <- in
	}
	close(todo)
	wg.Wait()
	return errors.Join(errs...)
}

// one compares one input. Where the outputs differ, both run once more: what comes out of one
// revision in two ways tells nothing of a change.
func (c *comparison) one(ctx context.Context, in *input) error {
	base, head, err := c.both(ctx, in)
	if err != nil {
		return c.failed(ctx, in, err)
	}
	if in.figures {
		c.figures(in, base, head)
		return nil
	}
	if base == head {
		c.note(in, "equal", "", &c.counts.equal)
		return nil
	}
	base2, head2, err := c.both(ctx, in)
	if err != nil {
		return c.failed(ctx, in, err)
	}
	if base2 == head || base == head2 || base2 == head2 {
		shown := ""
		if c.o.verbose {
			shown = excerpt(changes(base, head), c.o.lines)
		}
		c.note(in, "unsteady", shown, &c.counts.unsteady)
		return nil
	}
	all := changes(base, head)
	c.differ(in, texts(all), excerpt(all, c.o.lines))
	return nil
}

// failed notes an input that could not be compared; after an interrupt nothing can.
func (c *comparison) failed(ctx context.Context, in *input, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.note(in, "failed", fmt.Sprintf("  %v\n", err), &c.counts.failed)
	return nil
}

// figures compares the tables of one input. They hold times of the machine, too, which do not
// count.
func (c *comparison) figures(in *input, base, head string) {
	all := figureChanges(base, head)
	c.mu.Lock()
	c.counts.add(all)
	c.mu.Unlock()
	if len(all.all) == 0 {
		c.note(in, "equal", "", &c.counts.equal)
		return
	}
	c.differ(in, all.lines(), indented(all.lines(), c.o.lines))
}

// both runs both revisions side by side.
func (c *comparison) both(ctx context.Context, in *input) (base, head string, err error) {
	var errs [2]error
	var wg sync.WaitGroup
	wg.Go(func() { base, errs[0] = in.run(ctx, c.base) })
	wg.Go(func() { head, errs[1] = in.run(ctx, c.head) })
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return "", "", err
	}
	return base, head, ctx.Err()
}

func (c *comparison) differ(in *input, changed []string, shown string) {
	c.mu.Lock()
	allowed := c.intended.allows(in.name, changed)
	c.mu.Unlock()
	if allowed {
		c.note(in, "listed", "", &c.counts.listed)
		return
	}
	c.note(in, "differs", shown, &c.counts.unlisted)
}

// indented returns the first lines, each indented.
func indented(lines []string, most int) string {
	var b strings.Builder
	for i, l := range lines {
		if i == most {
			fmt.Fprintf(&b, "  and %d more\n", len(lines)-i)
			break
		}
		fmt.Fprintf(&b, "  %s\n", l)
	}
	return b.String()
}

func (c *comparison) note(in *input, what, shown string, count *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*count++
	if what != "equal" || c.o.verbose {
		fmt.Fprintf(c.stdout, "%-8s %s\n%s", what, in.name, shown)
	}
}

// skip notes inputs that are not here.
func (c *comparison) skip(format string, args ...any) {
	c.counts.skipped = append(c.counts.skipped, fmt.Sprintf(format, args...))
}

func (c *comparison) conclude() error {
	n := &c.counts
	for _, s := range n.skipped {
		fmt.Fprintf(c.stdout, "skipped: %s\n", s)
	}
	if len(n.unread) > 0 {
		fmt.Fprintf(c.stdout, "read by no part: %d files, of which some are %s\n", len(n.unread), strings.Join(n.unread[:min(3, len(n.unread))], ", "))
		sort.Strings(n.unread)
		for _, f := range n.unread {
			if c.o.verbose {
				fmt.Fprintf(c.stdout, "  %s\n", f)
			}
		}
	}
	for _, e := range c.intended {
		if !e.used && c.o.only.String() == "" && len(c.o.parts) == len(parts) {
			fmt.Fprintf(c.stdout, "unused entry of %s: %s\n", filepath.Base(c.o.listed), e.text)
		}
	}
	var seen []string
	for _, k := range slices.Sorted(maps.Keys(n.findings)) {
		seen = append(seen, fmt.Sprintf("%s: %d", k, n.findings[k]))
	}
	if len(seen) > 0 {
		fmt.Fprintf(c.stdout, "revisions of findings that connectors of the head gave out: %s\n", strings.Join(seen, ", "))
	}
	if n.same+n.better+n.worse+n.changed > 0 {
		fmt.Fprintf(c.stdout, "figures: %d equal, %d better, %d worse, %d neither\n", n.same, n.better, n.worse, n.changed)
	}
	fmt.Fprintf(c.stdout, "inputs: %d, equal: %d, unsteady: %d, failed: %d, differences: listed: %d, unlisted: %d; %s\n",
		n.equal+n.unsteady+n.failed+n.listed+n.unlisted, n.equal, n.unsteady, n.failed, n.listed, n.unlisted, time.Since(c.begin).Round(time.Second))
	if n.failed > 0 {
		return fmt.Errorf("compare with %s: got %d inputs that failed, and %d unlisted differences; want none", c.o.base, n.failed, n.unlisted)
	}
	if n.unlisted > 0 {
		return fmt.Errorf("compare with %s: got %d unlisted differences; want none, or entries in %s", c.o.base, n.unlisted, c.o.listed)
	}
	return nil
}
