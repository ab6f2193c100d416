// SPDX-License-Identifier: Apache-2.0

// Package ckptsim writes training checkpoints as the frameworks do, file operation by file
// operation and rank by rank, and says which states a crash can leave on the disk and what
// those hold. It is the ground truth that internal/ckpt is held against; no engine imports
// it.
//
// A save is one list of operations for each rank, with barriers where the framework has
// them. Contents are small and real in layout. Each byte belongs to a known save, so that
// what a state holds is decided by comparing bytes, and by nothing that a reader looks at.
package ckptsim
