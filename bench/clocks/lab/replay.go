// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/lockstep-otel/lockstep/bench/clocks/plan"
	"github.com/lockstep-otel/lockstep/internal/clock/pair"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// replay judges recordings once more: the same packets, through the estimators and the
// solver as they are now.
func replay(files []string, out io.Writer) error {
	if len(files) == 0 {
		return fmt.Errorf("parse arguments: got no recording; want one\n%s", usage)
	}
	var v verdicts
	for _, name := range files {
		p := player{estimators: map[[2]string]*pair.Estimator{}, stamps: map[[2]string]string{}}
		if err := readRecording(name, p.take); err != nil {
			return fmt.Errorf("replay %s: %w", name, err)
		}
		if p.judge == nil {
			return fmt.Errorf("replay %s: got no scenario; want one first", name)
		}
		p.print(name, out, &v)
	}
	return v.err()
}

// player takes a recording.
type player struct {
	scenario   scenario
	judge      *judge
	estimators map[[2]string]*pair.Estimator
	stamps     map[[2]string]string // kind of stamps, by pair of clocks
	cut        int64
}

func (p *player) take(e *entry) error {
	if s := e.Scenario; s != nil {
		p.scenario = scenario{name: s.Name, rate: s.Rate, k: s.K}
		if s.Changing {
			p.scenario.event = func(*plan.Clock, int64, float64) {}
		}
		if n := len(s.Nodes); n > 0 {
			p.scenario.liar = s.Nodes[n-1].Lie
			p.judge = newJudge(s.Nodes, &p.scenario)
		}
	}
	if p.judge == nil {
		return fmt.Errorf("take entry: got one before the scenario")
	}
	if e.Report != nil {
		p.judge.take(p.again(e.Report), e.Count)
	}
	if e.Solve {
		p.judge.solve(e.Count)
	}
	return nil
}

// again is a report with the estimates that its packets make now.
func (p *player) again(r *plan.Report) plan.Report {
	out := plan.Report{Node: r.Node, Counters: r.Counters}
	for _, e := range r.Edges {
		if e.Source == model.EdgeProbe {
			p.stamps[[2]string{e.Src, e.Dst}] = e.Stamps
		} else {
			out.Edges = append(out.Edges, e)
		}
	}
	for _, fed := range r.Fed {
		p.cut += fed.Cut
		key := [2]string{fed.Own, fed.Peer}
		if fed.Fresh || p.estimators[key] == nil {
			p.estimators[key] = pair.New(pair.Config{Window: window, Overlap: window}) // as package probe does
		}
		for _, in := range fed.Inputs {
			for _, est := range (pair.Input{Kind: pair.InputKind(in[0]), A: in[1], B: in[2], Width: in[3]}).Apply(p.estimators[key]) {
				out.Edges = append(out.Edges, est.Edge(fed.Own, fed.Peer, model.EdgeProbe, cmp.Or(p.stamps[key], model.StampKernel))) // before there was an edge, as most
			}
		}
	}
	return out
}

func (p *player) print(name string, out io.Writer, v *verdicts) {
	f := &p.judge.f
	fmt.Fprintf(out, "\n%s: %s, %d windows\n", name, p.scenario.name, f.solved)
	l := lab{out: out}
	l.printTally("pairs alone", &f.edges, &p.scenario, v)
	l.printTally("clocks of a host", &f.own, &p.scenario, v)
	l.printTally("raw clocks", &f.raw, &p.scenario, v)
	l.printTally("real-time clocks", &f.wall, &p.scenario, v)
	if p.judge.fixed {
		fmt.Fprintf(out, "  drift error p50 %.4f, p99 %.4f ppm (pairs alone: %.4f, %.4f)\n",
			f.drift.quantile(0.5), f.drift.quantile(0.99), f.slope.quantile(0.5), f.slope.quantile(0.99))
	}
	if p.cut > 0 {
		fmt.Fprintf(out, "  packets that were not recorded: %d\n", p.cut)
	}
	l.printUntrusted(f)
}
