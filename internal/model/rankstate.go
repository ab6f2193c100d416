// SPDX-License-Identifier: Apache-2.0

package model

// RankState is what one rank's communication had come to at one time: how far it was on
// each communicator, what it had open, and what it did last. A reader makes it from a
// Flight Recorder dump, from a ring, or from what NCCL's RAS says; the analysis of hangs
// needs nothing else of a rank. It is small, some kilobytes, so that nodes can send it
// instead of dumps.
type RankState struct {
	Rank Rank
	// Time is when the state was taken, Unix ns by the rank's host; 0 where unknown: a
	// dump does not say it.
	Time   int64
	Source StateSource
	// Name says for people where it came from: a file or an address.
	Name string

	// Partial says why the state is not whole, in words; empty where it is.
	Partial string
	// OnlyActive: operations that were over were left out. That one is not among Ops
	// says then that it was over, or that it never was: the frontiers tell which.
	OnlyActive bool
	// Dropped counts operations that found no room in Ops.
	Dropped int64

	// LibVersion is that of the communication library, as recorded.
	LibVersion string

	Process ProcessState
	// Silent is how long the process had given no sign of life, s.
	Silent Optional[float64]
	// Phase, Scope and ScopeFor are what the host was in, where that is known.
	Phase    string
	Scope    string
	ScopeFor Optional[float64] // s

	// LastEnqueue is when the newest operation was enqueued, Unix ns; 0 where unknown.
	LastEnqueue int64

	Comms []CommState
	// Ops are operations in the order in which the host issued them: all that are open,
	// and the last few of each communicator that are over.
	Ops []StateOp
	// Stacks are call stacks, referred to by StateOp.Stack. They are filled only where
	// they were asked for.
	Stacks []string
	// HostStack is where the program's main thread was, innermost call first, one a line; empty
	// where nobody asked.
	HostStack string
}

// StateSource says who observed a RankState.
type StateSource string

// The sources of states.
const (
	StateFlightRecorder StateSource = "flight_recorder"
	StateRankEvents     StateSource = "rank_events"
	StateRAS            StateSource = "nccl_ras"
	// StateWatchdogLog: what PyTorch wrote about it in its log, when an operation timed out.
	StateWatchdogLog StateSource = "watchdog_log"
)

// ProcessState is what is known of a rank's process.
type ProcessState string

// States of processes. The empty one is unknown.
const (
	ProcessRunning ProcessState = "running"
	ProcessStopped ProcessState = "stopped" // by a signal: SIGSTOP, SIGTSTP
	ProcessTraced  ProcessState = "traced"  // held by a debugger
	ProcessFrozen  ProcessState = "frozen"  // with its cgroup
	ProcessDead    ProcessState = "dead"    // it is gone, and that was seen
	// ProcessEnded: it is gone, and had said goodbye before: an ordinary end, unless others
	// still wait for it.
	ProcessEnded ProcessState = "ended"
)

// CommState is one rank's view of one communicator.
type CommState struct {
	// Comm names it; ID is unique within the state. Name is the process group's
	// description where there is one.
	Comm Comm
	// Backend is "nccl", "gloo" and the like; empty where unknown.
	Backend string
	// Members are its ordered global ranks; empty where the state does not say them.
	Members []int64
	// MembersInferred: they were not recorded, but concluded.
	MembersInferred bool
	// Scope says what the numbers below and those of StateOp.Seq count.
	Scope     SeqScope
	Frontiers []Frontier
	// P2PShared: Frontiers also count messages (Flight Recorder's pg_status in a group
	// that has both), so that they do not compare with numbers of collectives. A rank
	// whose messages are all over does not know it: where one member says so, it holds for
	// all whose Frontiers are as recorded.
	P2PShared bool
	// FrontiersInferred: which recorded numbers are this communicator's was not said, but
	// concluded from the order of creation.
	FrontiersInferred bool
	// Untracked says why an operation may have run here that was never recorded, in words:
	// replayed graphs, messages of Gloo. Absence proves nothing then.
	Untracked string
}

// Frontier is how far a rank has come on a communicator: of one function where numbers
// are counted per function (ScopeCommFunc), else Func is empty.
type Frontier struct {
	Func                         string
	Enqueued, Started, Completed Optional[int64]
	// FirstKept is the lowest number that is still recorded, where older ones may have
	// been overwritten. That a lower one is absent is no evidence.
	FirstKept Optional[int64]
}

// StateOp is one operation of a RankState.
type StateOp struct {
	Kind OpKind // KindCollective, KindSend or KindRecv
	// Name is the collective's name of the data model, or send or recv; Recorded is as
	// its source spells it.
	Name     string
	Recorded string
	Comm     int // place in RankState.Comms
	// Seq is its number, counted as CommState.Scope says. Of a message it is the rank's own
	// count of messages on the communicator: the two ends differ.
	Seq int64
	// Batch tells members of one grouped launch: equal numbers on one communicator of one
	// rank are of one. They begin together and are over together.
	Batch Optional[int64]
	Peer  Optional[int64] // global rank of the other side of a message
	// PeerLocal is its rank in the communicator, where the global one is unknown.
	PeerLocal Optional[int64]
	// Nth says that a message is the n-th from its sender to its receiver on the communicator,
	// from 0: of both ends the same. Known only where every message was recorded.
	Nth  Optional[int64]
	Root Optional[int64] // rank in the communicator

	// In and Out are the sizes of what goes in and comes out, as recorded: [[2048, 5120]].
	In, Out           string
	InElems, OutElems Optional[int64] // elements in all
	InType, OutType   string
	Bytes             Optional[int64] // where sizes are not recorded

	Created int64 // Unix ns at which the host enqueued it; 0 where unknown
	// Done: it was over. Started: it was seen to have started; that it was not seen says
	// nothing, since most sources never record it.
	Done    bool
	Started bool
	// Enqueueing: the host has not come out of the call.
	Enqueueing bool
	Timeout    Optional[float64] // s after which the library gives it up
	Thread     string
	Stack      int // place in RankState.Stacks + 1; 0: none
	// Send and Receive are what its proxies wait for, where that is known.
	Send, Receive ProxyWait
}

// AbsenceReason says why there is no state of a rank.
type AbsenceReason string

// Reasons of absence, from what is best known to what is least.
const (
	AbsentDead       AbsenceReason = "dead"       // its process is known to be gone
	AbsentUnreadable AbsenceReason = "unreadable" // its dump is damaged or empty
	AbsentRefused    AbsenceReason = "refused"    // its dump was not taken: of another job, a twin
	AbsentStale      AbsenceReason = "stale"      // its dump is of before the incident
	AbsentLate       AbsenceReason = "late"       // it had not come when the deadline passed
	AbsentMissing    AbsenceReason = "missing"    // nothing was heard of it
)

// Absence is a rank of which no state is to be had, and why. It is evidence, too.
type Absence struct {
	Rank   int64
	Reason AbsenceReason
	// Detail names the file and the fault, or the witness of the death.
	Detail string
	// Time is when that was seen, Unix ns; 0 where unknown.
	Time int64
}
