// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// cost compares runs without and with the plugin, in fresh processes, in the order
// without, with, with, without.
func (n *ncclChecks) cost(ctx context.Context, world int) {
	name := fmt.Sprintf("cost-%d-rank", world)
	if n.k.GPU == nil {
		n.p.Add(name, report.NotShown, "what the plugin costs NCCL needs NCCL on a GPU")
		return
	}
	if n.k.Busy != "" {
		n.p.Add(name, report.NotShown, n.k.Busy)
		return
	}
	run := ncclRun{World: world, Phases: []string{ncclLoop}, Ops: 300, Limit: ncclLoopLimit}
	if world > 1 {
		if n.way == nil {
			n.p.Add(name, report.NotShown, "needs two ranks on the GPU")
			return
		}
		run.Way, run.Ops = *n.way, 150
	}
	if world == 1 && n.silent {
		n.p.Add(name, report.NotShown, unreported)
		return
	}
	var off, on, offCall, onCall [][]float64
	for i, plugin := range []bool{false, true, true, false} {
		if !n.room(ctx, name, 12*time.Second) {
			return
		}
		run.Name, run.Level, run.Env = fmt.Sprintf("%s-%d", name, i), "", ncclBare
		if plugin {
			run.Level, run.Env = "collectives", nil
		}
		res := n.run(ctx, run)
		if n.cut(name, res) {
			return
		}
		if !allDone(res.Truths, world, ncclLoop) {
			n.p.Addf(name, report.Failed, "the loop did not end: %s", ncclWords(res))
			return
		}
		if problems := loopProblems(res, world); plugin && len(problems) > 0 {
			n.p.Addf(name, report.Failed, "the plugin recorded nothing that could cost: %s", few(problems, maxProblems))
			return
		}
		whole, call := took(res.Truths[0])
		if plugin {
			on, onCall = append(on, whole), append(onCall, call)
		} else {
			off, offCall = append(off, whole), append(offCall, call)
		}
	}
	n.costs(name, world, off, on, offCall, onCall)
}

// loopProblems tests that every rank has a ring with operations.
func loopProblems(res *ncclResult, world int) []string {
	problems := ringsProblems(res.Seen, world)
	for _, s := range res.Seen {
		if s.ops() == 0 {
			problems = append(problems, fmt.Sprintf("rank %d: got no operation in its ring; want those of the loop", s.Header.Rank))
		}
	}
	return problems
}

func (n *ncclChecks) costs(name string, world int, off, on, offCall, onCall [][]float64) {
	whole, err := costOf(off, on)
	call, callErr := costOf(offCall, onCall)
	if err = errors.Join(err, callErr); err != nil {
		n.p.Add(name, report.Failed, err.Error())
		return
	}
	what := "a message of 64 KiB to itself, on one rank"
	if world > 1 {
		what = "an all-reduce of 64 KiB; two processes take turns on one GPU, which is most of the time and of the spread"
	}
	n.p.Add(name, report.Noted, fmt.Sprintf("%s: %.1f µs without and %.1f with the plugin, difference %.1f to %.1f µs (95 %%, %d pairs of runs)",
		what, whole.Off/1e3, whole.On/1e3, whole.Low/1e3, whole.High/1e3, whole.Runs),
		report.Figure{Name: "operation", Value: whole.Diff / 1e3, Unit: "µs"}, report.Figure{Name: "of it the call", Value: call.Diff / 1e3, Unit: "µs"},
		report.Figure{Name: "call, low", Value: call.Low / 1e3, Unit: "µs"}, report.Figure{Name: "call, high", Value: call.High / 1e3, Unit: "µs"})
}
