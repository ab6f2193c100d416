// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"fmt"
	"strconv"
	"strings"
)

// Format is how a dump is written.
type Format string

// The formats of dumps.
const (
	Pickle Format = "pickle"
	JSON   Format = "json"
)

// Version is a dump's own. Dumps without one are lists of entries, of before 1.1.
type Version struct{ Major, Minor int }

// String returns the version as a dump writes it: "2.10".
func (v Version) String() string { return strconv.Itoa(v.Major) + "." + strconv.Itoa(v.Minor) }

// AtLeast compares minors as numbers: 2.10 is above 2.9.
func (v Version) AtLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

// parseVersion reads "2.10".
func parseVersion(s string) (Version, error) {
	major, minor, _ := strings.Cut(s, ".")
	a, errMajor := strconv.ParseUint(major, 10, 16)
	b, errMinor := strconv.ParseUint(minor, 10, 16)
	if errMajor != nil || errMinor != nil || a < 1 || a > 2 {
		return Version{}, fmt.Errorf("read version: got %.20q; want 1.x or 2.x", s)
	}
	return Version{int(a), int(b)}, nil
}

// Dump is one rank's dump.
type Dump struct {
	Format     Format
	Version    Version
	LibVersion string // of the communication library; empty where not recorded
	// Rank and Host are what a gathering script wrote into it; -1 and empty: nothing.
	Rank int64
	Host string

	// Groups are the process groups whose communicator was there (pg_config).
	Groups []Group
	// Status is how far each group had come (pg_status), in the order of ids.
	Status []Status
	// Entries are the operations, oldest first.
	Entries []Entry
	// Extras are parts that are counted and not judged: nccl_comm_state and the like.
	Extras []Extra

	// Stacks: call stacks were recorded, asked for or not.
	Stacks bool
	// Sum is a hash of the file that it was read from, to be compared within one process; 0
	// where it was not read from a file.
	Sum uint64
	// Partial says why the dump is not whole, in words; empty where it is.
	Partial string
	// Problems are what could not be taken as it stands, in words.
	Problems []string
	Stats    Stats

	texts  []string // of Entry: 0 is the empty one
	tags   []Tag
	shapes []Shape
	stacks [][]Frame // of Entry: 0 is none

	truncated bool // the newest operations may be lacking
}

// Stats count what was read of a dump.
type Stats struct {
	Bytes int64
	// Entries are all; of these BadEntries lacked what they are told apart by,
	// EntriesDropped were beyond the limit, and EntriesCut were incomplete at the end.
	Entries, BadEntries, EntriesDropped, EntriesCut int64
	BadFields                                       int64 // of another type than theirs
	UnknownKeys                                     int64
	// Overflow counts groups, names, sizes and stacks beyond their limits.
	Overflow int64
}

// Group is a process group of pg_config.
type Group struct {
	Tag
	Ranks []int64 // global; nil where the dump does not say them. They are shared: not to be changed

	digest string
}

// Digest returns the identity of the ordered ranks; empty where there are none.
func (g *Group) Digest() string { return g.digest }

// Tag is what an entry says of its process group: its name, which all ranks agree on, and
// its description. Entries of before 2.0 have neither.
type Tag struct{ Name, Desc string }

// Status is how far one group had come. ID is the process's own number of the group,
// which differs between ranks. -1 is none.
type Status struct {
	ID                           int64
	Enqueued, Started, Completed int64
}

// Extra is a part of a dump that is not interpreted.
type Extra struct {
	Key   string
	Items int // entries of an object or list; 1 of anything else
}

// Frame is one frame of a call stack, as recorded.
type Frame struct {
	Name, File string
	Line       int64
}

// Shape is the sizes of the tensors of an operation.
type Shape struct {
	Text  string // "[[2048, 1, 5120]]"
	Elems int64  // in all; -1 where that overflows
}

// State is how far an operation was seen to have come.
type State uint8

// The states of entries. Started never appears with the default settings of NCCL.
const (
	Unstated State = iota
	Scheduled
	Started
	Completed
)

// Entry is one operation. Its texts are numbers of the dump that it belongs to.
type Entry struct {
	Record             int64 // counts the entries of the process; -1 where not recorded
	PG                 int64 // the process's own number of the group; -1 where not recorded
	Coll, P2P, Op      int64 // the counters of the group after this operation; -1 where not recorded
	Created            int64 // Unix ns; so are the two below; 0 where not recorded
	StartSeen, EndSeen int64
	Duration           float64 // ms; negative where not measured
	Timeout            int64   // ms; 0 where not recorded

	name, thread, threadID int32
	tag                    int32
	in, out                int32
	inTypes, outTypes      int32
	stack                  int32

	State   State
	Retired bool
	IsP2P   bool
}

// Name returns the operation as recorded: "nccl:all_reduce".
func (d *Dump) Name(e *Entry) string { return d.texts[e.name] }

// Thread returns the name and id of the host's thread; empty where not recorded.
func (d *Dump) Thread(e *Entry) (name, id string) { return d.texts[e.thread], d.texts[e.threadID] }

// Tag returns the operation's process group.
func (d *Dump) Tag(e *Entry) Tag { return d.tags[e.tag] }

// Sizes returns the sizes of inputs and outputs.
func (d *Dump) Sizes(e *Entry) (in, out Shape) { return d.shapes[e.in], d.shapes[e.out] }

// Types returns the element types of inputs and outputs, as recorded: "BFloat16".
func (d *Dump) Types(e *Entry) (in, out string) { return d.texts[e.inTypes], d.texts[e.outTypes] }

// Frames returns the call stack, innermost first, as recorded; nil where there is none,
// or stacks were not asked for.
func (d *Dump) Frames(e *Entry) []Frame { return d.stacks[e.stack] }
