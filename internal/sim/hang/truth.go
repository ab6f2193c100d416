// SPDX-License-Identifier: Apache-2.0

package hang

// OpRef names an operation over all ranks.
type OpRef struct {
	Group string // as PyTorch counts them
	Desc  string
	Name  string
	Seq   int64 // of a collective
}

// Fault is one thing that is wrong, as it was put in.
type Fault struct {
	Family string
	// Ranks are at fault; nobody is where Blameless.
	Ranks     []int64
	Blameless bool
	// Concerned are the ranks in the operation that it is about, or in the cycle that it
	// made.
	Concerned []int64
	Op        OpRef
	// Scope is what a stuck host is in, as a recorder in its process would have it.
	Scope string
	// Cycle: it made ranks wait for each other in a circle.
	Cycle bool
}

// Truth is what is wrong with a job.
type Truth struct {
	Family string
	Faults []Fault
	// Dead are ranks whose processes are gone, Silent those that left no dump.
	Dead, Silent []int64
	// Victims wait and are not at fault.
	Victims []int64
}
