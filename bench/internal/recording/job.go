// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

const (
	// PerNode is the number of ranks of a node, whose agent sends them together.
	PerNode = 8
	// SlowRank computes 1.5 times as long as the others: the analysis must find it at each size.
	SlowRank = 5
	slowdown = 1.5
	// clockError is the maximum error of a node's clock, ns: what NTP achieves in a cluster.
	clockError = 1_000_000
	seed       = 1
)

// layouts are how a job may be divided. The program of a rank is the same at each size.
var layouts = map[string]training.Layout{
	// The ranks of a node exchange tokens in each layer, and all ranks meet at the end of a step.
	"experts": {EP: PerNode},
	// All ranks meet in each collective.
	"sharded": {FSDP: true},
	// Four ranks share a layer, and meet four times in it.
	"tensor": {TP: 4},
}

// newJob returns a job with the given number of ranks and steps. Its data source is what the NCCL
// plugin, CUPTI and scopes record: collectives with their waits, and all kernels, copies and scopes.
func newJob(ranks, steps int, layout string) (*training.Job, error) {
	if ranks < PerNode || ranks%PerNode != 0 {
		return nil, fmt.Errorf("make job: got %d ranks; want a multiple of %d", ranks, PerNode)
	}
	l, ok := layouts[layout]
	if !ok {
		return nil, fmt.Errorf("make job: got layout %q; want one of %v", layout, slices.Sorted(maps.Keys(layouts)))
	}
	l.DP = ranks / max(1, l.TP)
	l.Layers, l.Buckets, l.PerNode = 6, 4, PerNode
	return training.New(training.Spec{
		Name: fmt.Sprintf("bench/%d", ranks), Layout: l,
		Noise: training.DefaultNoise(), Steps: steps, Witness: training.CUPTI,
		Faults: []training.Fault{{Family: training.GPUClock, Severity: slowdown, Ranks: []int64{SlowRank}}},
	}, seed)
}

// stamps are the clocks of a job's nodes: true time and an error of each node.
type stamps struct {
	shift int64 // ns added to true time of the simulator
}

// Offset returns how far a node's clock is ahead of true time, ns.
func Offset(node int) int64 {
	const step = 104_729 // a prime, so that neighbours differ
	return int64(node)*step%(2*clockError+1) - clockError
}

// ClockID returns the name of a node's clock, of a kind: realtime or raw.
func ClockID(node int, kind string) string { return fmt.Sprintf("host:node%04d/boot/%s", node, kind) }

// The clocks of a node: realtime stamps the operations, raw counts from boot and is never set.
const (
	Realtime = "realtime"
	Raw      = "raw"
)

// stamp gives operations of a node the stamps of its clock.
func (s stamps) stamp(node int, ops []model.Op) {
	by := s.shift + Offset(node)
	for i := range ops {
		op := &ops[i]
		op.Start += by
		op.End += by
		if op.Launch.OK {
			op.Launch.V += by
		}
	}
}

// begin is when the jobs begin by true time: before now by more than any of them lasts, since stamps
// of the future are refused.
func begin() int64 { return time.Now().Add(-5 * time.Minute).UnixNano() }

// ProbeWindow is how long a window of the probe mesh is.
const ProbeWindow = 2 * time.Second

// Edges returns what a node measures of its clocks in the window that begins at a true time, Unix ns: both of its
// clocks read together, and, of each node but the first, probes between its raw clock and that of the first.
func Edges(node int, at int64) []model.ClockEdge {
	count := func(node int) int64 { return at%1e15 + int64(node+1)*1e12 } // what the raw clock shows
	edge := model.ClockEdge{
		Src: ClockID(node, Raw), Dst: ClockID(node, Realtime), At: count(node), Span: int64(ProbeWindow),
		DriftBound: 1e-7, Samples: 200, Source: model.EdgePair, Stamps: model.StampUser,
	}
	edges := []model.ClockEdge{between(edge, at+Offset(node)-count(node), 100)}
	if node == 0 {
		return edges
	}
	edge.Src, edge.Dst, edge.At = ClockID(0, Raw), ClockID(node, Raw), count(0)
	edge.Source, edge.Stamps = model.EdgeProbe, model.StampKernel
	return append(edges, between(edge, count(node)-count(0), 1000))
}

// between gives an edge its offset, and a bound of so many ns.
func between(e model.ClockEdge, gap, bound int64) model.ClockEdge {
	e.Lower, e.Upper, e.Offset, e.Sigma = gap-bound, gap+bound, gap, float64(bound)/10
	return e
}
