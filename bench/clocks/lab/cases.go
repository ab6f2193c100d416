// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/bench/clocks/plan"
)

// What the mesh is to reach between namespaces.
const (
	aimIdle  = 200  // ns, p99 of the offset's error
	aimBusy  = 1000 // with all cores busy
	aimDrift = 0.1  // ppm
	aimGrown = 1.1  // the others' error beside a liar, over that without it
	aimRatio = 10   // chronyd's and ptp4l's p99 over ours, busy
)

// loads names what the machine does beside the mesh.
var loads = map[bool]string{false: "idle", true: "busy"}

// under runs f idle or with all cores busy.
func (l *lab) under(ctx context.Context, busy bool, f func() error) error {
	if busy {
		load, err := startLoad(ctx, l.dir)
		if err != nil {
			return err
		}
		defer load.stop()
	}
	return f()
}

// verdicts collects the goals that were missed.
type verdicts []string

func (v *verdicts) check(ok bool, format string, args ...any) string {
	if ok {
		return "met"
	}
	*v = append(*v, fmt.Sprintf(format, args...))
	return "MISSED"
}

func (v verdicts) err() error {
	if len(v) == 0 {
		return nil
	}
	return fmt.Errorf("meet goals: missed %d:\n  %s", len(v), strings.Join(v, "\n  "))
}

// rates measures the mesh at rising rates, idle and busy.
func (l *lab) rates(ctx context.Context) error {
	var v verdicts
	fmt.Fprintf(l.out, "# %d nodes, offsets of ±%v, drifts of ±%.0f ppm, kernel stamps; errors in ns against the exact truth\n",
		l.nodes, time.Duration(maxOffset), maxDrift*1e6)
	fmt.Fprintf(l.out, "# packets/s are those to each neighbour; each is answered. Goals: p99 of %d idle, %d busy; drift %.1f ppm; all bounds hold\n",
		aimIdle, aimBusy, aimDrift)
	for _, busy := range []bool{false, true} {
		for _, s := range []scenario{{rate: 1, k: 10}, {rate: 10, k: 10}, {rate: 100, k: 10}, {rate: 1000, k: 2}} {
			s.name = fmt.Sprintf("%s %4.0f/s", loads[busy], s.rate)
			if !strings.Contains(s.name, l.only) {
				continue
			}
			err := l.under(ctx, busy, func() error {
				f, err := l.runMesh(ctx, &s)
				if err == nil {
					l.printRates(&s, f, busy, &v)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return v.err()
}

func (l *lab) printRates(s *scenario, f *found, busy bool, v *verdicts) {
	aim := float64(aimIdle)
	if busy {
		aim = aimBusy
	}
	fmt.Fprintf(l.out, "\n%s, %d neighbours, %d windows\n", s.name, min(s.k, l.nodes-1), f.solved)
	l.printTally("pairs alone", &f.edges, s, v)
	l.printTally("clocks of a host", &f.own, s, v)
	l.printTally("raw clocks", &f.raw, s, v)
	l.printTally("real-time clocks", &f.wall, s, v)
	p99, drift := f.raw.off.quantile(0.99), f.drift.quantile(0.99)
	fmt.Fprintf(l.out, "  offset p99 %.0f ns: %s; drift error p50 %.4f, p99 %.4f ppm: %s (pairs alone: %.4f, %.4f)\n", p99,
		v.check(p99 <= aim, "%s: offset p99 %.0f ns; want %.0f", s.name, p99, aim), f.drift.quantile(0.5), drift,
		v.check(drift <= aimDrift, "%s: drift p99 %.4f ppm; want %.1f", s.name, drift, aimDrift),
		f.slope.quantile(0.5), f.slope.quantile(0.99))
	l.printMarks(f)
}

func (l *lab) printTally(what string, t *tally, s *scenario, v *verdicts) {
	fmt.Fprintf(l.out, "  %-17s error p50 p99 max %s; bound %s; holds in %s: %s\n", what, t.off, t.half, share(t.inside, t.checked),
		v.check(t.checked > 0 && t.inside == t.checked, "%s: %s: bounds hold in %s", s.name, what, share(t.inside, t.checked)))
	for _, miss := range t.misses {
		fmt.Fprintf(l.out, "    missed: %s\n", miss)
	}
}

// printMarks tells who was called untrusted, and what was refused.
func (l *lab) printMarks(f *found) {
	fmt.Fprintf(l.out, "  %s\n", &f.load)
	l.printUntrusted(f)
}

func (l *lab) printUntrusted(f *found) {
	for _, clock := range slices.Sorted(maps.Keys(f.marked)) {
		fmt.Fprintf(l.out, "  untrusted: %s in %d of %d windows\n", clock, f.marked[clock], f.solved)
	}
	if f.pairs > 0 {
		fmt.Fprintf(l.out, "  pairs that contradict themselves undecided: %d in %d windows\n", f.pairs, f.solved)
	}
	if len(f.refused) > 0 {
		fmt.Fprintf(l.out, "  edges refused, by node: %v\n", f.refused)
	}
}

// changes steps and slews clocks in mid-window; all bounds have to hold.
func (l *lab) changes(ctx context.Context) error {
	var v verdicts
	fmt.Fprintln(l.out, "# every clock changes every 4 to 5 s, at a random moment, and no two within less than exchanges take; the bounds have to hold in all windows")
	for _, rate := range []float64{10, 100} {
		for _, s := range []scenario{
			{name: "raw frequency, 0.1 ppm", event: rawRate(0.1e-6)},
			{name: "raw frequency, 1 ppm", event: rawRate(1e-6)},
			{name: "raw frequency, 50 ppm", event: rawRate(50e-6)},
			{name: "raw frequency, 500 ppm", event: rawRate(500e-6)},
			{name: "raw steps of 100 ms", event: rawStep(100 * time.Millisecond)},
			{name: "real-time slews of 500 ppm", event: realtimeSlew},
			{name: "real-time steps of 100 ms", event: realtimeStep(100 * time.Millisecond)},
		} {
			s.name = fmt.Sprintf("%s at %.0f/s", s.name, rate)
			if s.rate, s.k = rate, 10; !strings.Contains(s.name, l.only) {
				continue
			}
			f, err := l.runMesh(ctx, &s)
			if err != nil {
				return err
			}
			fmt.Fprintf(l.out, "\n%s, %d windows\n", s.name, f.solved)
			l.printTally("pairs alone", &f.edges, &s, &v)
			l.printTally("clocks of a host", &f.own, &s, &v)
			l.printTally("raw clocks", &f.raw, &s, &v)
			l.printTally("real-time clocks", &f.wall, &s, &v)
			l.printMarks(f)
		}
	}
	return v.err()
}

// liars has one node answer wrongly: it alone has to be marked, above some size.
func (l *lab) liars(ctx context.Context) error {
	var v verdicts
	fmt.Fprintln(l.out, "# the last node answers wrongly, at 100 packets/s; the others' error with its edges over that without them has to stay below 1.1")
	for _, kind := range []string{plan.Different, plan.Inconsistent, plan.Replayed} {
		least, ran := "no size", false
		for _, size := range sizes(kind) {
			s := scenario{name: fmt.Sprintf("%s %v", kind, time.Duration(size)), rate: 100, k: 10, liar: plan.Lie{Kind: kind, Size: size}}
			if !strings.Contains(s.name, l.only) {
				continue
			}
			f, err := l.runMesh(ctx, &s)
			if err != nil {
				return err
			}
			ran = true
			if l.printLiar(&s, f, &v) && least == "no size" {
				least = time.Duration(size).String()
			}
		}
		if ran {
			fmt.Fprintf(l.out, "\n%s: the liar alone is marked in all windows from %s on: %s\n", kind, least,
				v.check(least != "no size", "%s: the liar is never marked", kind))
		}
	}
	return l.asymmetric(ctx, &v)
}

func sizes(kind string) []int64 {
	if kind == plan.Replayed {
		return []int64{100e3, 1e6, 10e6, 100e6}
	}
	return []int64{1e3, 3e3, 10e3, 30e3, 100e3}
}

// printLiar says whether the liar alone was marked, in all windows.
func (l *lab) printLiar(s *scenario, f *found, v *verdicts) bool {
	liar := plan.RawClock(fmt.Sprintf("n%d", l.nodes-1))
	_, marked := f.marked[liar]
	alone := marked && len(f.marked) == 1
	if !marked {
		alone = len(f.marked) == 0
	}
	grown := f.with.rms() / f.without.rms()
	fmt.Fprintf(l.out, "\n%s: marked in %d of %d windows; nobody else: %s; others' error (median; root mean square; p99) %.0f; %.0f; %.0f ns with it, %.0f; %.0f; %.0f without: root mean square %.2f times, %s\n",
		s.name, f.marked[liar], f.solved, v.check(alone, "%s: marked %v", s.name, f.marked),
		f.with.quantile(0.5), f.with.rms(), f.with.quantile(0.99), f.without.quantile(0.5), f.without.rms(), f.without.quantile(0.99), grown,
		v.check(grown < aimGrown, "%s: the others' error grew by %.2f; want less than %.1f", s.name, grown, aimGrown))
	l.printTally("the others", &f.raw, s, v)
	l.printMarks(f)
	return f.solved > 0 && f.marked[liar] == f.solved && alone
}

// asymmetric delays all that one node sends by 100 µs. That is no lie and cannot
// be seen from inside: nothing may be found, and the bound has to contain it.
func (l *lab) asymmetric(ctx context.Context, v *verdicts) error {
	s := scenario{name: "transmit late by 100µs", rate: 100, k: 10, liar: plan.Lie{Kind: plan.Asymmetric, Size: 100e3}}
	if !strings.Contains(s.name, l.only) {
		return v.err()
	}
	f, err := l.runMesh(ctx, &s)
	if err != nil {
		return err
	}
	fmt.Fprintf(l.out, "\n%s, %d windows: nobody marked: %s\n", s.name, f.solved,
		v.check(len(f.marked)+f.pairs == 0, "%s: marked %v, %d pairs", s.name, f.marked, f.pairs))
	l.printTally("pairs alone", &f.edges, &s, v)
	l.printTally("raw clocks", &f.raw, &s, v)
	l.printMarks(f)
	return v.err()
}

// compare measures chronyd, ptp4l and the mesh one after the other, in the same
// namespaces, at equal packets per second between two nodes.
func (l *lab) compare(ctx context.Context) error {
	var v verdicts
	fmt.Fprintln(l.out, "# chronyd -x, xleave; ptp4l with software stamps, free running; each as often as the mesh, both ways")
	fmt.Fprintln(l.out, "# errors in ns against the truth, p50, p99, max; chronyd: its estimate; ptp4l: its offsets, and their medians over 2 s")
	for _, log := range []int{3, 6} {
		for _, busy := range []bool{false, true} {
			s := scenario{name: fmt.Sprintf("%s %d/s", loads[busy], 1<<log), rate: float64(int(1) << log), k: 10}
			if !strings.Contains(s.name, l.only) {
				continue
			}
			fmt.Fprintf(l.out, "\n%s: chronyd minpoll = maxpoll = %d; ptp4l logSyncInterval = logMinDelayReqInterval = %d\n", s.name, -log, -log)
			err := l.under(ctx, busy, func() error { return l.compareAt(ctx, &s, log, busy, &v) })
			if err != nil {
				return err
			}
		}
	}
	return v.err()
}

func (l *lab) compareAt(ctx context.Context, s *scenario, log int, busy bool, v *verdicts) error {
	f, err := l.runMesh(ctx, s)
	if err != nil {
		return err
	}
	c, err := runChrony(ctx, l.net, l.dir, -log, l.length)
	if err != nil {
		return err
	}
	p, err := runPTP(ctx, l.net, l.dir, -log, l.length)
	if err != nil {
		return err
	}
	fmt.Fprintf(l.out, "ours: %s\n", &f.load)
	for name, d := range map[string]*daemonErrors{"chronyd": &c, "ptp4l": &p} {
		if d.failed > 0 {
			fmt.Fprintf(l.out, "%s: followed nobody in %s of the time\n", name, share(d.failed, d.asked))
		}
	}
	ours := f.raw.off.quantile(0.99)
	for _, row := range []struct {
		name string
		errors
		aim bool
	}{
		{"ours, all solved", f.raw.off, false},
		{"ours, pairs alone", f.edges.off, false},
		{"chronyd", c.each, true},
		{"ptp4l", p.each, true},
		{"ptp4l, medians", p.windows, true},
	} {
		ratio := row.quantile(0.99) / ours
		fmt.Fprintf(l.out, "%-12s %-18s %s  p99 over ours: %.1f", s.name, row.name, row.errors, ratio)
		if row.aim && busy {
			fmt.Fprintf(l.out, " (goal %d: %s)", aimRatio, v.check(ratio >= aimRatio, "%s: %s: p99 %.1f times ours; want %d", s.name, row.name, ratio, aimRatio))
		}
		fmt.Fprintln(l.out)
	}
	return nil
}
