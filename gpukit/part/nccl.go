// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"errors"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// ncclPart returns the part that runs the profiler plugin in NCCL.
func ncclPart() Part {
	return Part{Name: "nccl", Title: "The profiler plugin in NCCL", Limit: 150 * time.Second, Loopback: true, Run: runNCCL}
}

// Time limits of jobs: PyTorch and CUDA take some 10 s to start on a cold machine.
const (
	ncclOneLimit  = 60 * time.Second
	ncclTwoLimit  = 50 * time.Second
	ncclFourLimit = 50 * time.Second
	ncclLoopLimit = 30 * time.Second
)

// ncclChecks runs the checks of the part, one after the other.
type ncclChecks struct {
	k       *kit.Kit
	p       *report.Part
	good    report.Status
	entries []kit.Entry
	rings   []kit.Entry // kept as far as there is room
	way     *gpuWay     // that works; nil: none, or not known yet
	silent  bool        // NCCL reported no message of a rank to itself
}

func runNCCL(ctx context.Context, k *kit.Kit, p *report.Part) {
	n := &ncclChecks{k: k, p: p, good: k.Right()}
	if k.Python == "" {
		p.Addf("plugin", report.NotShown, "needs python3: %s", k.Reason)
		return
	}
	defer func() { k.Keep(p, "nccl", n.rings, n.entries...) }()
	n.library()
	n.oneRank(ctx)
	two := n.severalRanks(ctx)
	if two {
		n.fourRanks(ctx)
	}
	n.chain(ctx)
	n.cost(ctx, 1)
	n.cost(ctx, 2)
}

// judge adds a check: failed where there are problems.
func (n *ncclChecks) judge(name string, problems []string, text string, figures ...report.Figure) {
	judge(n.p, n.good, name, problems, text, figures...)
}

// room reports whether a job may begin, and adds a line where not.
func (n *ncclChecks) room(ctx context.Context, name string, least time.Duration) bool {
	return room(ctx, n.p, name, least)
}

// cut reports whether the part's time ended before the job, and adds a line where so.
func (n *ncclChecks) cut(name string, res *ncclResult) bool {
	if !errors.Is(res.Err, kit.ErrNoTime) {
		return false
	}
	broken(n.p, name, res.Err)
	return true
}
