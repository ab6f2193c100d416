// SPDX-License-Identifier: Apache-2.0

package frwrite

// Dump is one rank's dump, with the top level's keys in plain fields.
type Dump struct {
	// Version is that of the format, "2.10" where empty. It decides which keys are written.
	Version string
	// LibVersion is that of the communication library; written from 2.6 on.
	LibVersion string
	Groups     []Group
	Status     []Status
	Entries    []Entry
	// CommState is NCCLX's view of its communicators; written where it is not empty.
	CommState []CommState
	// Stacks: entries carry their frames. JSON never does.
	Stacks bool
}

// Group is an entry of pg_config.
type Group struct {
	Name, Desc string
	Ranks      []int64
}

// Status is an entry of pg_status. PGID is the process's own number of the group.
type Status struct {
	PGID                         int64
	Enqueued, Started, Completed int64 // -1: none
}

// CommState is one communicator of nccl_comm_state.
type CommState struct {
	Comm   string
	Values [][2]string
}

// Frame is one frame of a call stack.
type Frame struct {
	Name, File string
	Line       int64
}

// The states of an entry.
const (
	Scheduled = "scheduled"
	Started   = "started"
	Completed = "completed"
)

// Entry is one operation.
type Entry struct {
	RecordID, PGID        int64
	Group, Desc           string
	ThreadName, ThreadID  string // from 2.9 on
	CollectiveSeq, P2PSeq int64
	OpID                  int64
	Name                  string // "nccl:all_reduce", "nccl:send 0->1"
	Created               int64  // Unix ns
	Duration              *float64
	In, Out               [][]int64
	InTypes, OutTypes     []string // from 2.2 on
	State                 string
	Started, Completed    int64 // Unix ns at which it was seen; 0: never
	Retired               bool
	TimeoutMS             int64 // from 2.2 on
	P2P                   bool
	Frames                []Frame
}

// Active returns the dump without what was seen to complete: what a timeout dump has under
// TORCH_INCLUDE_ONLY_ACTIVE. Members of coalesced groups stay, since no event ever
// completes them.
func (d *Dump) Active() *Dump {
	a := *d
	a.Entries = nil
	for i := range d.Entries {
		if d.Entries[i].Completed == 0 {
			a.Entries = append(a.Entries, d.Entries[i])
		}
	}
	return &a
}

// Torn returns the first share of a file, from 0 to 1: what a reader sees that comes
// while the dump is being written.
func Torn(data []byte, share float64) []byte {
	return data[:min(len(data), int(share*float64(len(data))))]
}

// keys tells which keys a version of the format has.
type keys struct {
	types, status, thread bool
	lib                   string // the key of LibVersion, if any
}

func (d *Dump) version() string {
	if d.Version == "" {
		return "2.10"
	}
	return d.Version
}

func (d *Dump) keys() keys {
	minor := minorOf(d.version())
	k := keys{types: minor >= 2, status: minor >= 3, thread: minor >= 9}
	switch {
	case minor >= 10:
		k.lib = "comm_lib_version"
	case minor >= 6:
		k.lib = "nccl_version"
	}
	return k
}
