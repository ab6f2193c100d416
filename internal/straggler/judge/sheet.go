// SPDX-License-Identifier: Apache-2.0

package judge

// Sheet is what one step showed of all ranks that were seen.
type Sheet struct {
	Step    int64
	Seconds float64 // the step's length
	World   int     // ranks that there are; 0 where unknown
	Rows    []Row   // by rank
	Links   []Link
}

// Seat is where a rank sits. It is shared by all rows of the rank.
type Seat struct {
	Rank int64
	Host string // "" where unknown
	// Coordinates in the parallel layout, -1 where unknown.
	DP, PP, TP, CP, EP int32
}

// Kind says what a rank spent its own, wait-free time on.
type Kind uint8

// Kinds of own time. Compute that ran beside communication is slowed by it and
// compared apart from compute that ran alone.
const (
	Compute Kind = iota
	Overlapped
	Copy
	Host // nothing ran and nothing had been launched
	Kinds
)

// Place is what own time was spent on: one kind of operation, or one scope of the host.
type Place struct {
	Kind  Kind
	Key   string // identity for comparison: a normalised operation, or the scope the host was in
	Name  string // exact name of the operation; "" where equal to Key
	Shape string // grid and data type, "" where unknown: the same name and shape is the same work
	Cause string // model.Cause* where the scope tells it
	// Backward: the name says that it belongs to the backward pass.
	Backward bool
}

// PlaceID numbers the places of a job from 0, in order of first appearance.
type PlaceID uint32

// Cell is what one rank spent in one place during one step. Times are s.
type Cell struct {
	Place   PlaceID
	N       uint32  // operations, or gaps of the host
	Own     float32 // exclusive time
	Typical float32 // median duration of one operation, waits of it and gaps excluded; 0 where not applicable
	Longest float32 // longest operation or gap
	Work    float64 // amount of work: tokens, else bytes, else grid size; 0 where unknown
	// Between is how many of the operations ran between two all_to_all's and had neither
	// tokens nor bytes of their own: their work may be what peers sent. Sent is the sum,
	// over these, of the bytes that the rank gave into the all_to_all that followed.
	Between uint32
	Sent    float64
}

// Row is one rank's share of a step. Times are s.
type Row struct {
	*Seat
	Role    uint64 // equal roles run the same program of communication
	Seconds float32
	Cells   []Cell // by place
	// Given: the excess over peers was found per segment, from communication alone
	// (nobody recorded what the device ran), and is not to be taken from cells.
	Given  bool
	Excess [Kinds]float32
	// Idle is how long nothing ran and nobody was waited for, s. Undivided: all of it is in
	// the cells of the host, as nobody knows when the host was idle and when its device.
	Idle      float32
	Undivided bool
	// Hollow: of some of Idle no launch says whose it is, so that where operations are lost it
	// may be one of those.
	Hollow bool
	// Lost is what share of the row's operations was not recorded, as far as that is known.
	Lost float32
	// Correlation is that of forward and backward times over the microbatches of the
	// step, and Variation their coefficient of variation; NaN where unknown.
	Correlation, Variation float32
	Caused, Suffered       float32 // wait
}

// Link is the transfer of one rank's operations over one link, or within one group,
// in one step: what took longer than the last arrival explains. Times are s.
type Link struct {
	Src, Dst int64  // global ranks; -1 where unknown. Src is -1 for a whole group
	Comm     string // communicator, of a group
	Digest   string // of the group's members, which tells groups of one name apart; "" where unknown
	Members  []int64
	Op       string // collective or send_recv
	Class    uint64 // links of one class do the same in their programs
	N        uint32
	Own      float32 // exposed transfer, or waits on the wire
	Bytes    float64 // 0 where unknown
	// Given: Excess is the excess over peers already, of waits on the wire.
	Given  bool
	Excess float32
}
