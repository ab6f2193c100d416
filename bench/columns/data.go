// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// collect returns the operations of simulated jobs, and those of real traces that are there.
func collect(ctx context.Context, data string) ([]*source, error) {
	var all []*source
	layout := training.Layout{DP: 4, TP: 2, Layers: 4, Buckets: 4}
	for _, w := range training.Witnesses() {
		s, err := simulate(layout, w)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	for _, pattern := range []string{"testdata/recordings/*/*.pt.trace.json.gz", filepath.Join(data, "dlrm-8xV100", "*.json.gz"), filepath.Join(data, "kineto-single", "a100_*.json.gz")} {
		s, err := traces(ctx, pattern)
		if err != nil {
			return nil, err
		}
		if len(s.batches) > 0 {
			all = append(all, s)
		}
	}
	return all, nil
}

// jobOps is about how many operations of a simulated job are measured: some row groups.
const jobOps = 200_000

func simulate(layout training.Layout, w training.Witness) (*source, error) {
	job, err := training.New(training.Spec{Layout: layout, Steps: 10_000, Noise: training.DefaultNoise(), Witness: w}, 1)
	if err != nil {
		return nil, fmt.Errorf("simulate %s: %w", w, err)
	}
	s := &source{name: "simulated " + string(w)}
	ranks := job.Ranks()
	for n := 0; n < jobOps; {
		step, ok := job.Next()
		if !ok {
			break
		}
		for i := range ranks {
			ops := slices.Clone(step.Ops(i)) // the job uses its own again
			s.batches = append(s.batches, model.RankOps{Rank: ranks[i], Ops: ops})
			n += len(ops)
		}
	}
	return s, nil
}

// traces reads profiler traces as a receiver does.
func traces(ctx context.Context, pattern string) (*source, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("find traces: %w", err)
	}
	s := &source{name: filepath.Base(filepath.Dir(pattern))}
	if s.name == "*" {
		s.name = "recordings"
	}
	for _, file := range files {
		trace, err := kineto.ParseFile(ctx, file, kineto.DefaultOptions())
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		b := model.RankOps{Rank: trace.Rank()}
		for op := range trace.Ops() {
			b.Ops = append(b.Ops, op)
		}
		s.batches = append(s.batches, b)
	}
	return s, nil
}
