// SPDX-License-Identifier: Apache-2.0

// Package replica owns whether the replicas of a group still hold the same parameters: each tells what
// a slice of them hashes to after a step, and of one step all must tell one hash, on the flat lattice of
// package epoch. A slice stays in doubt until it is seen to agree at a later step. Which way a
// minority went wrong, by a load or by a fault of its GPU, is not known here.
package replica
