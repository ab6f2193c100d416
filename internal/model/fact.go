// SPDX-License-Identifier: Apache-2.0

package model

// Fact is something that was observed of a node or of a rank and that an analysis can take
// as evidence: of a communication library, a device, a kernel log.
type Fact struct {
	Rank   Rank
	Source string // who observed it
	Kind   string
	What   string // in words
	// Network: it is about the way between ranks, not about a rank's own device or host.
	Network bool
	Time    int64 // Unix ns
}

// Kinds of facts that NCCL's RAS tells of.
const (
	FactNCCLAsyncError = "nccl_async_error" // an error that a communicator met while it ran
	FactNCCLInitError  = "nccl_init_error"  // an error in the making of a communicator
	FactNCCLAborted    = "nccl_aborted"     // a communicator that was aborted
)
