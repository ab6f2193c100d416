// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

const (
	perNode = 8 // ranks of a node, whose agent sends them together
	// slowRank computes 1.5 times as long as the others: the gateway must find it at each size.
	slowRank = 5
	slowdown = 1.5
	// clockError is by how much a node's clock is off at most, ns: what NTP achieves in a cluster.
	clockError = 1_000_000
	seed       = 1
)

// layout returns the layout of a job. By default it is fully sharded: the program of a rank is the same
// at each size, and all ranks meet in each collective, which is the most that there is to match.
func layout(ranks, tensor int) training.Layout {
	l := training.Layout{DP: ranks / tensor, TP: tensor, Layers: 6, Buckets: 4, PerNode: perNode}
	l.FSDP = tensor == 1
	return l
}

// newJob returns a job of so many ranks and steps, of which so many share a layer. What is recorded of
// it is what the plugins of NCCL and CUPTI and scopes show: collectives with their waits, and all
// kernels, copies and scopes.
func newJob(ranks, steps, tensor int) (*training.Job, error) {
	if ranks < perNode || ranks%perNode != 0 {
		return nil, fmt.Errorf("make job: got %d ranks; want a multiple of %d", ranks, perNode)
	}
	if tensor < 1 || perNode%tensor != 0 {
		return nil, fmt.Errorf("make job: got %d ranks that share a layer; want 1, 2, 4 or 8", tensor)
	}
	return training.New(training.Spec{
		Name: fmt.Sprintf("ceiling/%d", ranks), Layout: layout(ranks, tensor),
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

// The clocks of a node: the one that stamps, and the one that nobody sets.
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
