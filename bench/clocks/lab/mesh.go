// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/lockstep-otel/lockstep/bench/clocks/plan"
	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/model"
)

const window = 2 * time.Second

// warmUp is how long a mesh runs before it is judged: two windows, and what the
// processes need to begin; at a low rate as long as the longest fits, since few packets
// say little before.
func (s *scenario) warmUp() time.Duration {
	if s.rate < 10 {
		return 34 * time.Second
	}
	return 6 * time.Second
}

// found is what a mesh found, against the truth.
type found struct {
	edges  tally          // each pair of raw clocks by itself
	own    tally          // both clocks of each host
	raw    tally          // raw clocks, solved together
	wall   tally          // real-time clocks, solved together
	drift  errors         // of raw clocks, solved together, ppm
	slope  errors         // of pairs alone, ppm
	solved int            // windows
	marked map[string]int // windows in which a clock was called untrusted
	pairs  int            // windows in which a pair contradicted itself undecided
	// others are the raw clocks that do not lie: solved with the liar's edges, and
	// without.
	with, without errors
	refused       map[string]int // edges, by node
	load          load
}

// tally compares offsets with the truth.
type tally struct {
	off, half       errors // of the estimate, of the bound
	checked, inside int
	misses          []string // the first bounds that missed
}

func (t *tally) bound(inside bool, describe func() string) {
	t.checked++
	if inside {
		t.inside++
	} else if len(t.misses) < 3 {
		t.misses = append(t.misses, describe())
	}
}

// runMesh runs a scenario's mesh for length and compares what it finds with the truth.
func (l *lab) runMesh(ctx context.Context, s *scenario) (f *found, err error) {
	// A second from now, so that every clock's first change lies ahead of its node.
	nodes := s.nodes(l.net, time.Now().Add(time.Second).UnixNano(), s.warmUp()+l.length, l.seed)
	for _, n := range nodes {
		n.Pure, n.Record = l.pure, l.folder != ""
	}
	rec, err := l.record(s, nodes)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closing := rec.close(); err == nil && closing != nil {
			f, err = nil, closing
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reports, ended := make(chan plan.Report, 1024), make(chan error, len(nodes))
	cs := &children{}
	defer cs.stop()
	for i, n := range nodes {
		c, out, err := l.startNode(ctx, l.net.names[i], n)
		if err != nil {
			return nil, err
		}
		*cs = append(*cs, c)
		go func() { ended <- fmt.Errorf("run node %s: %w: %s", n.Name, forward(ctx, out, reports), c.said()) }()
	}
	j := newJudge(nodes, s)
	j.f.load.begin()
	begin, end := time.Now(), time.Now().Add(s.warmUp()+l.length)
	for next := nextSolve(begin); ; {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("run mesh: %w", ctx.Err())
		case err := <-ended:
			return nil, err
		case r := <-reports:
			count := time.Since(begin) > s.warmUp()
			rec.write(entry{Report: &r, Count: count})
			j.take(r, count)
		case now := <-time.After(time.Until(next)):
			count := now.Sub(begin) > s.warmUp()
			rec.write(entry{Solve: true, Count: count})
			if j.solve(count); now.After(end) {
				j.f.load.end()
				return &j.f, nil
			}
			next = nextSolve(now)
		}
	}
}

// nextSolve is when all nodes have reported a window and none the next. Windows end at
// multiples of their length of the nodes' real-time clocks, which are off by much less
// than half a second, and are reported one to two seconds after that.
func nextSolve(now time.Time) time.Time {
	const phase = 500 * time.Millisecond
	next := now.Truncate(window).Add(phase)
	if !next.After(now) {
		next = next.Add(window)
	}
	return next
}

// startNode starts a node; what it reports can be read from out.
func (l *lab) startNode(ctx context.Context, namespace string, n *plan.Node) (c *child, out io.ReadCloser, err error) {
	content, err := json.Marshal(n)
	if err != nil {
		return nil, nil, fmt.Errorf("write plan: %w", err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	defer in.Close()
	c, err = startChild(ctx, l.dir, namespace, in, bytes.NewReader(content), l.node)
	if err != nil {
		out.Close()
	}
	return c, out, err
}

// forward hands on reports until the node ends, which it should not.
func forward(ctx context.Context, from io.ReadCloser, to chan<- plan.Report) error {
	defer from.Close()
	for lines := json.NewDecoder(from); ; {
		var r plan.Report
		if err := lines.Decode(&r); err != nil {
			return fmt.Errorf("read report: %w", err)
		}
		select {
		case to <- r:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// judge solves what the nodes report and compares it with the truth.
type judge struct {
	truth truth
	liar  string // its raw clock; empty where nobody lies
	lies  bool   // and is not only slow, so that nothing is known of it
	fixed bool   // no clock changes its rate
	all   *graph.Solver
	rest  *graph.Solver // without the liar
	f     found
}

func newJudge(nodes []*plan.Node, s *scenario) *judge {
	first := graph.Options{Prefer: []string{plan.RawClock(nodes[0].Name)}}
	j := &judge{truth: newTruth(nodes), fixed: s.event == nil, all: graph.New(first), rest: graph.New(first)}
	j.f.marked, j.f.refused = map[string]int{}, map[string]int{}
	if s.liar.Kind != "" {
		j.liar, j.lies = plan.RawClock(nodes[len(nodes)-1].Name), s.liar.Kind != plan.Asymmetric
	}
	return j
}

func (j *judge) take(r plan.Report, count bool) {
	j.f.load.take(r)
	for _, e := range r.Edges {
		if err := j.all.Add(e); err != nil {
			j.f.refused[r.Node]++
		}
		if e.Src != j.liar && e.Dst != j.liar {
			_ = j.rest.Add(e) // as above
		}
		if count {
			j.edge(&e)
		}
	}
}

// edge compares an edge with the truth: at its centre and, moved by its drift, at both of
// its ends.
func (j *judge) edge(e *model.ClockEdge) {
	want, ok := j.truth.offset(e.Src, e.Dst, e.At)
	if !ok || e.Lower == model.NoLower || e.Upper == model.NoUpper {
		return
	}
	t := &j.f.own
	if e.Source == model.EdgeProbe {
		t = &j.f.edges
		if now, ok := j.truth.when(e.Src, e.At); ok && j.fixed {
			j.f.slope.add((e.Drift - j.truth.drift(e.Src, e.Dst, now)) * 1e6)
		}
	}
	t.off.add(float64(e.Offset - want))
	t.half.add(e.Width() / 2)
	for _, since := range []int64{-e.Span / 2, 0, e.Span / 2} {
		want, ok := j.truth.offset(e.Src, e.Dst, e.At+since)
		if !ok {
			continue
		}
		moved, more := e.Drift*float64(since), e.DriftBound*math.Abs(float64(since))
		lower, upper := float64(e.Lower-want)+moved-more, float64(e.Upper-want)+moved+more
		t.bound(lower <= 0 && 0 <= upper, func() string {
			return fmt.Sprintf("%s to %s at %d and %d ns: bounds %.0f and %.0f about the truth", e.Src, e.Dst, e.At, since, lower, upper)
		})
	}
}

func (j *judge) solve(count bool) {
	all, rest := j.all.Solve(), j.rest.Solve()
	if !count {
		return
	}
	j.f.solved++
	j.f.pairs += len(all.Undecided())
	for _, m := range all.Models() {
		if m.Untrusted {
			j.f.marked[m.Clock]++
			continue
		}
		if m.Clock != j.liar || !j.lies {
			j.model(&m)
		}
		if other, ok := rest.Model(m.Clock); ok && isRaw(m.Clock) && m.Clock != j.liar {
			j.f.with.add(j.off(&m, m.At))
			j.f.without.add(j.off(&other, other.At))
		}
	}
}

// off is by how much a model is off at a reading; NaN where the truth has no such
// reading.
func (j *judge) off(m *graph.Solved, at int64) float64 {
	want, ok := j.truth.offset(m.Clock, m.Reference, at)
	if !ok {
		return math.NaN()
	}
	return float64(m.Offset-want) + m.Drift*float64(at-m.At)
}

func (j *judge) model(m *graph.Solved) {
	if m.Clock == m.Reference {
		return
	}
	t := &j.f.wall
	if isRaw(m.Clock) {
		t = &j.f.raw
	}
	// Of a clock that changed, the solution's instant may not be in what is spoken of.
	off := j.off(m, min(max(m.At, m.From), m.Until))
	if math.IsNaN(off) {
		return
	}
	t.off.add(off)
	if isRaw(m.Clock) && j.fixed {
		now, _ := j.truth.when(m.Clock, m.At)
		j.f.drift.add((m.Drift - j.truth.drift(m.Clock, m.Reference, now)) * 1e6)
	}
	if !m.Bounded {
		return
	}
	t.half.add(float64(m.Bound))
	for _, at := range []int64{m.From, m.At, m.Until} {
		off := j.off(m, at)
		// What the solution's instant is before or after was not observed there.
		if math.IsNaN(off) || at < m.From || at > m.Until {
			continue
		}
		t.bound(math.Abs(off) <= float64(m.Bound), func() string {
			return fmt.Sprintf("%s at %d, %d ns from the solution: off by %.0f; bound %d", m.Clock, at, at-m.At, off, m.Bound)
		})
	}
}
