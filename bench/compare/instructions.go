// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
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

// Where other machines share the processor, the time of one program differs from run to run. The
// instructions that it executes do not: valgrind's cachegrind counts them on a simulated processor
// (Nethercote and Seward, PLDI 2007). They say nothing of caches, branches and waiting. The garbage
// collector, whose work depends on the time, is off until a program takes 1 GiB: the bytes that are
// allocated stand for it. In a larger program it runs, so that memory has a limit, and is counted.

const (
	// counted is for how many ns without valgrind a benchmark's operations are counted; with it they take
	// some hundred times as long.
	counted = 60e6
	// fewest operations are counted, however long one takes.
	fewest = 4
	// unsteady is from which spread, in percent, a ratio says nothing.
	unsteady = 5
	// tooLong is from how many ns without valgrind the fewest operations are not counted: that is minutes with it.
	tooLong = 4e8
)

// span are the numbers of operations at which a benchmark's program is counted. The difference is free of
// what the program does before and after them, but not of what it does for each with the timer stopped.
type span struct{ few, many int }

// each returns how many instructions an operation takes, by those of the program with few and with many.
func (s span) each(few, many float64) float64 { return (many - few) / float64(s.many-s.few) }

// spanOf chooses them by the ns that an operation takes, and multiplies them by a factor.
func spanOf(ns float64, factor int) span {
	many := int(min(max(counted/ns, fewest), 1e6)) * factor
	return span{few: max(many/4, 2), many: many}
}

// counter counts the instructions of one benchmark.
type counter struct {
	pkg, name string
	span      span
	base      []float64 // instructions per operation, one a run
	head      []float64
	allocated map[*revision]float64 // bytes per operation
	untimed   bool                  // it stops the timer: work that is not timed is counted
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
		list := counters(ctx, o, pkg, base, head, all, stdout)
		countAll(ctx, o, list, base, head)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, c := range list {
			c.report(stdout, base, head, all)
		}
	}
	return all.write(stdout)
}

// counters finds the benchmarks that both revisions have.
func counters(ctx context.Context, o *options, pkg string, base, head *revision, all *summary, stdout io.Writer) (list []*counter) {
	const short = "10ms"
	took := map[*revision]times{base: {}, head: {}}
	for _, r := range []*revision{base, head} {
		text, err := r.runBenchmarks(ctx, pkg, o.benchmarks, short)
		if err != nil {
			all.failed++
			fmt.Fprintf(stdout, "failed: %s of %s: %v\n", pkg, r.name, err)
		}
		took[r].add(text)
	}
	stops := stopTimer(filepath.Join(head.tree, pkg))
	for _, name := range slices.Sorted(maps.Keys(took[head])) {
		was := took[base][name]
		if len(was) == 0 {
			fmt.Fprintf(stdout, "%-52s only in the head\n", label(pkg, name))
			continue
		}
		// The faster of both: what else the machine does makes a program slower, never faster.
		ns := min(middle(was), middle(took[head][name]))
		if ns*fewest > tooLong {
			all.left++
			fmt.Fprintf(stdout, "%-52s not counted: an operation takes %.1f s\n", label(pkg, name), ns/1e9)
			continue
		}
		top, _, _ := strings.Cut(name, "/")
		list = append(list, &counter{pkg: pkg, name: name, span: spanOf(ns, o.times), untimed: stops[top], allocated: map[*revision]float64{}})
	}
	for _, name := range slices.Sorted(maps.Keys(took[base])) {
		if len(took[head][name]) == 0 {
			fmt.Fprintf(stdout, "%-52s only in the base\n", label(pkg, name))
		}
	}
	return list
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
	few, _, err := r.countProgram(ctx, c.pkg, c.name, c.span.few)
	if err != nil {
		return 0, err
	}
	many, allocated, err := r.countProgram(ctx, c.pkg, c.name, c.span.many)
	if err != nil {
		return 0, err
	}
	c.allocated[r] = allocated
	return c.span.each(few, many), nil
}

// countProgram returns how many instructions the test program takes with so many operations, and how many
// bytes an operation allocates.
func (r *revision) countProgram(ctx context.Context, pkg, name string, ops int) (refs, allocated float64, err error) {
	cmd := exec.CommandContext(ctx, "valgrind", "--tool=cachegrind", "--cache-sim=no", "--branch-sim=no", "--cachegrind-out-file=/dev/null",
		r.benchProgram(pkg), "-test.run", "^$", "-test.bench", exactly(name), "-test.benchtime", strconv.Itoa(ops)+"x", "-test.benchmem", "-test.timeout", "30m")
	cmd.Dir, cmd.Env = filepath.Join(r.tree, pkg), append(r.benchEnv(), "GOGC=off", "GOMEMLIMIT=1GiB")
	text, err := cmd.CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("run valgrind on %s with %d operations: %w: %s", name, ops, err, tail(string(text)))
	}
	return refsOf(string(text))
}

var (
	refsLine  = regexp.MustCompile(`(?m)^==\d+== I\s+refs:\s+([\d,]+)`)
	allocLine = regexp.MustCompile(`\s(\d+) B/op`)
)

// refsOf reads the counts that cachegrind and the benchmark print.
func refsOf(text string) (refs, allocated float64, err error) {
	m, of := refsLine.FindStringSubmatch(text), allocLine.FindStringSubmatch(text)
	if m == nil || of == nil {
		return 0, 0, fmt.Errorf("read counts of cachegrind and benchmark: got %q; want lines with \"I refs\" and \"B/op\"", tail(text))
	}
	refs, err = strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
	if err != nil {
		return 0, 0, fmt.Errorf("read count of cachegrind: %w", err)
	}
	allocated, err = strconv.ParseFloat(of[1], 64)
	if err != nil {
		return 0, 0, fmt.Errorf("read bytes of benchmark: %w", err)
	}
	return refs, allocated, nil
}

// stopTimer names the benchmarks of a folder that stop the timer, by themselves or by functions of its
// tests that they name. A name counts whatever bears it: a variable named as such a function, too.
func stopTimer(folder string) map[string]bool {
	uses := namesOf(folder)
	seen, stops := map[string]bool{}, map[string]bool{}
	for next := []string{"StopTimer"}; len(next) > 0; next = next[1:] {
		for name, used := range uses {
			if !used[next[0]] || seen[name] {
				continue
			}
			seen[name] = true
			next = append(next, name)
			if strings.HasPrefix(name, "Benchmark") {
				stops[name] = true
			}
		}
	}
	return stops
}

// namesOf returns which names each function of a folder's tests has in its body. Methods with one name
// count as one.
func namesOf(folder string) map[string]map[string]bool {
	uses := map[string]map[string]bool{}
	files, _ := filepath.Glob(filepath.Join(folder, "*_test.go"))
	for _, file := range files {
		f, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			continue // the compiler has said so
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			used := uses[fn.Name.Name]
			if used == nil {
				used = map[string]bool{}
				uses[fn.Name.Name] = used
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					used[id.Name] = true
				}
				return true
			})
		}
	}
	return uses
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

func (c *counter) report(w io.Writer, base, head *revision, all *summary) {
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
	switch {
	case max(spread(c.base), spread(c.head)) > unsteady:
		mark = "  unsteady"
		all.unsteady++
	default:
		all.ratios = append(all.ratios, is/was)
		if is/was > slower {
			mark = "  more"
		}
	}
	if c.untimed {
		mark += "  with what is not timed"
	}
	fmt.Fprintf(w, "%-52s %9d %14.0f %14.0f %7.3f  %-14s  %.0f, %.0f%s\n", at, c.span.many, was, is, is/was,
		fmt.Sprintf("%.1f %%, %.1f %%", spread(c.base), spread(c.head)), c.allocated[base], c.allocated[head], mark)
}

// summary is what all benchmarks say together.
type summary struct {
	ratios   []float64 // of those that are steady
	unsteady int
	failed   int
	left     int // an operation takes too long
}

func (s *summary) write(w io.Writer) error {
	if len(s.ratios) == 0 {
		return fmt.Errorf("count instructions: got %d benchmarks that failed, %d unsteady, %d too long; want one that can be counted", s.failed, s.unsteady, s.left)
	}
	logs, above := 0.0, 0
	for _, r := range s.ratios {
		logs += math.Log(r)
		if r > slower {
			above++
		}
	}
	fmt.Fprintf(w, "\n%d benchmarks: geometric mean of the ratios %.3f, largest %.3f, %d above %.2f; %d unsteady, %d not counted, %d failed\n",
		len(s.ratios), math.Exp(logs/float64(len(s.ratios))), slices.Max(s.ratios), above, slower, s.unsteady, s.left, s.failed)
	if s.failed > 0 {
		return fmt.Errorf("count instructions: %d failed", s.failed)
	}
	return nil
}
