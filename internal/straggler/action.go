// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// stageName is how a stage of a pipeline is named where an operation would be.
func stageName(stage int32) string { return fmt.Sprintf("stage %d", stage) }

// action says what to do next.
func (c *candidate) action(f *model.Finding) string {
	switch c.place.sort {
	case placeLink, placeGroup:
		return linkAction(f)
	case placeHost:
		return hostAction(c, f)
	case placeStage:
		if c.Host != "" {
			return fmt.Sprintf("%[1]s has more work than the others, or host %[2]s is slow, which holds %[1]s and nothing else: nothing recorded tells which. Record kernels, or run %[1]s on another host", stageName(c.Stage), c.Host)
		}
		return fmt.Sprintf("%s has more work than the others, and no rank is at fault: move layers from it to other stages, or split what only it has, such as the loss or an embedding", stageName(c.Stage))
	case placeWork:
		return workAction(c)
	case placeAll:
		return pauseAction(c, f)
	case placeJob:
		return fmt.Sprintf("the whole job became slower with step %d: look for what changed then for all ranks (software, clocks or power limits, storage, network load, sequence length)", c.First)
	}
	if c.Class == model.ClassKernelChoice {
		return fmt.Sprintf("rank %d runs another kernel for %q than its peers: compare versions of libraries, autotuning caches and their results, and memory alignment", c.Rank, c.Op)
	}
	if c.spread() {
		return fmt.Sprintf("rank %d takes longer in many kernels, most in %q: look at what slows its device as a whole (clocks, limits of power and temperature, other processes on it) before any one kernel", c.Rank, c.Op)
	}
	return action(f, c.in.scoped(c.Rank))
}

// spread reports whether no single kernel holds half of what a slow device takes longer.
func (c *candidate) spread() bool {
	return c.place.sort == placeRank && c.Class == model.ClassCompute && c.OpSec > 0 && 2*c.OpSec < c.Excess && c.before < 0.5
}

func workAction(c *candidate) string {
	if len(c.Ranks) == 0 {
		return "ranks are given unequal amounts of work in turn, and none is at fault: balance by length (packing, sorting within a batch, equal tokens for each rank)"
	}
	who := fmt.Sprintf("%d ranks are given more work than their peers, and none is at fault", len(c.Ranks))
	if len(c.Ranks) == 1 {
		who = fmt.Sprintf("rank %d is given more work than its peers, and is not at fault", c.Ranks[0])
	}
	return who + ": balance what decides it (tokens for each rank, the load of experts, the split of the data)"
}

func hostAction(c *candidate, f *model.Finding) string {
	shared, ok := hostAdvice[f.Cause]
	if !ok {
		shared = "are slow alike: check what they share there (CPUs, memory, power and cooling, other tenants), or replace the host"
	}
	return fmt.Sprintf("all %d ranks of host %s %s", len(c.Ranks), f.Host, shared)
}

func pauseAction(c *candidate, f *model.Finding) string {
	how := "hosts pause in turn, and no rank is at fault"
	if p := c.Pauses; p != nil {
		how = fmt.Sprintf("hosts pause in turn for %.0f ms, and no rank is at fault", 1e3*p.Median)
		if p.Period > 0 {
			how += fmt.Sprintf("; each does every %.0f steps", p.Period)
		}
	}
	advice, ok := pauseAdvice[f.Cause]
	if !ok {
		advice = "nothing recorded tells what pauses them. Mark scopes to know (data loading, garbage collection, checkpoints, compilation)"
	}
	return how + ": " + advice
}

// action says what to do next about a rank; scoped is whether scopes of the rank were recorded.
func action(f *model.Finding, scoped bool) string {
	rank := f.Rank.V
	switch {
	case f.BeforeWindow:
		return "record more steps, beginning earlier: the rank was late when the recording began"
	case advice[f.Cause] != "":
		return fmt.Sprintf(advice[f.Cause], rank, inScope(f))
	case f.OutsideScopes() && !scoped:
		return fmt.Sprintf("look at what the host of rank %d does: data loading, garbage collection, CPU contention. No scopes of it were recorded: record them to know more", rank)
	case f.OutsideScopes():
		return fmt.Sprintf("look at what the host of rank %d does outside of any scope: data loading, garbage collection, CPU contention. Mark scopes there to know more", rank)
	case f.Class == model.ClassHost:
		return fmt.Sprintf("look at what the host of rank %d does in %q: data loading, garbage collection, CPU contention", rank, f.Op)
	}
	return fmt.Sprintf("compare %q on rank %d with its peers: clocks, throttling, kernel choice, amount of work", f.Op, rank)
}

// count renders a number of things with their noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func inScope(f *model.Finding) string {
	if f.OutsideScopes() {
		return ""
	}
	return fmt.Sprintf(" in %q", f.Op)
}

// advice is what to do next about a host that is late for a known cause; of a rank,
// and where it is.
var advice = map[string]string{
	model.CauseCompile:    "rank %d recompiles%s in every step: do its shapes or types change, is its cache lost, or is it alone without one? Log recompilations",
	model.CauseDataLoader: "rank %d waits for its data%s: compare its storage and cache, its samples' size, and its workers and their CPUs with those of its peers; more workers or more batches ahead may hide it",
	model.CauseGC:         "rank %d collects garbage%s while its peers do not: collect by hand at the same step on all ranks (gc.disable, gc.freeze), and look for what makes so many objects there",
	model.CauseCheckpoint: "rank %d is kept by a checkpoint%s: save asynchronously or share the work among ranks, and compare the speed of its storage with that of its peers",
}

// hostAdvice is what to do next about a host whose ranks are all late for a known cause.
var hostAdvice = map[string]string{
	model.CauseCompile:    "recompile in every step: check the cache of compiled code that they share there, and log recompilations",
	model.CauseDataLoader: "wait for their data: check the storage, the cache and the CPUs for loader workers that they share there; more workers or more batches ahead may hide it",
	model.CauseGC:         "collect garbage while their peers do not: collect by hand at the same step on all ranks (gc.disable, gc.freeze), and check the memory that they share there",
	model.CauseCheckpoint: "are kept by a checkpoint: check the storage that they share there, save asynchronously, or share the work among hosts",
}

// pauseAdvice is what to do next about hosts that pause in turn for a known cause.
var pauseAdvice = map[string]string{
	model.CauseCompile:    "each recompiles at times. Log recompilations, and keep shapes and types the same on all ranks",
	model.CauseDataLoader: "each waits for its data at times. Give loaders more workers or more batches ahead, and look for slow storage, an empty cache, or samples of very unequal size",
	model.CauseGC:         "pause on all ranks in the same step (collect garbage by hand: gc.disable, gc.freeze, gc.collect every so many steps)",
	model.CauseCheckpoint: "each is kept by a checkpoint at times. Save asynchronously, or on all ranks in the same step",
}
