// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"strings"
)

// Kernel is a record of KindKernel: what the device ran, by CUPTI's clock.
type Kernel struct {
	Start, End    uint64 // ns of CUPTI's clock
	Launch        uint64 // when the call that launched it began; meaningful if Launched
	Launched      bool
	Copy, Set     bool // of memory; neither: a kernel
	Graph         bool // of a CUDA graph
	Communication bool // a communication library's
	Name          uint16
	TID           uint32 // of the launch
	Stream        uint32
	Device        uint16
	Context       uint16
	Correlation   uint32
	GraphID       uint32
	Grid, Block   [3]uint32
	Registers     uint16
	Bytes         uint64 // of a copy or set
	SharedMemory  uint32
	GPU           uint32 // index of the GPU; 0 unknown
}

// Flags of a kernel.
const (
	kernelCopy   Flags = 1 << 0
	kernelSet    Flags = 1 << 1
	kernelGraph  Flags = 1 << 2
	kernelComm   Flags = 1 << 3
	kernelLaunch Flags = 1 << 4
)

// Kernel reads a record of KindKernel.
func (r *Record) Kernel() Kernel {
	k := Kernel{
		Start: r[2], End: r[3],
		Launched: r.Has(kernelLaunch), Copy: r.Has(kernelCopy), Set: r.Has(kernelSet),
		Graph: r.Has(kernelGraph), Communication: r.Has(kernelComm),
		Name: uint16(r[5]), TID: uint32(r[5] >> 32),
		Stream: uint32(r[6]), Device: uint16(r[6] >> 32), Context: uint16(r[6] >> 48),
		Correlation: uint32(r[7]), GraphID: uint32(r[7] >> 32),
		Grid:  [3]uint32{uint32(r[8]), uint32(uint16(r[8] >> 32)), uint32(uint16(r[8] >> 48))},
		Block: [3]uint32{uint32(uint16(r[9])), uint32(uint16(r[9] >> 16)), uint32(uint16(r[9] >> 32))}, Registers: uint16(r[9] >> 48),
		Bytes: r[10], SharedMemory: uint32(r[11]), GPU: uint32(r[11] >> 32),
	}
	if k.Launched {
		k.Launch = r[4]
	}
	return k
}

// LaunchOrStart is when a kernel was launched, or where that is unknown, began: what
// kernels are ordered by.
func (r *Record) LaunchOrStart() uint64 {
	if r.Has(kernelLaunch) {
		return r[4]
	}
	return r[2]
}

// Clock is a record of KindClock: CUPTI's clock and the host's, read together.
type Clock struct {
	Raw      uint64 // MONOTONIC_RAW ns, the middle of the reading
	CUPTI    uint64 // ns
	Realtime uint64 // ns
	Width    uint32 // ns that the reading took
	Source   uint32 // SourceCUPTI
}

// SourceCUPTI is the only source of a Clock that is known.
const SourceCUPTI = 1

// Clock reads a record of KindClock.
func (r *Record) Clock() Clock {
	return Clock{Raw: r[2], CUPTI: r[3], Realtime: r[4], Width: uint32(r[5]), Source: uint32(r[5] >> 32)}
}

// Link is a record of KindLink: a span of a trace that the step works for.
type Link struct {
	Step  int64 // -1: none
	Trace [16]byte
	Span  [8]byte
	At    uint64 // ns
	TID   uint32
}

// Link reads a record of KindLink.
func (r *Record) Link() (l Link) {
	l.Step, l.At, l.TID = int64(r[2]), r[6], uint32(r[7])
	binary.NativeEndian.PutUint64(l.Trace[:8], r[3])
	binary.NativeEndian.PutUint64(l.Trace[8:], r[4])
	binary.NativeEndian.PutUint64(l.Span[:], r[5])
	return l
}

// Witness is what feeds a ring.
type Witness uint64

// Witnesses.
const (
	WitnessNCCL    Witness = 1 << 0 // NCCL's profiler interface
	WitnessScopes  Witness = 1 << 1 // the program's own scopes
	WitnessNVTX    Witness = 1 << 2 // NVTX ranges
	WitnessCUPTI   Witness = 1 << 3 // CUPTI, while it delivers
	WitnessProgram Witness = 1 << 4 // collectives that the program tells of
)

var witnessNames = [...]string{"NCCL", "scopes", "NVTX", "CUPTI", "the program's collectives"}

// Names lists the witnesses that are known.
func (w Witness) Names() (names []string) {
	for i, name := range witnessNames {
		if w&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

func (w Witness) String() string { return strings.Join(w.Names(), ", ") }

// Witnesses are what feeds the ring now.
func (r *Ring) Witnesses() Witness { return Witness(r.word(atWitnesses)) }

// CUPTIState is how far CUPTI came in a process.
type CUPTIState uint32

// States of CUPTI.
const (
	CUPTIUnasked   CUPTIState = 0
	CUPTIActive    CUPTIState = 1
	CUPTIYielded   CUPTIState = 2 // another client was there, or came
	CUPTINoLibrary CUPTIState = 3
	CUPTIRefused   CUPTIState = 4 // a call to it failed
	CUPTIPaused    CUPTIState = 5 // the program asked for it
)

var cuptiNames = [...]string{"unasked", "active", "yielded", "no_library", "refused", "paused"}

func (s CUPTIState) String() string { return nameOf(cuptiNames[:], uint64(s)) }

// CUPTI says how far CUPTI came in the process, and what it said itself last.
func (r *Ring) CUPTI() (state CUPTIState, result uint32) {
	w := r.word(atCUPTI)
	return CUPTIState(w), uint32(w >> 32)
}

// OpenScope is the innermost scope that a thread has not left.
type OpenScope struct {
	TID   uint64 // in the process's own namespace
	Name  uint16 // string code; 0: in none
	Depth uint16
	Phase Phase
	Since uint64 // ns
}

// OpenScopes appends the scopes that threads with a lane of their own are in. What
// a process was in when it hung or was killed is still there.
func (r *Ring) OpenScopes(dst []OpenScope) []OpenScope {
	r.guarded(func() {
		for i := range r.lanes {
			if s := r.lanes[i].openScope(); s.Name != 0 {
				dst = append(dst, s)
			}
		}
	})
	return dst
}

// scopeTries is how often a scope is read that changes meanwhile.
const scopeTries = 4

// openScope reads the scope between two readings of its code, so that its time is
// its own.
func (l *lane) openScope() OpenScope {
	if l.shared {
		return OpenScope{}
	}
	owner := load(&l.state[laneOwner])
	for range scopeTries {
		w, since := load(&l.state[laneScope]), load(&l.state[laneScopeAt])
		if load(&l.state[laneScope]) != w || load(&l.state[laneScopeAt]) != since {
			continue
		}
		if owner == 0 || w == 0 {
			break
		}
		return OpenScope{TID: owner, Name: uint16(w), Depth: uint16(w >> 32), Phase: Phase(w >> 48), Since: since}
	}
	return OpenScope{}
}
