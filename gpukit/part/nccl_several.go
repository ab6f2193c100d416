// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// severalRanks runs two ranks on the one GPU in the first way that NCCL allows, and
// reports whether there was one.
func (n *ncclChecks) severalRanks(ctx context.Context) bool {
	if !n.room(ctx, "ranks-2", 20*time.Second) {
		return false
	}
	if n.k.GPU == nil {
		n.way = &gpuWay{Name: "stand-in"}
		why := n.twoRanks(ctx, *n.way)
		if why != nil {
			broken(n.p, "ranks-2", why)
		}
		return why == nil
	}
	ways, err := gpuWays(n.k)
	if err != nil {
		n.p.Add("ranks-2", report.Failed, err.Error())
		return false
	}
	if len(ways) == 0 {
		n.p.Add("ranks-2", report.NotShown, noWay)
		return false
	}
	var whys []error
	for i, way := range ways {
		if i > 0 && !left(ctx, 20*time.Second) {
			break
		}
		why := n.twoRanks(ctx, way)
		if why == nil {
			n.way = &way
			n.lost("ranks-2", whys)
			return true
		}
		if errors.Is(why, kit.ErrNoTime) {
			if len(whys) == 0 {
				broken(n.p, "ranks-2", why)
				return false
			}
			break
		}
		whys = append(whys, why)
	}
	n.failed("ranks-2", whys, n.withoutPlugin(ctx, 2, ways[len(whys)-1]))
	return false
}

func allDone(truths []*ncclTruth, world int, phase string) bool {
	return len(truths) == world && !slices.ContainsFunc(truths, func(t *ncclTruth) bool { return !t.done(phase) })
}

// twoRanks runs two ranks in one way. The error is why they did not do their list:
// errRefused, errUndone or kit.ErrNoTime.
func (n *ncclChecks) twoRanks(ctx context.Context, way gpuWay) error {
	watch := &ncclWatch{n: n}
	res := n.run(ctx, ncclRun{
		Name: "two-" + strings.ToLower(way.Name), World: 2, Phases: []string{ncclList, ncclBurst, ncclLate, ncclOpen, ncclHold},
		Level: "collectives", Way: way, Limit: ncclTwoLimit, During: watch.during,
	})
	if errors.Is(res.Err, kit.ErrNoTime) {
		return kit.ErrNoTime
	}
	if !allDone(res.Truths, 2, ncclList) {
		return fmt.Errorf("with %s: %w", way.Name, undone(res))
	}
	n.several("ranks-2", res, 2, way)
	watch.judge(res)
	return nil
}

// pluginPrefix begins what the plugin writes to NCCL's log.
const pluginPrefix = "PROFILER/lockstep: "

// ncclNoReasons begin warnings that are no reason for a job to fail: of the plugin's
// settings, and of the second rank that would open RAS at the same address.
var ncclNoReasons = []string{pluginPrefix, "Call to bind failed"}

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
func (n *ncclChecks) several(name string, res *ncclResult, world int, way gpuWay) {
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
	n.drops(name, res, world)
	n.end(name, res, world)
	if allDone(res.Truths, world, ncclLate) {
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
	for rank := range max(v.Ranks, 1) {
		t := kernelTimes(v.Pairs, rank)
		problems = append(problems, t.Problems...)
		if t.Kernels == 0 {
			problems = append(problems, fmt.Sprintf("rank %d: got no operation with kernel times; want some", rank))
		}
		kernels += t.Kernels
		bound, long = max(bound, t.BoundNS), max(long, t.LongNS)
	}
	n.judge(name+"-gpu-clock", problems, "the kernels of all operations with GPU times lie within the program's calls, by one relation of the clocks",
		figure("operations with GPU times", kernels), figure("with part of the channels", v.count(flagKernelPart)),
		report.Figure{Name: "bound of the GPU's clock", Value: bound / 1e3, Unit: "µs"}, report.Figure{Name: "median kernel", Value: long / 1e6, Unit: "ms"})
}

func (n *ncclChecks) proxies(name string, v *ncclVerdict, way gpuWay) {
	proxies, waits := v.count(flagProxy), v.count(flagWaits)
	var problems []string
	if proxies == 0 || waits == 0 {
		problems = append(problems, fmt.Sprintf("got %d operations with proxy times and %d with waits on the network; want some", proxies, waits))
	}
	n.judge(name+"-proxy", problems, fmt.Sprintf("operations over the network (%s) have proxy times and waits", way.Name),
		figure("with proxy times", proxies), figure("with waits", waits))
}

// ncclExpected are reasons for which nothing is lost: "inferred" counts operations whose
// end NCCL up to 2.30 does not report, and "shared_lane" records that took another way.
// "foreign_pid" is not among them: only ranks that reach their network through another
// GPU have proxies in another process.
var ncclExpected = []string{"inferred", "shared_lane"}

// ncclSeldom are reasons that NCCL gives now and then, and a fault of the plugin often.
// "bad_gpu_time": NCCL keeps the stamps of 64 works of a channel, and may read one that was
// overwritten. "stale_handle": NCCL's proxy thread comes to a channel after the operation
// was taken to be over. "finalized": the same at the end of a communicator.
var ncclSeldom = []string{"bad_gpu_time", "stale_handle", "finalized"}

// ncclSeldomShare bounds how many drops for one of these reasons there may be, as a share
// of the operations in the rings.
const ncclSeldomShare = 0.01

func (n *ncclChecks) drops(name string, res *ncclResult, world int) {
	problems, figures := dropProblems(res.Seen)
	n.judge(name+"-drops", append(ringsProblems(res.Seen, world), problems...), "the plugin dropped nothing for want of room, and seldom anything else", figures...)
}

// ringsProblems tests that every rank has a ring.
func ringsProblems(seen []*ringSeen, world int) []string {
	if len(seen) == world {
		return nil
	}
	return []string{fmt.Sprintf("got %d rings; want %d", len(seen), world)}
}

func dropProblems(seen []*ringSeen) (problems []string, figures []report.Figure) {
	total, ops := map[string]uint64{}, 0
	for _, s := range seen {
		ops += s.ops()
		for reason, count := range s.Drops {
			total[reason] += count
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(total)) {
		figures = append(figures, figure(reason, int(total[reason])))
		most := uint64(0)
		switch {
		case slices.Contains(ncclExpected, reason):
			continue
		case slices.Contains(ncclSeldom, reason):
			most = uint64(ncclSeldomShare * float64(ops))
		}
		if total[reason] > most {
			problems = append(problems, fmt.Sprintf("dropped %d: %s; want at most %d in %d operations", total[reason], reason, most, ops))
		}
	}
	return problems, figures
}

func (n *ncclChecks) end(name string, res *ncclResult, world int) {
	problems := ringsProblems(res.Seen, world)
	if len(res.Truths) != world {
		problems = append(problems, fmt.Sprintf("got what %d ranks wrote of themselves; want %d", len(res.Truths), world))
	}
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
	if n.cut("ranks-4", res) {
		return
	}
	if !allDone(res.Truths, 4, ncclList) {
		why := fmt.Errorf("four ranks, where two worked: %w", undone(res))
		if n.k.GPU == nil {
			n.p.Add("ranks-4", report.Failed, why.Error())
			return
		}
		n.failed("ranks-4", []error{why}, n.withoutPlugin(ctx, 4, *n.way))
		return
	}
	n.several("ranks-4", res, 4, *n.way)
}
