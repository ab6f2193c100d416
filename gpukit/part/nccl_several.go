// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// severalRanks runs two ranks on the one GPU in the first way that NCCL allows, and
// reports whether there was one.
func (n *ncclChecks) severalRanks(ctx context.Context) bool {
	if !n.room(ctx, "ranks-2", 20*time.Second) {
		return false
	}
	if n.k.GPU == nil {
		n.way = &ncclWay{Name: "stand-in"}
		return n.twoRanks(ctx, *n.way) == nil
	}
	ways := ncclWays(n.has)
	if len(ways) == 0 {
		n.p.Addf("ranks-2", report.NotShown, "this libnccl has neither %s nor %s: it allows one rank on a GPU", multiRank, hostID)
		return false
	}
	var refused []string
	for _, way := range ways {
		why := n.twoRanks(ctx, way)
		if why == nil {
			n.way = &way
			return true
		}
		refused = append(refused, why.Error())
		if !n.room(ctx, "ranks-2-again", 20*time.Second) {
			break
		}
	}
	if n.withoutPlugin(ctx, ways[len(ways)-1]) {
		n.p.Addf("ranks-2", report.Failed, "two ranks work without the plugin, and not with it: %s", strings.Join(refused, "; "))
		return false
	}
	n.p.Addf("ranks-2", report.NotShown, "NCCL refuses two ranks on one GPU: %s", strings.Join(refused, "; "))
	return false
}

// withoutPlugin reports whether two ranks do the list of operations where there is no
// plugin.
func (n *ncclChecks) withoutPlugin(ctx context.Context, way ncclWay) bool {
	if ctx.Err() != nil {
		return false
	}
	res := n.run(ctx, ncclRun{Name: "two-bare", World: 2, Phases: []string{ncclList}, Env: ncclBare, Way: way, Limit: ncclLoopLimit})
	return allDone(res.Truths, 2, ncclList)
}

// ncclBare keeps NCCL from loading a plugin that lies about.
var ncclBare = []string{"NCCL_PROFILER_PLUGIN=none"}

func allDone(truths []*ncclTruth, world int, phase string) bool {
	return len(truths) == world && !slices.ContainsFunc(truths, func(t *ncclTruth) bool { return !t.done(phase) })
}

// twoRanks runs two ranks in one way. The error is NCCL's reason to refuse them.
func (n *ncclChecks) twoRanks(ctx context.Context, way ncclWay) error {
	watch := &ncclWatch{n: n}
	res := n.run(ctx, ncclRun{
		Name: "two-" + strings.ToLower(way.Name), World: 2, Phases: []string{ncclList, ncclBurst, ncclLate, ncclOpen, ncclHold},
		Level: "collectives", Way: way, Limit: ncclTwoLimit, During: watch.during,
	})
	if !allDone(res.Truths, 2, ncclList) {
		if n.k.GPU == nil {
			n.p.Addf("ranks-2", report.Failed, "the stand-in did not do its list: %v", res.Err)
		}
		return fmt.Errorf("with %s: %s", way.Name, ncclWords(res))
	}
	n.several("ranks-2", res, way)
	watch.judge(res)
	return nil
}

// pluginSays begins what the plugin writes to NCCL's log.
const pluginSays = "PROFILER/lockstep: "

// ncclNoReasons begin warnings that are no reason for a job to fail: of the plugin's
// settings, and of the second rank that would open RAS at the same address.
var ncclNoReasons = []string{pluginSays, "Call to bind failed"}

// ncclWords returns NCCL's own words on why a job failed, else PyTorch's.
func ncclWords(res *ncclResult) string {
	words := ""
	for line := range strings.Lines(res.Log) {
		_, warning, ok := strings.Cut(line, "NCCL WARN ")
		begins := func(start string) bool { return strings.HasPrefix(warning, start) }
		if ok && words == "" && !slices.ContainsFunc(ncclNoReasons, begins) {
			words = strings.TrimSpace(warning)
		}
	}
	for _, t := range res.Truths {
		if words == "" {
			words = t.Error
		}
	}
	if words == "" && res.Err != nil {
		words = res.Err.Error()
	}
	if words == "" {
		return "it gave no reason"
	}
	return words
}

// several adds what the comparison of a job of several ranks came to.
func (n *ncclChecks) several(name string, res *ncclResult, way ncclWay) {
	v := compareNCCL(res.Truths, res.Seen)
	names := make([]string, 0, len(v.Names))
	for _, algo := range slices.Sorted(maps.Keys(v.Names)) {
		names = append(names, fmt.Sprintf("%s %d", algo, v.Names[algo]))
	}
	n.judge(name+"-operations", slices.Concat(v.Problems[ncclAboutOps], v.Problems[ncclAboutEnds]),
		fmt.Sprintf("%d of %d operations once each, with function, bytes, type, number and end (%s; %s)", len(v.Pairs), v.Want, way.Name, strings.Join(names, ", ")),
		figure("operations", len(v.Pairs)), figure("completed by inference", v.count(flagInferred)))
	n.judge(name+"-communicators", v.Problems[ncclAboutComms], "hash, size and rank of each communicator are those of the program, and equal on all ranks")
	n.judge(name+"-times", v.Problems[ncclAboutTimes], "every enqueueing lies within the program's call")
	n.judge(name+"-frontiers", v.Problems[ncclAboutFrontiers], "every function is completed to its last number, and nothing is open")
	n.kernels(name, v)
	n.proxies(name, v, way)
	n.drops(name, res)
	n.end(name, res)
	if allDone(res.Truths, v.Ranks, ncclLate) {
		n.late(name, v, res.Truths[0])
	}
}

func figure(name string, count int) report.Figure {
	return report.Figure{Name: name, Value: float64(count), Unit: "1"}
}

func (n *ncclChecks) kernels(name string, v *ncclVerdict) {
	var problems []string
	kernels := 0
	bound, long := 0.0, 0.0
	for rank := range v.Ranks {
		t := kernelTimes(v.Pairs, rank)
		problems = append(problems, t.Problems...)
		kernels += t.Kernels
		bound, long = max(bound, t.BoundNS), max(long, t.LongNS)
	}
	if kernels == 0 {
		n.p.Add(name+"-gpu-clock", report.Failed, "got no operation with kernel times; want some")
		return
	}
	n.judge(name+"-gpu-clock", problems, "the kernels of all operations with GPU times lie within the program's calls, by one relation of the clocks",
		figure("operations with GPU times", kernels), figure("with part of the channels", v.count(flagKernelPart)),
		report.Figure{Name: "bound of the GPU's clock", Value: bound / 1e3, Unit: "µs"}, report.Figure{Name: "median kernel", Value: long / 1e6, Unit: "ms"})
}

func (n *ncclChecks) proxies(name string, v *ncclVerdict, way ncclWay) {
	proxies, waits := v.count(flagProxy), v.count(flagWaits)
	var problems []string
	if proxies == 0 || waits == 0 {
		problems = append(problems, fmt.Sprintf("got %d operations with proxy times and %d with waits on the network; want some", proxies, waits))
	}
	n.judge(name+"-proxy", problems, fmt.Sprintf("operations over the network (%s) have proxy times and waits", way.Name),
		figure("with proxy times", proxies), figure("with waits", waits))
}

// ncclExpected are reasons for drops that are no fault of the plugin: they count what
// NCCL does.
var ncclExpected = []string{"inferred", "bad_gpu_time", "shared_lane", "stale_handle", "foreign_pid", "finalized"}

func (n *ncclChecks) drops(name string, res *ncclResult) {
	total := map[string]uint64{}
	for _, s := range res.Seen {
		for reason, count := range s.Drops {
			total[reason] += count
		}
	}
	problems, figures := dropProblems(total)
	n.judge(name+"-drops", problems, "the plugin dropped nothing for want of room", figures...)
}

func dropProblems(total map[string]uint64) (problems []string, figures []report.Figure) {
	for _, reason := range slices.Sorted(maps.Keys(total)) {
		figures = append(figures, figure(reason, int(total[reason])))
		if !slices.Contains(ncclExpected, reason) {
			problems = append(problems, fmt.Sprintf("dropped %d: %s", total[reason], reason))
		}
	}
	return problems, figures
}

func (n *ncclChecks) end(name string, res *ncclResult) {
	var problems []string
	if res.Err != nil {
		problems = append(problems, res.Err.Error())
	}
	for _, t := range res.Truths {
		if !t.Ended {
			problems = append(problems, fmt.Sprintf("rank %d did not come to its end after %s: %s", t.Rank, strings.Join(t.Phases, ", "), t.Error))
		}
	}
	for _, s := range res.Seen {
		if !s.Closed {
			problems = append(problems, fmt.Sprintf("rank %d left its ring open", s.Header.Rank))
		}
	}
	n.judge(name+"-end", problems, "all ranks ended well and closed their rings")
}

func (n *ncclChecks) late(name string, v *ncclVerdict, t *ncclTruth) {
	rank, gap, err := lateRank(v)
	var problems []string
	switch {
	case err != nil:
		problems = append(problems, err.Error())
	case rank != t.LateRank || gap < t.LateNS*8/10:
		problems = append(problems, fmt.Sprintf("rank %d came last by %.0f ms; want rank %d by %.0f", rank, float64(gap)/1e6, t.LateRank, float64(t.LateNS)/1e6))
	}
	n.judge(name+"-late", problems, fmt.Sprintf("rank %d, which slept, is the last arriver", rank), report.Figure{Name: "after the others", Value: float64(gap) / 1e6, Unit: "ms"})
}

func (n *ncclChecks) fourRanks(ctx context.Context) {
	if !n.room(ctx, "ranks-4", 25*time.Second) {
		return
	}
	res := n.run(ctx, ncclRun{
		Name: "four", World: 4, Phases: []string{ncclList, ncclBurst, ncclLate}, Level: "all", Way: *n.way, Limit: ncclFourLimit,
	})
	if !allDone(res.Truths, 4, ncclList) {
		status := report.NotShown
		if n.k.GPU == nil {
			status = report.Failed
		}
		n.p.Addf("ranks-4", status, "four ranks did not do their list, where two did: %s", ncclWords(res))
		return
	}
	n.several("ranks-4", res, *n.way)
}
