// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
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
	// ncclReserve is what a job must leave of the part's time.
	ncclReserve = 3 * time.Second
)

// ncclChecks runs the checks of the part, one after the other.
type ncclChecks struct {
	k       *kit.Kit
	p       *report.Part
	good    report.Status
	has     map[string]bool // strings of the library
	entries []kit.Entry
	way     *ncclWay // that works; nil: none, or not known yet
}

func runNCCL(ctx context.Context, k *kit.Kit, p *report.Part) {
	n := &ncclChecks{k: k, p: p, good: goodOf(k), has: map[string]bool{}}
	if k.Python == "" {
		p.Addf("plugin", report.NotShown, "needs python3: %s", k.Reason)
		return
	}
	defer n.fixture()
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

// goodOf returns the status of a check that came out right.
func goodOf(k *kit.Kit) report.Status {
	if k.GPU != nil {
		return report.Shown
	}
	return report.StandIn
}

// judge adds a check: failed where there are problems.
func (n *ncclChecks) judge(name string, problems []string, text string, figures ...report.Figure) {
	if len(problems) > 0 {
		n.p.Add(name, report.Failed, firstOf(problems), figures...)
		return
	}
	n.p.Add(name, n.good, text, figures...)
}

func (n *ncclChecks) fixture() {
	if len(n.entries) == 0 {
		return
	}
	if err := n.k.Fixture("nccl", n.entries...); err != nil {
		n.p.Add("fixture", report.Failed, err.Error())
	}
}

// room reports whether a job may begin, and adds a line where not.
func (n *ncclChecks) room(ctx context.Context, name string, least time.Duration) bool {
	deadline, ok := ctx.Deadline()
	if ctx.Err() == nil && (!ok || time.Until(deadline) > least+ncclReserve) {
		return true
	}
	n.p.Addf(name, report.NotShown, "no time left: it needs %v", least)
	return false
}
