// SPDX-License-Identifier: Apache-2.0

package model

// Collective names of the data model.
const (
	AllReduce     = "all_reduce"
	AllGather     = "all_gather"
	ReduceScatter = "reduce_scatter"
	Broadcast     = "broadcast"
	Reduce        = "reduce"
	AllToAll      = "all_to_all"
	SendRecv      = "send_recv"
	Barrier       = "barrier"
)

// SeqScope says over what a collective's sequence number was counted.
type SeqScope string

// The scopes of the data model.
const (
	// ScopeCommFunc: per communicator and function (NCCL profiler).
	ScopeCommFunc SeqScope = "comm_func"
	// ScopeComm: per process group over all functions (Flight Recorder).
	ScopeComm SeqScope = "comm"
	// ScopeProcess: a count that nobody shares; never joins ranks.
	ScopeProcess SeqScope = "process"
	// ScopeOrdinal: counted by us per step, communicator and function, for
	// traces without a number of their own; resynchronised by bytes.
	ScopeOrdinal SeqScope = "ordinal"
)

// Comm is the communicator of an operation, as far as the operation knows it.
type Comm struct {
	ID     string // NCCL commHash in hex, or process-group name
	Name   string
	Digest string // of the ordered global ranks
	Size   Optional[int64]
	Rank   Optional[int64]
}

// Collective are the arguments of a collective operation.
type Collective struct {
	Name     string
	Seq      Optional[int64]
	SeqScope SeqScope
	Bytes    Optional[int64]
	DType    string
	Root     Optional[int64]
	Algo     string
	Proto    string
	Channels Optional[int64]
	State    string // scheduled, started or completed
}

// Synchronising reports whether no member of the named collective can leave
// before the last has entered. A broadcast, a reduce and a send_recv do not
// have this property; an all_to_all has it only where every pair exchanges
// bytes, which a trace does not say, so it is not counted either.
func Synchronising(name string) bool {
	switch name {
	case AllReduce, AllGather, ReduceScatter, Barrier:
		return true
	}
	return false
}
