// SPDX-License-Identifier: Apache-2.0

// Package cupti is the part of the GPU kit that compares what our CUPTI client
// records of training steps with what torch.profiler records of the same ones.
package cupti

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// warmUp is how long the others wait for a program that compiles.
const warmUp = 50 * time.Second

var modes = []string{"eager", "compile", "graph"}

// Run runs the part.
func Run(ctx context.Context, k *kit.Kit, p *report.Part) {
	if reason := unable(k); reason != "" {
		p.Add("start", report.NotShown, reason)
		return
	}
	r := &runner{kit: k, part: p, right: report.Shown}
	if k.GPU == nil {
		r.right = report.StandIn
	}
	r.run(ctx)
}

// unable returns why nothing can be run; empty where something can.
func unable(k *kit.Kit) string {
	switch {
	case k.Python == "":
		return "no python3, which runs the training step: " + k.Reason
	case k.GPU != nil && k.Torch == nil:
		return "no PyTorch: " + k.Reason
	}
	return ""
}

type runner struct {
	kit      *kit.Kit
	part     *report.Part
	right    report.Status
	programs map[string]*program
	without  bool // no libcupti, which a check reports
}

func (r *runner) run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r.programs = map[string]*program{}
	// Each waits, warmed up, for its turn, so that only one uses the device where times
	// are compared. Those of which counts alone are compared need no turn.
	for _, g := range []*program{
		{name: "before", plan: "before", mode: "eager"},
		{name: "silent", plan: "silent", mode: "eager"},
		{name: "teardown", plan: "compare", mode: "eager", env: []string{"TEARDOWN_CUPTI=1"}, limit: teardownLimit},
		{name: "compile", plan: "compare", mode: "compile", wait: "go-compile"},
		{name: "eager", plan: "compare", mode: "eager", wait: "go-eager"},
		{name: "graph", plan: "compare", mode: "graph", wait: "go-graph"},
		{name: "alone", plan: "alone", mode: "eager", wait: "go-alone"},
	} {
		g.injected = true
		if g.wait != "" {
			g.wait = filepath.Join(r.kit.Work, g.wait)
		}
		r.programs[g.name] = g
		g.begin(ctx, r.kit)
	}
	for _, name := range []string{"before", "silent", "teardown"} {
		<-r.programs[name].done
	}
	r.countsOnly(ctx)
	if r.without { // the others lack it, too
		stop()
		for _, g := range r.programs {
			<-g.done
		}
		r.keep()
		return
	}
	for _, name := range []string{"eager", "graph", "alone"} {
		r.programs[name].ready(ctx, warmUp)
	}
	compiled := r.programs["compile"].ready(ctx, warmUp)
	for _, name := range []string{"eager", "graph"} {
		r.mode(ctx, r.programs[name])
	}
	r.alone(ctx, r.programs["alone"])
	if compiled {
		r.mode(ctx, r.programs["compile"])
	}
	r.keep()
	r.turns(ctx)
	r.timer(ctx)
	if !compiled {
		r.mode(ctx, r.programs["compile"]) // it has had more time to compile
		r.keep()
	}
}

func (r *runner) add(checks ...report.Check) {
	for _, c := range checks {
		r.part.Add(c.Name, c.Status, c.Text, c.Figures...)
	}
}

// session opens what a program left, or adds a check with the reason. A program that
// was through and then broke as it ended has left all.
func (r *runner) session(ctx context.Context, g *program) *session {
	if !r.started(g) {
		return nil
	}
	if g.err != nil {
		r.part.Add(g.name+"-run", statusOf(g.err), g.err.Error())
		if g.Done == 0 || g.Error != "" {
			return nil
		}
	}
	s, err := open(ctx, g, r.right)
	if err != nil {
		r.part.Add(g.name+"-run", report.Failed, err.Error())
		return nil
	}
	return s
}

// statusOf tells a machine that cannot compile from a failure.
func statusOf(err error) report.Status {
	for _, lacks := range []string{"Failed to find C compiler", "Cannot find a working triton", "No module named 'triton'", "Python.h", "bin/gcc'", "bin/cc'", "bin/clang'"} {
		if strings.Contains(err.Error(), lacks) {
			return report.NotShown
		}
	}
	return report.Failed
}

func (r *runner) countsOnly(ctx context.Context) {
	if s := r.session(ctx, r.programs["before"]); s != nil {
		r.add(s.first())
	}
	if s := r.session(ctx, r.programs["silent"]); s != nil {
		r.add(s.unpaused()...)
	}
	g := r.programs["teardown"]
	if r.kit.GPU == nil {
		<-g.done
		r.part.Add("resume-after-teardown", report.NotShown, "TEARDOWN_CUPTI=1 is PyTorch's: the stand-in of torch.profiler does not know it")
		return
	}
	if s := r.session(ctx, g); s != nil {
		r.add(s.teardown())
	}
}

func (r *runner) mode(ctx context.Context, g *program) {
	g.company = r.company(g)
	if err := g.release(); err != nil {
		r.part.Add(g.name+"-run", report.Failed, err.Error())
		return
	}
	if s := r.session(ctx, g); s != nil {
		r.add(s.all()...)
	}
}

func (r *runner) alone(ctx context.Context, g *program) {
	g.company = r.company(g)
	if err := g.release(); err != nil {
		r.part.Add(g.name+"-run", report.Failed, err.Error())
		return
	}
	s := r.session(ctx, g)
	if s == nil {
		return
	}
	s.mode = g.name
	before, _ := s.ours()
	r.add(s.exit(), s.drops(), s.names(before))
	if r.kit.GPU == nil {
		r.add(s.brackets(), s.drift())
		r.part.Add("device", report.NotShown, "the stand-in has no driver that names the GPU")
		r.part.Add("cost-recording", report.NotShown, "the stand-in has no kernels whose launches could cost more")
		return
	}
	r.add(s.device(map[string]string{"PyTorch": s.facts.UUID, "nvidia-smi": r.smi(ctx)}))
	r.add(s.brackets(), s.drift(), s.cost())
}

func (r *runner) smi(ctx context.Context) string {
	path := kit.SMI()
	if path == "" {
		return ""
	}
	out, err := r.kit.Run(ctx, kit.Command{Path: path, Args: []string{"--query-gpu=uuid", "--format=csv,noheader"}, Limit: 20 * time.Second})
	if err != nil {
		return ""
	}
	return out.Stdout
}

// company returns what else uses the device while a program runs; empty where nothing does.
func (r *runner) company(of *program) string {
	if r.kit.Busy != "" {
		return r.kit.Busy
	}
	for _, name := range slices.Sorted(maps.Keys(r.programs)) {
		if g := r.programs[name]; g != of && !g.quiet() {
			return name + " runs, too"
		}
	}
	return ""
}

// turns compares processes without the library, with it at rest, and recording.
func (r *runner) turns(ctx context.Context) {
	if r.kit.GPU == nil {
		r.part.Add("cost-of-injection", report.NotShown, "a process without the library has nothing to be compared with on the stand-in")
		return
	}
	folder := filepath.Join(r.kit.Work, "turns")
	kinds := []*program{{name: "without"}, {name: "at-rest", injected: true, atRest: true}, {name: "recording", injected: true}}
	for i, g := range kinds {
		g.plan, g.mode, g.wait, g.me, g.of = "turns", "eager", folder, i, len(kinds)
	}
	if err := makeFolder(folder); err != nil {
		r.part.Add("cost-of-injection", report.Failed, err.Error())
		return
	}
	company := r.company(nil)
	for _, g := range kinds {
		g.begin(ctx, r.kit)
	}
	for _, g := range kinds {
		<-g.done
	}
	for _, g := range kinds {
		if g.err != nil {
			r.part.Add("cost-of-injection", report.Failed, g.name+": "+g.err.Error())
			return
		}
	}
	r.compareTurns(kinds[0], kinds[1], kinds[2], company)
}

// compareTurns adds what the library costs at rest and recording, each only where the
// program's ring has it so.
func (r *runner) compareTurns(without, atRest, recording *program, company string) {
	r.costOf("cost-at-rest", "paused", atRest, atRest.rested(), without, company)
	r.costOf("cost-of-injection", "recording", recording, recording.recorded(), without, company)
}

func (r *runner) costOf(name, state string, with *program, err error, without *program, company string) {
	if err != nil {
		r.part.Add(name, report.Failed, with.name+": "+err.Error())
		return
	}
	r.add(costBetween(name, state, with.Turns, without.Turns, r.right, company))
}
