// SPDX-License-Identifier: Apache-2.0

package causality

import "github.com/lockstep-otel/lockstep/internal/model"

// Via is how the first span of a relation is found from the second.
type Via uint8

// How two spans are known to belong together.
const (
	ViaParent Via = iota
	ViaLink
	ViaMeeting
)

// Row is one relation that truly holds: the From end of the first span happened
// before the To end of the second.
type Row struct {
	Name          string
	Via           Via
	First, Second Needs
	From, To      End
	Source        string // of the clock edges that it makes
	// Usual: it holds as a rule, and nobody promises it. Where it is wrong nothing is
	// known of clocks or the program, and no clock is judged by it.
	Usual bool
}

// Needs are the traits that a span must have for a relation to hold.
type Needs struct {
	All, Any, None Trait
}

func (n Needs) met(t Trait) bool {
	return t&n.All == n.All && (n.Any == 0 || t&n.Any != 0) && t&n.None == 0
}

// The rows of meetings, which ranks find by their rendezvous.
var (
	// LeavesAfterLast: nobody leaves a synchronising collective before all are in.
	LeavesAfterLast = &Row{Name: "leaves_after_last_enters", Via: ViaMeeting, From: Start, To: Finish, Source: model.EdgeCollective}
	// LeavesAfterRoot: a broadcast and a scatter end nowhere before the root is in.
	LeavesAfterRoot = &Row{Name: "leaves_after_root_enters", Via: ViaMeeting, From: Start, To: Finish, Source: model.EdgeCollective}
	// RootLeavesAfterLast: the root of a reduce and a gather has something of each.
	RootLeavesAfterLast = &Row{Name: "root_leaves_after_last_enters", Via: ViaMeeting, From: Start, To: Finish, Source: model.EdgeCollective}
	// RecvEndsAfterSend: what is received has been sent.
	RecvEndsAfterSend = &Row{Name: "recv_ends_after_send_begins", Via: ViaMeeting, From: Start, To: Finish, Source: model.EdgeMessage}
)

// Table is all relations.
//
// What is not in it, and why: the end of a child against its parent's, save for
// remote procedure calls that wait (nobody waits for an asynchronous child; a stream ends when
// either side likes; who failed did not wait); a link that is no message (it
// says that two spans have to do with each other, and not when); the start of
// who takes messages (it began to wait before they were sent); operations of a
// rank against their step (a step encloses what was enqueued in it, and a GPU
// executes when it comes to it); an all_to_all (whose members may have nothing
// for each other).
var Table = []*Row{
	{
		Name: "child_starts_after_parent", Via: ViaParent, From: Start, To: Start, Source: model.EdgeCall,
		First:  Needs{None: Operation},
		Second: Needs{None: Operation | Receive | Afterwards},
	},
	{
		Name: "call_ends_after_its_server", Via: ViaParent, From: Finish, To: Finish, Source: model.EdgeCall,
		// The first is the one that ends first: the server, child of the client.
		First:  Needs{All: Server | Call, None: Messaging | Streaming | Failed | Operation},
		Second: Needs{All: Client, None: HTTP | Messaging | Streaming | Failed | Operation},
	},
	{
		// A client's span may end with the headers of the answer, and the server's with
		// its body: OpenTelemetry leaves it open.
		Name: "http_ends_after_its_server", Via: ViaParent, From: Finish, To: Finish, Usual: true,
		First:  Needs{All: Server, Any: Call | HTTP, None: Messaging | Streaming | Failed | Operation},
		Second: Needs{All: Client, Any: HTTP, None: Messaging | Streaming | Failed | Operation},
	},
	{
		Name: "http_ends_after_its_server", Via: ViaParent, From: Finish, To: Finish, Usual: true,
		First:  Needs{All: Server | HTTP, None: Messaging | Streaming | Failed | Operation},
		Second: Needs{All: Client, None: HTTP | Messaging | Streaming | Failed | Operation},
	},
	{
		Name: "receive_ends_after_send_begins", Via: ViaParent, From: Start, To: Finish, Source: model.EdgeMessage,
		First:  Needs{Any: Producer | Send, None: Operation},
		Second: Needs{All: Receive, None: Operation},
	},
	{
		Name: "receive_ends_after_send_begins", Via: ViaLink, From: Start, To: Finish, Source: model.EdgeMessage,
		First:  Needs{Any: Producer | Send, None: Operation},
		Second: Needs{All: Receive, None: Operation},
	},
	{
		Name: "process_starts_after_send_begins", Via: ViaLink, From: Start, To: Start, Source: model.EdgeMessage,
		First:  Needs{Any: Producer | Send, None: Operation},
		Second: Needs{All: Process, None: Operation | Receive},
	},
	LeavesAfterLast, LeavesAfterRoot, RootLeavesAfterLast, RecvEndsAfterSend,
}

// parents and links are the rows that spans of one trace, and linked ones, are
// tried against.
var (
	starts           = Table[0]
	callEnds         = Table[1:4]
	receivesOfParent = Table[4]
	links            = Table[5:7]
)

// MeetingRow returns the row of a rank's communication and the member's part in
// it; false where nothing about it holds for certain.
func MeetingRow(op *model.Op) (row *Row, sends, receives bool) {
	switch {
	case op.Kind == model.KindSend:
		return RecvEndsAfterSend, true, false
	case op.Kind == model.KindRecv:
		return RecvEndsAfterSend, false, true
	case model.Synchronising(op.Collective.Name):
		return LeavesAfterLast, true, true
	}
	root, rank := op.Collective.Root, op.Comm.Rank
	if !root.OK || !rank.OK {
		return nil, false, false
	}
	isRoot := root.V == rank.V
	switch op.Collective.Name {
	case model.Broadcast, "scatter":
		return LeavesAfterRoot, isRoot, !isRoot
	case model.Reduce, "gather":
		return RootLeavesAfterLast, !isRoot, isRoot
	}
	return nil, false, false
}

// endKnown reports whether an operation's end was observed.
func endKnown(op *model.Op) bool {
	return !op.EndInferred && (op.Collective.State == "" || op.Collective.State == "completed")
}

// MeetOf returns where an operation meets those of other ranks; nil where it
// does not, or nothing about it holds for certain. Numbers that were counted
// within a step by a reader join what is alike, which is good enough for a
// statistic and not for a bound.
func MeetOf(r *model.Rank, op *model.Op) *Meet {
	key, ok := model.Rendezvous(r, op)
	if !ok || key.Scope == model.ScopeOrdinal {
		return nil
	}
	row, sends, receives := MeetingRow(op)
	receives = receives && endKnown(op)
	if !sends && !receives {
		return nil
	}
	return &Meet{Key: key, Job: r.JobID, Digest: op.Comm.Digest, Rank: r.Rank, Row: row, Sends: sends, Receives: receives}
}
