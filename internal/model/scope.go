// SPDX-License-Identifier: Apache-2.0

package model

// Scopes that every framework has, by the names under which hooks record them.
// They decide the cause of a finding; other names are told of as they are.
const (
	ScopeForward           = "forward"
	ScopeBackward          = "backward"
	ScopeOptimizer         = "optimizer"
	ScopeDataLoading       = "data_loading"
	ScopeGarbageCollection = "garbage_collection"
	ScopeCompile           = "compile"
	ScopeCheckpointSave    = "checkpoint_save"
	ScopeCheckpointLoad    = "checkpoint_load"
	ScopeProcessGroup      = "process_group"
)

// Phases of a scope, and of a step.
const (
	PhaseInit       = "init"
	PhaseCompile    = "compile"
	PhaseTrain      = "train"
	PhaseEval       = "eval"
	PhaseCheckpoint = "checkpoint"
	PhaseInference  = "inference"
)
