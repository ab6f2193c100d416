// SPDX-License-Identifier: Apache-2.0

package capability

import "github.com/lockstep-otel/lockstep/internal/model"

func always(d delay) func(*job, int, int) delay {
	return func(*job, int, int) delay { return d }
}

// kept is a fault of one host, ms in every step.
func kept(name, scope, phase string) fault {
	return fault{name: name, at: []int{culprit}, delay: func(j *job, _, _ int) delay {
		d := delay{host: 14, scope: scope, phase: phase}
		if j.shape == ahead || j.shape == unwaited {
			d.host = 70
		}
		return d
	}}
}

// faults are those that are simulated, by the class that tells the truth of them.
var faults = []fault{
	{name: model.ClassCompute, at: []int{culprit}, delay: always(delay{device: 1.35})},
	{name: "compute after", at: []int{culprit}, delay: always(delay{optimizer: 6})},
	kept(model.ClassHost, "", ""),
	kept(model.CauseDataLoader, model.ScopeDataLoading, ""),
	kept(model.CauseGC, model.ScopeGarbageCollection, ""),
	kept(model.CauseCheckpoint, model.ScopeCheckpointSave, model.PhaseCheckpoint),
	kept(model.CauseCompile, model.ScopeCompile, model.PhaseCompile),
	{name: model.ClassLink, at: []int{culprit}, link: 6},
	// One rank has more tokens than the others in every step.
	{name: model.ClassWorkImbalance, at: []int{culprit}, delay: always(delay{work: 1.35})},
	// The grid of its products says nothing of that: as many blocks as the device holds.
	{name: "persistent", at: []int{culprit}, delay: always(delay{work: 1.35, persistent: true})},
	// The third stage of a pipeline has half as many layers again, in both replicas.
	{name: model.ClassStageImbalance, at: []int{4, 5}, delay: always(delay{layers: 1})},
	// Its library chose another matrix product, of half as large tiles.
	{name: model.ClassKernelChoice, at: []int{culprit}, delay: always(delay{gemm: 1.6, gemmName: "ampere_sgemm_32x128_tn", gemmBlocks: 2048})},
	// Held up for long in one step of five.
	{name: "now and then", at: []int{culprit}, delay: func(_ *job, _, step int) delay {
		if step%5 == 3 {
			return delay{host: 40}
		}
		return delay{}
	}},
	// Each rank pauses in one step of sixteen, none with another.
	{name: model.ClassJitter, delay: func(_ *job, rank, step int) delay {
		if step%16 == rank*2 {
			return delay{host: 40}
		}
		return delay{}
	}},
	// Both ranks of one node compute longer.
	{name: model.ClassNode, at: []int{4, 5}, delay: always(delay{device: 1.35})},
	// All do, from the middle of the job on.
	{name: model.ClassJobWide, delay: func(_ *job, _, step int) delay {
		if step >= steps/2 {
			return delay{device: 1.35}
		}
		return delay{}
	}},
}

func faultNamed(name string) *fault {
	for i := range faults {
		if faults[i].name == name {
			return &faults[i]
		}
	}
	return nil
}

// scene is a fault in a job of some shape.
type scene struct {
	fault *fault
	shape shape
}

// scenesOf returns the jobs that a cell rests on, by the class or cause of its truth.
func scenesOf(key string) (out []scene) {
	shapes := []shape{reads, sharded}
	switch key {
	case model.ClassCompute:
		out = append(out, scene{faultNamed("compute after"), reads}, scene{faultNamed(key), readsAt})
	case model.ClassHost:
		shapes = []shape{reads, readsAt, sharded}
	case model.ClassWorkImbalance:
		out = append(out, scene{faultNamed("persistent"), reads})
	case model.ClassStageImbalance:
		shapes = []shape{pipelined}
	case model.ClassNode, model.ClassJobWide, model.ClassJitter:
		shapes = []shape{reads}
	}
	for _, s := range shapes {
		if f := faultNamed(key); f != nil {
			out = append(out, scene{f, s})
		}
	}
	return out
}
