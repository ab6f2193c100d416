// SPDX-License-Identifier: Apache-2.0

// Package ckpt owns the reading of training checkpoints as evidence: which epoch each
// persistence domain of a save holds, by what witness, and whether it is complete. It
// knows how the frameworks lay their files out and in which order they write them. It
// loads no tensor, executes nothing, and follows no link out of the folder it is given, but
// for those of a snapshot of the Hugging Face hub to its blobs.
// What it says is what files show; what follows from that is internal/epoch's.
package ckpt
