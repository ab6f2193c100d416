// SPDX-License-Identifier: Apache-2.0

package judge

import "github.com/lockstep-otel/lockstep/internal/model/evidence"

// Rung is where the peers of a conclusion came from: a step of the cohort ladder.
type Rung string

// Rungs, the most alike first.
const (
	RungRole    Rung = "same role over data-parallel ranks"
	RungMembers Rung = "symmetric members of the stage"
	RungKernel  Rung = "same kernel and shape anywhere in the job"
	RungHistory Rung = "own history"
	RungLinks   Rung = "links or groups that carry as much between the same roles"
	RungSegment Rung = "same role in the same rendezvous"
)

// Sides of a network card.
const (
	SideSend    = "tx"
	SideReceive = "rx"
)

// NumberPeers is the number of a link that says what its peers took, s per step.
const NumberPeers = "peers_seconds"

// Conclusion is a place that stands out, before its cost is known.
type Conclusion struct {
	Class string // model.Class*
	Cause string // model.Cause*
	// Rank is the one at fault, or the sender of a link; -1 where a host, a stage,
	// or nobody is named.
	Rank  int64
	Host  string  // of a stage, the one that holds exactly it, where nothing tells which of them it is
	Stage int32   // -1 where none
	Ranks []int64 // at fault, or concerned (the stage; those with more work)
	Peer  int64   // of a link; -1 where unknown
	Comm  string  // of a link within a group
	// Digest of that group's members, "" where unknown: groups without a common member
	// may bear one name.
	Digest string
	// Side of Rank's card that is slow for all its links: SideSend, SideReceive, or ""
	// where it is one link.
	Side  string
	Op    string  // that holds most of the excess: key of its place
	OpSec float64 // excess in it, s per step

	First, Last int64   // steps
	Steps       int     // judged among them
	Excess      float64 // s per step over peers, typical step
	Mean        float64 // s per step over peers, mean
	Share       float64 // of the peers' own time
	// Intermittent: held up in some steps only; Excess is the mean then.
	Intermittent bool
	Chance       float64 // probability that chance alone names somebody so, over all ranks and looks
	Steadiness   float64 // standard errors above zero
	Memory       float64 // measured correlation of neighbouring steps of what it was judged by
	Confidence   float64 // 0 to 1, of this place and class, before missing ranks and clocks lower it
	Rung         Rung
	Peers        int
	Pauses       *evidence.Pauses // of jitter and of intermittent excess
	// Held is for how long, s, in each step in which it was, a rank was held up longer than
	// all others, or of jitter, all hosts together were. HeldFrom is the shortest pause of
	// jitter.
	Held     map[int64]float64
	HeldFrom float64
	// Numbers are further quantities that decided, for the evidence.
	Numbers map[string]float64
}

// Abstention is the strongest place that was not named, and why.
type Abstention struct {
	Rank      int64
	Ranks     []int64 // that stand out alike, where half of a cohort or more does
	Link      bool
	Class     string // that it would have been
	Gate      string // the first that it failed
	Got, Want float64
	Share     float64
	Chance    float64
	Seconds   float64 // per step, that Ranks take longer than the others
}
