// SPDX-License-Identifier: Apache-2.0

package blame

// Kind says what an operation is, and what time on the path was spent on.
type Kind uint8

// Kinds. Operations are of the first three; the others are what the walk finds between
// them.
const (
	Compute Kind = iota
	Copy
	Comm
	Host       // no stream ran, and the host had launched nothing
	Dependency // launched, and waiting for what nobody recorded
	Link       // transfer, after the one that was waited for had come
	Unknown    // communication whose partners are not known
	Stage      // what a pipeline's stage has to do beyond the others
	Work       // amounts of work that differ between ranks or microbatches
	kinds
)

var kindNames = [kinds]string{"compute", "copy", "communication", "host", "dependency", "link", "unknown", "stage", "work"}

// String returns the kind's name.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return "invalid"
}

// Place is the identity of an operation, or of a scope of the host, for comparison.
type Place uint32

// endPlace is that of the end of a rank's step.
const endPlace = ^Place(0)

// Op is one operation of a rank. Times are ns on one timeline of all ranks.
type Op struct {
	Start, End int64
	Launch     int64 // at which the host launched it; 0 where unknown
	Lane       int64 // in which operations run in order
	Place      Place
	Seq        uint32 // n-th of its place on its rank
	Micro      int32  // microbatch; below 0 where unknown
	Kind       Kind   // Compute, Copy or Comm
}

// Rank is what one rank did in the step.
type Rank struct {
	Rank       int64
	Role       uint64 // ranks of equal roles run the same program
	Stage      int32  // of a pipeline; below 0 where unknown
	Start, End int64
	Ops        []Op
	// Syncs are times at which the host was seen to have waited for its device.
	Syncs []int64
	// Holes are times, from and to and in order, in which communication may have been lost.
	// What was idle then may have waited for it, for nobody knows whom.
	Holes [][2]int64
	// Dark: nobody recorded what the device ran besides communication. What was
	// launched and has not begun then waits for work.
	Dark bool
}

// Rule says who waits for whom in a meeting.
type Rule uint8

// Rules.
const (
	Nobody  Rule = iota // not decidable
	All                 // everyone for the last arriver
	Root                // the others for one of them
	Message             // the receiver for the sender, and the sender where it stayed until the receiver came
)

// Party is one member of a meeting: an operation of a rank, by their places in the step.
type Party struct{ Rank, Op int32 }

// Meeting is a rendezvous of operations of kind Comm.
type Meeting struct {
	Parties []Party
	Rule    Rule
	Root    int32  // the party that is waited for, under rules Root and Message
	Class   uint64 // meetings of one class move as much in the same way
	// Vague is how far apart two arrivals must be for their order to be known.
	Vague int64
}

// Step is what all ranks did.
type Step struct {
	Ranks    []Rank
	Meetings []Meeting
}

// Options bound and explain.
type Options struct {
	// MaxOps refuses steps of more operations; 0 stands for DefaultMaxOps.
	MaxOps int
	// Scope returns in which scope the host of the step's i-th rank was for most of
	// the time; nil where none is known.
	Scope func(i int, from, to int64) Place
	// Alike returns the place that stands for all that do the same, by whatever kernel;
	// nil where none is known.
	Alike func(Place) Place
}

// DefaultMaxOps bounds the graph to some 60 MB.
const DefaultMaxOps = 400_000
