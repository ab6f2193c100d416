// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// cause is what a scope says of why the host was not launching.
type cause uint8

const (
	byContext    cause = iota // nothing: it takes that of the scope it lies in
	byProgram                 // the program's own work: none
	byDataLoader              // the first that is told
	byCompile
	byGC
	byCheckpoint
	causes

	firstTold = byDataLoader
)

var causeNames = [causes]string{
	byDataLoader: model.CauseDataLoader, byCompile: model.CauseCompile, byGC: model.CauseGC, byCheckpoint: model.CauseCheckpoint,
}

// causeByScope are the standard scopes. docs/diagnosis.md lists them.
var causeByScope = map[string]cause{
	model.ScopeForward:           byProgram,
	model.ScopeBackward:          byProgram,
	model.ScopeOptimizer:         byProgram,
	model.ScopeProcessGroup:      byProgram,
	model.ScopeDataLoading:       byDataLoader,
	model.ScopeCompile:           byCompile,
	model.ScopeGarbageCollection: byGC,
	model.ScopeCheckpointSave:    byCheckpoint,
	model.ScopeCheckpointLoad:    byCheckpoint,
}

// What frameworks call the taking of the next batch: PyTorch's profiler and NVTX
// ranges, whichever the iterator; and Lightning's profilers, whichever the prefix.
const (
	pytorchLoader   = "enumerate(DataLoader)#"
	lightningLoader = ".train_dataloader_next"
)

func causeOf(op *model.Op) cause {
	switch op.Phase {
	case model.PhaseCompile:
		return byCompile
	case model.PhaseCheckpoint:
		return byCheckpoint
	}
	if strings.HasPrefix(op.Name, pytorchLoader) || strings.HasSuffix(op.Name, lightningLoader) {
		return byDataLoader
	}
	return causeByScope[op.Name]
}

// owns reports whether all that lies in such a scope is done for it: what a compiler
// or a collector calls, whatever it is named. A loader may be interrupted.
func (c cause) owns() bool { return c == byCompile || c == byGC || c == byCheckpoint }

// within returns the cause of a scope that ends at end, where those in open had begun
// before and had not ended: its own, unless the innermost that it lies in owns it or
// it has none. What merely overlaps with it decides nothing.
func (c cause) within(open []activity, end int64) cause {
	for i := len(open) - 1; i >= 0; i-- {
		if open[i].end < end {
			continue
		}
		if in := open[i].cause; c == byContext || in.owns() {
			return in
		}
		return c
	}
	return c
}
