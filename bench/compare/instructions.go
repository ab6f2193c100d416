// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Wall time of one program differs by half from run to run where other machines share the processor.
// The instructions that it executes do not: valgrind's cachegrind counts them on a simulated processor
// (Nethercote and Seward, PLDI 2007). They say nothing of caches, branches and waiting. The garbage
// collector, whose work depends on the time, is off: the bytes that are allocated stand for it.

const (
	// counted is for how many ns without valgrind a benchmark's operations are counted; with it they take
	// some hundred times as long.
	counted = 60e6
	// fewest operations are counted, however long one takes.
	fewest = 4
	// tooLong is from how many ns without valgrind the fewest operations are not counted: that is minutes with it.
	tooLong = 4e8
)

// span are the numbers of operations at which a benchmark's program is counted. The difference is free of
// what the program does before and after them.
type span struct{ few, many int }

// spanOf chooses them by the ns that an operation takes.
func spanOf(ns float64) span {
	many := int(min(max(counted/ns, fewest), 1e6))
	return span{few: max(many/4, 2), many: many}
}

// counter counts the instructions of one benchmark.
type counter struct {
	pkg, name string
	span      span
	base      []float64 // instructions per operation, one a run
	head      []float64
	allocated [2]float64 // bytes per operation of base and head
	err       error
}

// countInstructions compares the benchmarks of both revisions by instructions.
func countInstructions(ctx context.Context, o *options, base, head *revision, stdout, stderr io.Writer) error {
	if _, err := exec.LookPath("valgrind"); err != nil {
		return fmt.Errorf("find valgrind, which counts instructions: %w; want Debian's package valgrind", err)
	}
	fmt.Fprintf(stdout, "\n%-52s %9s %14s %14s %7s  %-14s  %s\n", "benchmark", "ops", "base instr/op", "head instr/op", "ratio", "spreads", "B/op")
	all := &summary{}
	for _, pkg := range o.benchmarked(base, head, stdout) {
		fmt.Fprintf(stderr, "instructions of %s\n", pkg)
		if err := buildBenchmarks(ctx, pkg, base, head); err != nil {
			return err
		}
		list, err := counters(ctx, o, pkg, base, head, stdout)
		if err != nil {
			return err
		}
		countAll(ctx, o, list, base, head)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, c := range list {
			c.report(stdout, all)
		}
	}
	all.print(stdout)
	return nil
}

// counters finds the benchmarks that both revisions have.
func counters(ctx context.Context, o *options, pkg string, base, head *revision, stdout io.Writer) (list []*counter, err error) {
	const short = "10ms"
	took, bytes := map[string]times{}, map[string]times{}
	for _, r := range []*revision{base, head} {
		text, err := r.runBenchmarks(ctx, pkg, o.benchmarks, short)
		if err != nil {
			return nil, fmt.Errorf("time benchmarks of %s of %s: %w", pkg, r.name, err)
		}
		took[r.name], bytes[r.name] = times{}, times{}
		took[r.name].add(text)
		bytes[r.name].addAll(allocLine, text)
	}
	for _, name := range slices.Sorted(maps.Keys(took[head.name])) {
		was := took[base.name][name]
		if len(was) == 0 {
			fmt.Fprintf(stdout, "%-52s only in the head\n", label(pkg, name))
			continue
		}
		ns := max(middle(was), middle(took[head.name][name]))
		if ns*fewest > tooLong {
			fmt.Fprintf(stdout, "%-52s not counted: an operation takes %.1f s\n", label(pkg, name), ns/1e9)
			continue
		}
		c := &counter{pkg: pkg, name: name, span: spanOf(ns)}
		for i, r := range []*revision{base, head} {
			if b := bytes[r.name][name]; len(b) > 0 {
				c.allocated[i] = middle(b)
			}
		}
		list = append(list, c)
	}
	for _, name := range slices.Sorted(maps.Keys(took[base.name])) {
		if len(took[head.name][name]) == 0 {
			fmt.Fprintf(stdout, "%-52s only in the base\n", label(pkg, name))
		}
	}
	return list, nil
}

// countAll counts several at a time: what else the machine does changes no count.
func countAll(ctx context.Context, o *options, list []*counter, base, head *revision) {
	var wg sync.WaitGroup
	next := make(chan *counter)
	for range o.workers {
		wg.Go(func() {
			for c := range next {
				c.count(ctx, o.runs, base, head)
			}
		})
	}
	for _, c := range list {
		next <- c
	}
	close(next)
	wg.Wait()
}

func (c *counter) count(ctx context.Context, runs int, base, head *revision) {
	for range runs {
		for _, r := range []*revision{base, head} {
			n, err := c.instructions(ctx, r)
			if err != nil {
				c.err = fmt.Errorf("count instructions of %s: %w", r.name, err)
				return
			}
			if r == base {
				c.base = append(c.base, n)
			} else {
				c.head = append(c.head, n)
			}
		}
	}
}

// instructions returns how many an operation takes.
func (c *counter) instructions(ctx context.Context, r *revision) (float64, error) {
	few, err := r.countProgram(ctx, c.pkg, c.name, c.span.few)
	if err != nil {
		return 0, err
	}
	many, err := r.countProgram(ctx, c.pkg, c.name, c.span.many)
	if err != nil {
		return 0, err
	}
	return (many - few) / float64(c.span.many-c.span.few), nil
}

var allocLine = regexp.MustCompile(`(?m)^(Benchmark\S+)\s.*?\s(\d+) B/op`)

var refsLine = regexp.MustCompile(`(?m)^==\d+== I\s+refs:\s+([\d,]+)`)

// countProgram returns how many instructions the test program takes with so many operations.
func (r *revision) countProgram(ctx context.Context, pkg, name string, ops int) (float64, error) {
	cmd := exec.CommandContext(ctx, "valgrind", "--tool=cachegrind", "--cache-sim=no", "--branch-sim=no", "--cachegrind-out-file=/dev/null",
		r.benchProgram(pkg), "-test.run", "^$", "-test.bench", exactly(name), "-test.benchtime", strconv.Itoa(ops)+"x", "-test.timeout", "30m")
	cmd.Dir, cmd.Env = filepath.Join(r.tree, pkg), append(r.benchEnv(), "GOGC=off", "GOMEMLIMIT=1GiB")
	text, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("run valgrind on %s with %d operations: %w: %s", name, ops, err, tail(string(text)))
	}
	return refsOf(string(text))
}

// refsOf reads the count that cachegrind prints.
func refsOf(text string) (float64, error) {
	m := refsLine.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("read count of cachegrind: got no line \"I refs\" in %q", tail(text))
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
	if err != nil {
		return 0, fmt.Errorf("read count of cachegrind: %w", err)
	}
	return n, nil
}

func tail(text string) string {
	const most = 400
	return strings.TrimSpace(text[max(0, len(text)-most):])
}

// exactly is the regexp of go test -bench for one benchmark.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

func (c *counter) report(w io.Writer, all *summary) {
	at := label(c.pkg, c.name)
	if c.err != nil {
		all.failed++
		fmt.Fprintf(w, "%-52s failed: %v\n", at, c.err)
		return
	}
	was, is := middle(c.base), middle(c.head)
	if was <= 0 || is <= 0 {
		all.failed++
		fmt.Fprintf(w, "%-52s %9d %14.0f %14.0f %7s  fewer with more operations: too few are counted\n", at, c.span.many, was, is, "-")
		return
	}
	mark := ""
	if is/was > slower {
		mark = "  more"
	}
	all.ratios = append(all.ratios, is/was)
	fmt.Fprintf(w, "%-52s %9d %14.0f %14.0f %7.3f  %-14s  %.0f, %.0f%s\n", at, c.span.many, was, is, is/was,
		fmt.Sprintf("%.1f %%, %.1f %%", spread(c.base), spread(c.head)), c.allocated[0], c.allocated[1], mark)
}

// summary is what all benchmarks say together.
type summary struct {
	ratios []float64
	failed int
}

func (s *summary) print(w io.Writer) {
	if len(s.ratios) == 0 {
		fmt.Fprintf(w, "\nno benchmark was counted, %d failed\n", s.failed)
		return
	}
	logs, above := 0.0, 0
	for _, r := range s.ratios {
		logs += math.Log(r)
		if r > slower {
			above++
		}
	}
	fmt.Fprintf(w, "\n%d benchmarks: geometric mean of the ratios %.3f, largest %.3f, %d above %.2f; %d failed\n",
		len(s.ratios), math.Exp(logs/float64(len(s.ratios))), slices.Max(s.ratios), above, slower, s.failed)
}
