// SPDX-License-Identifier: Apache-2.0

package model

// Parallel holds a rank's coordinates in the parallel layout, unknown where
// nobody said.
type Parallel struct {
	DP, PP, TP, CP, EP Optional[int64]
}

// Rank is the resource of everything observed on one rank of one job.
type Rank struct {
	JobName     string // service.name
	JobID       string
	Incarnation string
	Rank        int64
	LocalRank   Optional[int64]
	WorldSize   Optional[int64]
	Parallel    Parallel
	HostName    string
	HostID      string
	HWID        string // GPU UUID
	PID         Optional[int64]
	ClockID     string // clock of every operation that does not name its own
	// ClockEpoch is what was added to ClockID's readings, ns, to make Unix times.
	ClockEpoch Optional[int64]
}

// MayBe reports whether two resources of one rank may be one process. Sources that know
// less than others contradict nobody.
func (r *Rank) MayBe(o *Rank) bool {
	differ := func(x, y string) bool { return x != "" && y != "" && x != y }
	another := r.PID.OK && o.PID.OK && r.PID.V != o.PID.V
	return !another && !differ(r.HostName, o.HostName) && !differ(r.HostID, o.HostID)
}

// RankOps are operations of one rank.
type RankOps struct {
	Rank Rank
	Ops  []Op
	// Problems are the inputs that could not be read whole, in words a person
	// can act on.
	Problems []Problem
}

// Problem is one fault of the input: which file, where, and what.
type Problem struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"` // bytes, of the uncompressed content; -1 where none applies
	What   string `json:"what"`
	Rank   *int64 `json:"rank,omitempty"`
}
