// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/clock/pair"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

type config struct {
	nodes, k, warm, windows int
	rate, load, outliers    float64
	seed                    uint64
}

// result of one size. Times are ns.
type result struct {
	nodes, edges   int
	edgeErr        []float64 // of single edges, against truth
	nodeErr        []float64 // of clocks against the reference, at both ends and the middle of windows
	bounds         []float64
	outside        int // of nodeErr, beyond the bound
	edgesOutside   int
	missing        int // edges without an estimate
	untrusted      int
	undecided      int
	solve          []float64
	estimate       float64 // of one pair and window, packets included
	held, allocate float64 // bytes: by solver and its solution; by one Solve
}

const window = 2e9

// repeats of the last solution, for its time: the fastest counts, since machines
// are shared.
const repeats = 5

// simulate streams pair by pair, so that only edges are kept and no estimator
// outlives its pair.
func simulate(c config) (result, error) {
	cluster := sim.New(sim.Config{
		Nodes: c.nodes, K: c.k, Rate: c.rate, Load: c.load, Outliers: c.outliers, Seed: c.seed,
	})
	r := result{nodes: c.nodes, edges: len(cluster.Pairs)}
	edges := make([][]model.ClockEdge, c.windows)
	start := time.Now()
	for i := range cluster.Pairs {
		r.missing += follow(cluster, i, c, edges)
	}
	r.estimate = float64(time.Since(start).Nanoseconds()) / float64(len(cluster.Pairs)*(c.warm+c.windows))
	before := heap()
	solver := graph.New(graph.Options{Prefer: []string{sim.ID(0)}})
	for k, window := range edges {
		solution, err := r.solveWindow(solver, window)
		if err != nil {
			return r, err
		}
		if k == 0 {
			r.held = heap() - before
		}
		r.judge(cluster, solution)
		for _, e := range window {
			r.judgeEdge(cluster, e)
		}
	}
	for range repeats {
		if _, err := r.solveWindow(solver, nil); err != nil {
			return r, err
		}
	}
	// What was there before lives until here, so that held is only what came.
	runtime.KeepAlive(cluster)
	runtime.KeepAlive(edges)
	runtime.KeepAlive(solver)
	return r, nil
}

func (r *result) solveWindow(solver *graph.Solver, edges []model.ClockEdge) (*graph.Solution, error) {
	for _, e := range edges {
		if err := solver.Add(e); err != nil {
			return nil, err
		}
	}
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	start := time.Now()
	solution := solver.Solve()
	r.solve = append(r.solve, float64(time.Since(start).Nanoseconds()))
	runtime.ReadMemStats(&m1)
	r.allocate = float64(m1.TotalAlloc - m0.TotalAlloc)
	return solution, nil
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// follow runs one pair through all windows and keeps the edges of the last ones.
// It returns in how many of them there was no estimate.
func follow(cluster *sim.Cluster, i int, c config, edges [][]model.ClockEdge) (missing int) {
	p, e := cluster.Prober(i), pair.New(pair.Config{})
	src, dst := cluster.Pairs[i][0], cluster.Pairs[i][1]
	for w := range c.warm + c.windows {
		end := float64(w+1) * window
		p.Until(end, e)
		estimates := e.Close(cluster.Clocks[src].Read(end))
		k := w - c.warm
		if k < 0 {
			continue
		}
		if len(estimates) == 0 {
			missing++
			continue
		}
		last := estimates[len(estimates)-1]
		edges[k] = append(edges[k], last.Edge(sim.ID(src), sim.ID(dst), model.EdgeProbe, model.StampHardware))
	}
	return missing
}

func (r *result) judgeEdge(cluster *sim.Cluster, e model.ClockEdge) {
	var src, dst int
	fmt.Sscanf(e.Src, "host:n%d/", &src) //nolint:errcheck // ids are sim.ID's
	fmt.Sscanf(e.Dst, "host:n%d/", &dst) //nolint:errcheck // ids are sim.ID's
	truth := cluster.Offset(dst, src, e.At)
	r.edgeErr = append(r.edgeErr, math.Abs(float64(e.Offset-truth)))
	if truth < e.Lower || truth > e.Upper {
		r.edgesOutside++
	}
}

func (r *result) judge(cluster *sim.Cluster, s *graph.Solution) {
	r.undecided += len(s.Undecided())
	for _, m := range s.Models() {
		if m.Untrusted {
			r.untrusted++
			continue
		}
		if m.Clock == m.Reference {
			continue
		}
		var node, ref int
		fmt.Sscanf(m.Clock, "host:n%d/", &node)    //nolint:errcheck // ids are sim.ID's
		fmt.Sscanf(m.Reference, "host:n%d/", &ref) //nolint:errcheck // ids are sim.ID's
		for _, at := range []int64{m.From, m.At, m.Until} {
			said := m.Offset + int64(math.Round(m.Drift*float64(at-m.At)))
			off := math.Abs(float64(said - cluster.Offset(ref, node, at)))
			r.nodeErr = append(r.nodeErr, off)
			if !m.Bounded || off > float64(m.Bound) {
				r.outside++
			}
		}
		r.bounds = append(r.bounds, float64(m.Bound))
	}
}

func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	return stats.QuantileHigh(slices.Sorted(slices.Values(v)), q)
}
