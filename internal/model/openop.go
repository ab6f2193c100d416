// SPDX-License-Identifier: Apache-2.0

package model

import "time"

// SilentAfter is how long a process gives no sign of life before that is said of it:
// as long as one must be silent to be dead (docs/format/ring.md).
const SilentAfter = 3 * time.Second

// ProxyWait is what the proxy steps of one direction wait for.
type ProxyWait struct {
	State string            // empty: for nothing
	For   Optional[float64] // s
	Peer  Optional[int64]   // global rank
}

// OpenOp is an operation in flight that has not ended for long, as seen from one
// rank.
type OpenOp struct {
	// Op is what is known of the operation; it has no end.
	Op Op
	// Time is when this was seen, Unix ns; Since when the operation was
	// enqueued, ns of the host's raw clock.
	Time  int64
	Since int64
	// Status is StatusOpen when it is first told of, StatusUpdated after, and
	// StatusClosed once it has ended.
	Status string
	Age    float64 // s since it was enqueued
	// Enqueueing: the host has not come out of enqueueing it.
	Enqueueing bool
	// ProcessDied: its process ended and left it open.
	ProcessDied bool
	// Behind counts the operations in flight behind it on its communicator;
	// InFlight those of the process.
	Behind, InFlight int64
	// ProxyState is what the last proxy step waits for, for ProxyFor seconds;
	// Op.Peer is with whom.
	ProxyState string
	ProxyFor   Optional[float64]
	// Send and Receive are what its proxies have waited for longest in each
	// direction.
	Send, Receive ProxyWait
	// Silent is how long its process has given no sign of life, s.
	Silent Optional[float64]
	// Scope is the scope that its process's host is in, for ScopeFor seconds: of the
	// main thread, else the one that a thread has been in longest. Empty: in none.
	Scope    string
	ScopeFor Optional[float64]
	// Enqueued, Started and Completed are the sequence numbers that its function
	// has reached on its communicator.
	Enqueued, Started, Completed Optional[int64]
}
