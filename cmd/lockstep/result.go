// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/render"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// engineConfig returns the limits of a command that ends: files of many ranks
// are read one after the other, so all their steps are open until the last file.
// 1 Mi steps are weeks of training; 64 Mi operations of 48 bytes are 3 GiB; 8 Mi
// members of collectives are those of 64 steps of 1,024 ranks with 128 collectives.
func engineConfig() straggler.Config {
	c := straggler.NewDefaultConfig()
	c.Brief = true // of single steps nothing is printed
	c.MaxOpenSteps = 1 << 20
	c.MaxOpenOps = 64 << 20
	c.MaxWindowMembers = 8 << 20
	return c
}

// noteResult puts in front of the problems of files what the engine lost or could not
// take for true, and which ranks it could not compare: these bear on the verdict most.
func (a *analysis) noteResult() {
	var first problems
	for _, what := range limitsMet(&a.options.engine, a.engine.Stats()) {
		first.add("", -1, errors.New(what))
	}
	for i := range a.jobs {
		for _, what := range a.jobs[i].Problems {
			first.add("", -1, errors.New(what))
		}
		for _, rank := range a.jobs[i].Apart {
			first.add("", -1, errors.New(render.Apart(rank)))
		}
	}
	for _, p := range a.problems.list {
		first.note(p)
	}
	first.omitted += a.problems.omitted
	first.refused = a.problems.refused
	a.problems = first
}

// limitsMet names every limit of the engine that cost something, and its value.
func limitsMet(c *straggler.Config, s straggler.Stats) (out []string) {
	for _, l := range []struct {
		lost  int64
		what  string
		limit string
	}{
		{s.OpsDropped, "operations left out", fmt.Sprintf("at most %d operations of one rank and step", c.MaxOpsPerRankStep)},
		{s.StepsEvicted, "steps judged before all of their operations had been read", fmt.Sprintf(
			"at most %d operations held (--max-ops raises it) in at most %d steps", c.MaxOpenOps, c.MaxOpenSteps)},
		{s.StepsLarge, "steps judged whole that alone held more operations", fmt.Sprintf(
			"at most %d operations held (--max-ops raises it)", c.MaxOpenOps)},
		{s.StepsForgotten, "steps left out of the judgement", fmt.Sprintf(
			"at most %d members of collectives in the steps that are judged", c.MaxWindowMembers)},
		{s.JobsEvicted, "jobs given up", fmt.Sprintf("at most %d jobs", c.MaxJobs)},
		{s.RanksRefused, "batches of further ranks left out", fmt.Sprintf("at most %d ranks of a job", c.MaxRanks)},
		{s.WorldsCapped, "batches that stated a larger world", fmt.Sprintf("at most %d ranks of a job", c.MaxRanks)},
	} {
		if l.lost > 0 {
			out = append(out, fmt.Sprintf("keep to limits: %s: %d; want %s", l.what, l.lost, l.limit))
		}
	}
	return out
}
