// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// load reads the scenario file and lists the jobs that the flags ask for, and those of
// growing size.
func load(o *options) (tasks, growing []*task, err error) {
	all, err := training.Load(o.scenarios)
	if err != nil {
		return nil, nil, err
	}
	for i := range all.Cases {
		c := &all.Cases[i]
		if !slices.Contains(o.parts, partOf(c)) || !o.cases.MatchString(c.Name) && !o.cases.MatchString(c.Family) {
			continue
		}
		list, err := o.jobs(c, all.Small)
		if err != nil {
			return nil, nil, err
		}
		tasks = append(tasks, list...)
	}
	if len(tasks) == 0 && !slices.Contains(o.parts, partGrowth) {
		return nil, nil, fmt.Errorf("select cases: got none for %q; want some", o.cases)
	}
	if slices.Contains(o.parts, partGrowth) {
		growing = o.growing()
	}
	return tasks, growing, nil
}

// partOf returns where a case is printed.
func partOf(c *training.Case) string {
	switch c.Group {
	case training.GroupCurve:
		return partCurve
	case training.GroupWitness:
		return partWitness
	case training.GroupLimit:
		return partLimit
	case training.GroupRate:
		return partRate
	}
	return partFaults
}

// jobs returns those of one case, at all scales and seeds.
func (o *options) jobs(c *training.Case, small float64) (out []*task, err error) {
	for _, ranks := range c.Scales {
		if o.scale > 0 && ranks > o.scale {
			continue
		}
		spec, err := c.Spec(ranks)
		if err != nil {
			return nil, err
		}
		seeds := c.Seeds[ranks]
		if o.seeds > 0 {
			seeds = min(seeds, o.seeds)
		}
		if o.quick && len(out) > 0 {
			break
		}
		for n := range seeds {
			seed := c.Seed(ranks, n)
			out = append(out, &task{
				Part: partOf(c), Case: c.Name, Family: c.Family, Layout: c.Layout, Ranks: ranks, Steps: spec.Steps,
				Number: n, Seed: seed, Severity: c.Severity, Calibrate: c.Calibrate, Novel: c.Novel, Small: small, Floor: c.Floor,
				Curve: c.Curve, X: c.X, Row: string(c.Witness), open: opener(spec, seed),
			})
		}
	}
	return out, nil
}

// growthSizes are of jobs in which a layer is three kernels throughout, so that a
// rank's step is the same in all of them.
var growthSizes = []struct {
	name  string
	per   training.Layout // DP is the ranks of one replica here
	sizes []int
}{
	{"ddp", training.Layout{DP: 1, Coarse: true}, []int{64, 256, 1024, 4096, 16384}},
	{"tp 8 x pp 4", training.Layout{DP: 32, TP: 8, PP: 4, Microbatches: 4, Coarse: true}, []int{64, 256, 1024}},
}

// growthSteps is short: the steps of a healthy job do not differ.
const growthSteps = 8

func (o *options) growing() (out []*task) {
	for _, g := range growthSizes {
		for _, n := range g.sizes {
			if o.scale > 0 && n > o.scale {
				continue
			}
			layout := g.per
			layout.DP = n / layout.DP
			spec := training.Spec{Name: "growth", Layout: layout, Noise: training.DefaultNoise(), Steps: growthSteps}
			out = append(out, &task{Part: partGrowth, Case: g.name, Layout: g.name, Ranks: n, Steps: growthSteps, open: opener(spec, 1)})
		}
	}
	return out
}

func opener(spec training.Spec, seed uint64) func() (simulation, error) {
	return func() (simulation, error) {
		job, err := training.New(spec, seed)
		if err != nil {
			return nil, err
		}
		return simulated{job}, nil
	}
}

// simulated is a job of the simulator.
type simulated struct{ *training.Job }

func (s simulated) Next() (*simulatedStep, bool) {
	step, ok := s.Job.Next()
	if !ok {
		return nil, false
	}
	return &simulatedStep{N: step.N, Seconds: step.Seconds, Ops: step.Ops, Late: step.Late}, true
}
