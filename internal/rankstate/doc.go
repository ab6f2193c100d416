// SPDX-License-Identifier: Apache-2.0

// Package rankstate owns the wire form of a rank's state (model.RankState): some
// kilobytes in which a node tells an analysis elsewhere how far a rank had come. It is
// specified in docs/format/rank-state.md.
//
// Encode always succeeds: what exceeds the limits is left out and said to be. Decode
// trusts nothing: it reads no more than the limits allow and returns an error that names
// offset and limit for everything else.
package rankstate

// Version is the version of the form that Encode writes. A reader takes this one only;
// what is added goes into new sections, which older readers pass over.
const Version = 1

// The limits of one state. Encode keeps to them and Decode enforces them.
const (
	// MaxBytes bounds the encoded form: 4,096 open operations are some 100 KB, and
	// Kafka's and gRPC's default messages are 1 and 4 MiB.
	MaxBytes = 1 << 20
	// MaxString is the longest string, in bytes: a call stack of 200 frames is 16 KiB.
	// What is no stack is cut to MaxWord: the sizes of 500 tensors are some 8 KiB.
	MaxString = 64 << 10
	MaxWord   = 16 << 10
	// MaxStrings bounds the different strings.
	MaxStrings = 1 << 16
	// MaxComms bounds the communicators: jobs have some tens on a rank.
	MaxComms = 4096
	// MaxFrontiers bounds those of one communicator: NCCL has under 20 functions.
	MaxFrontiers = 64
	// MaxOps bounds the operations: twice what an analysis holds of a rank.
	MaxOps = 8192
	// MaxStacks bounds the call stacks.
	MaxStacks = 4096
	// MaxMembers bounds the members of all communicators of a state together: eight
	// groups of the 131,072 ranks that an analysis holds.
	MaxMembers = 1 << 20
)

// magic begins every encoded state.
const magic = "LRS"

// Sections, in the order in which they are written.
const (
	sectionStrings = iota + 1
	sectionRank
	sectionState
	sectionComms
	sectionOps
	sectionStacks
	sectionHost // there only where there is something in it
	sectionsEnd
)

// Bits that tell which fields of a record are present, in the order in which these follow.
const (
	rankLocal = 1 << iota
	rankWorld
	rankDP
	rankPP
	rankTP
	rankCP
	rankEP
	rankPID
	rankClockEpoch
	rankEnd
)

const (
	stateOnlyActive = 1 << iota
	stateSilent
	stateScopeFor
	stateEnd
)

const (
	commSize = 1 << iota
	commRank
	commInferred
	commP2PShared
	commFrontiersInferred
	commEnd
)

const (
	frontierEnqueued = 1 << iota
	frontierStarted
	frontierCompleted
	frontierFirstKept
	frontierEnd
)

const (
	opCreated = 1 << iota
	opDone
	opStarted
	opEnqueueing
	opBatch
	opPeer
	opPeerLocal
	opRoot
	opInElems
	opOutElems
	opBytes
	opTimeout
	opStack
	opSend
	opReceive
	opNth
	opEnd
)

const (
	waitFor = 1 << iota
	waitPeer
	waitEnd
)
