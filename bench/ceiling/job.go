// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

const (
	perNode = 8 // ranks of a node, whose agent sends them together
	// slowRank computes 1.5 times as long as the others: the gateway must find it at each size.
	slowRank = 5
	slowdown = 1.5
	// clockError is the maximum error of a node's clock, ns: what NTP achieves in a cluster.
	clockError = 1_000_000
	seed       = 1
)

// layouts are how a job may be divided. The program of a rank is the same at each size.
var layouts = map[string]training.Layout{
	// The ranks of a node exchange tokens in each layer, and all ranks meet at the end of a step.
	"experts": {EP: perNode},
	// All ranks meet in each collective.
	"sharded": {FSDP: true},
	// Four ranks share a layer, and meet four times in it.
	"tensor": {TP: 4},
}

// newJob returns a job with the given number of ranks and steps. Its data source is what the NCCL
// plugin, CUPTI and scopes record: collectives with their waits, and all kernels, copies and scopes.
func newJob(ranks, steps int, layout string) (*training.Job, error) {
	if ranks < perNode || ranks%perNode != 0 {
		return nil, fmt.Errorf("make job: got %d ranks; want a multiple of %d", ranks, perNode)
	}
	l, ok := layouts[layout]
	if !ok {
		return nil, fmt.Errorf("make job: got layout %q; want one of %v", layout, slices.Sorted(maps.Keys(layouts)))
	}
	l.DP = ranks / max(1, l.TP)
	l.Layers, l.Buckets, l.PerNode = 6, 4, perNode
	return training.New(training.Spec{
		Name: fmt.Sprintf("ceiling/%d", ranks), Layout: l,
		Noise: training.DefaultNoise(), Steps: steps, Witness: training.CUPTI,
		Faults: []training.Fault{{Family: training.GPUClock, Severity: slowdown, Ranks: []int64{slowRank}}},
	}, seed)
}

// stamps are the clocks of a job's nodes: true time and an error of each node.
type stamps struct {
	shift int64 // ns added to true time of the simulator
}

// offset returns how far a node's clock is ahead of true time, ns.
func offset(node int) int64 {
	const step = 104_729 // a prime, so that neighbours differ
	return int64(node)*step%(2*clockError+1) - clockError
}

// clockID returns the name of a node's clock.
func clockID(node int, kind string) string { return fmt.Sprintf("host:node%04d/boot/%s", node, kind) }

// The clocks of a node: realtime stamps the operations, raw counts from boot and is never set.
const (
	realtime = "realtime"
	raw      = "raw"
)

// stamp gives operations of a node the stamps of its clock.
func (s stamps) stamp(node int, ops []model.Op) {
	by := s.shift + offset(node)
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
