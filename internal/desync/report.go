// SPDX-License-Identifier: Apache-2.0

package desync

import "github.com/lockstep-otel/lockstep/internal/model"

// Verdict is what all of it comes to.
type Verdict string

// The verdicts.
const (
	// Healthy: nothing is open for longer than the limit, or all of it moves.
	Healthy Verdict = "healthy"
	// Hang: something hangs, and at least one root is named.
	Hang Verdict = "hang"
	// Undecided: something hangs, and the evidence does not tell why.
	Undecided Verdict = "undecided"
	// NoData: there is nothing to judge.
	NoData Verdict = "no_data"
)

// Report is what is said of one incident.
type Report struct {
	Job     Job
	Verdict Verdict
	// MayRun says why the job may not hang at all, where that is all that is undecided.
	MayRun string
	// Untimed: no state says when it was taken, and what is said of who is at fault rests on
	// the job having stood still then, as the states of one that runs can look alike.
	Untimed bool
	// Unlisted: there are communicators of which neither the members nor the size of the job is
	// known, so that somebody of whom there is no state may be missing in them.
	Unlisted bool
	// Hung: a person says that the job hung when its states were taken. Where MayRun says
	// something, they show no reason for it.
	Hung bool
	// Since is when the hang began at the latest, Unix ns: when the last operation that
	// was enqueued before everything stood still was. 0 where no source stamps.
	Since int64
	// Roots are what is at fault, or can be, the one with the most victims first. Of each the
	// Finding says what is told of it everywhere else.
	Roots []Root
	// Groups are the communicators concerned, for a table; GroupsOmitted those left out.
	Groups        []Group
	GroupsOmitted int

	Ranks   int             // of which there is a state
	Absent  []model.Absence // named and weighed
	Victims int             // ranks that only wait
	// Problems are contradictions of the input, in words.
	Problems []string
	Stats    Stats
}

// Root is one fault.
type Root struct {
	Finding model.Finding
	Op      OpRef // what it is about; zero where it is about none
	// Path is the shortest way from a victim that is far away to the root, for people.
	Path []Hop
	// Members say what each rank concerned did instead, at most MaxMembers, the odd ones first.
	Members        []Member
	MembersOmitted int
}

// MaxMembers bounds Root.Members: who reads a report looks at a screen.
const MaxMembers = 64

// OpRef names an operation over all ranks.
type OpRef struct {
	Name     string
	Comm     model.Comm
	Ranks    []int64 // members; empty where unknown
	Func     string  // where numbers are counted per function
	Seq      int64
	Peer     model.Optional[int64] // messages: from Src to Dst
	Src, Dst model.Optional[int64]
}

// Hop is one edge of a path: Rank is in Op, and waits for the rank For, -1 for none, for the
// reason Why, a clause that follows Op. Where Op only stands behind another operation, Why
// names that one.
type Hop struct {
	Rank int64
	Op   OpRef
	For  int64
	Why  string
}

// Member is what one rank did about an operation.
type Member struct {
	Rank  int64
	Host  string
	State string // "waits", "not enqueued", "completed", "behind", "no dump", ...
	What  string // its own operation in that place, where it differs: name, sizes, type
	Stack string // of that operation
}

// LastCall is what Member.What begins with where a rank has nothing in that place: its newest
// operation follows, open or over.
const LastCall = "last: "

// Group is one communicator over its members.
type Group struct {
	Comm    model.Comm
	Ranks   []int64
	Members int
	// Seen is of how many members there is a state.
	Seen int
	// Enqueued and Completed are the least and the greatest frontier over the members.
	EnqueuedMin, EnqueuedMax, CompletedMin, CompletedMax model.Optional[int64]
	// Head is the oldest open operation, and who is not in it.
	Head    OpRef
	HasHead bool
	Open    int // operations open, over all members
	Absent  []int64
	Note    string
}
