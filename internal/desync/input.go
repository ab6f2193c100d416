// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Job is whose hang it is.
type Job struct {
	Name, ID, Incarnation string
	// WorldSize is how many ranks it has, where that is known.
	WorldSize model.Optional[int64]
	// Unnumbered: numbers of ranks are those of processes, as where NCCL's RAS knows no communicator
	// of all of them. They are in no finding.
	Unnumbered bool
}

// Doubt is why states may be of a job that runs, although something is open in them.
type Doubt struct {
	Why string
	// Until is how long something must be known to be open to be beyond doubt.
	Until time.Duration
	// InRhythm: the times of the states say that each rank did what it does when the job runs.
	InRhythm bool
	// TimesLost is why it can no longer be told when the states were taken; empty: it can. Then
	// what a job that runs shows at most moments decides nothing.
	TimesLost string
	// Hung: a person says that the job hung when its states were taken.
	Hung bool
	// Habit looks up how often the job looked as it does now while it ran: those that wait, the
	// nearest first, wait for a rank. nil: its history is not known.
	Habit func(rank int64, waiting []int64) Habit
	// Waited is for how long ranks have waited at most, by the times of files; 0: unknown.
	Waited time.Duration
}

// Witness is a fact of somebody else, of a network or a node, that can explain why an
// operation which all members have joined does not end.
type Witness struct {
	// Kind says who tells: "fabric", "nccl_ras", "host".
	Kind string
	// What is it in words: "port mlx5_0 is down".
	What string
	// Host, Rank, Peer and Link are the place, as far as it is known.
	Host       string
	Rank, Peer model.Optional[int64]
	Link       string
	// Network: it is about the way between ranks, not about a rank's own device or host.
	Network     bool
	From, Until int64 // Unix ns; Until 0: it lasts
}
