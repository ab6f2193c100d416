// SPDX-License-Identifier: Apache-2.0

package ring

// Step is a record of KindStep: a step begins.
type Step struct {
	Step  int64
	Begin uint64 // ns
	TID   uint32
}

// StepMark reads a record of KindStep.
func (r *Record) StepMark() Step {
	return Step{Step: int64(r[2]), Begin: r[3], TID: uint32(r[4])}
}

// Phase is what a scope says its process was at.
type Phase uint16

var phaseNames = [...]string{"none", "init", "compile", "train", "eval", "checkpoint", "inference"}

func (p Phase) String() string { return nameOf(phaseNames[:], uint64(p)) }

// Phases.
const (
	PhaseNone Phase = iota
	PhaseInit
	PhaseCompile
	PhaseTrain
	PhaseEval
	PhaseCheckpoint
	PhaseInference
)

// Flags of a scope.
const (
	scopeNVTX  Flags = 1 << 0
	scopeAsync Flags = 1 << 1
)

// Scope is a record of KindScope: a named stretch of a host thread.
type Scope struct {
	Begin, End uint64 // ns
	Step       uint32 // meaningful if InStep
	InStep     bool
	TID        uint32
	Name       uint16 // string code
	Depth      uint16 // of nesting, 0 outermost
	Phase      Phase
	NVTX       bool // an NVTX range
	Async      bool // begun and ended as it came: it nests in nothing
}

// Scope reads a record of KindScope.
func (r *Record) Scope() Scope {
	step, in := stepOf(r[4])
	return Scope{
		Begin: r[2], End: r[3], Step: step, InStep: in, TID: uint32(r[4] >> 32),
		Name: uint16(r[5]), Depth: uint16(r[5] >> 32), Phase: Phase(r[5] >> 48),
		NVTX: r.Has(scopeNVTX), Async: r.Has(scopeAsync),
	}
}

// ProxyStep is a record of KindProxyStep: one chunk that the proxy moved. What
// the waits are depends on the direction: sending, for the GPU, the peer, the
// wire; receiving, for the peer or wire, the flush, the GPU.
type ProxyStep struct {
	Op        uint64 // handle of the operation
	Number    uint32 // of the step within the proxy operation
	Chunk     uint32 // bytes, saturating
	Peer      int32  // rank of the communicator
	Channel   uint8
	Send      bool
	Steps     uint16 // of the proxy operation, saturating
	Begin     uint64 // ns
	Waits     [3]uint64
	Stop      uint64 // ns
	Size      uint64 // bytes transferred
	Seq       uint64 // of the operation
	TrainStep uint32 // meaningful if InStep
	InStep    bool
}

// ProxyStep reads a record of KindProxyStep. Waits are the entries of the
// first, second and third wait, ns; 0: not entered.
func (r *Record) ProxyStep() ProxyStep {
	step, in := stepOf(r[12])
	return ProxyStep{
		Op: r[2], Number: uint32(r[3]), Chunk: uint32(r[3] >> 32),
		Peer: int32(r[4]), Channel: uint8(r[4] >> 32), Send: uint8(r[4]>>40) != 0, Steps: uint16(r[4] >> 48),
		Begin: r[5], Waits: [3]uint64{r[6], r[7], r[8]}, Stop: r[9],
		Size: r[10], Seq: r[11], TrainStep: step, InStep: in,
	}
}

// KernelChannel is a record of KindKernelChannel: one channel of one kernel.
type KernelChannel struct {
	Op          uint64 // handle of the operation
	Start, Stop uint64 // GPU clock
	StartSeen   uint64 // when the host was told of the start, ns
	StopSeen    uint64 // when the host was told of the stop, ns
	Channel     uint32
	Step        uint32 // meaningful if InStep
	InStep      bool
	Seq         uint64 // of the operation
}

// KernelChannel reads a record of KindKernelChannel.
func (r *Record) KernelChannel() KernelChannel {
	step, in := stepOf(r[7] >> 32)
	return KernelChannel{
		Op: r[2], Start: r[3], Stop: r[4], StartSeen: r[5], StopSeen: r[6],
		Channel: uint32(r[7]), Step: step, InStep: in, Seq: r[8],
	}
}

// API is a record of KindAPI: one call into the library.
type API struct {
	Begin, End    uint64 // ns
	Step          uint32 // meaningful if InStep
	InStep        bool
	TID           uint32
	Name          uint16 // string code
	GraphCaptured bool
	Count         uint64 // elements
	Stream        uint64 // the stream's address: a name, nothing to follow
}

// API reads a record of KindAPI.
func (r *Record) API() API {
	step, in := stepOf(r[4])
	return API{
		Begin: r[2], End: r[3], Step: step, InStep: in, TID: uint32(r[4] >> 32),
		Name: uint16(r[5]), GraphCaptured: r[5]>>32 != 0, Count: r[6], Stream: r[7],
	}
}

// Net is a record of KindNet: one work request of a network plugin.
type Net struct {
	Begin, End uint64 // ns
	Type       uint64 // of the plugin
	Version    uint16 // of the plugin's event
	Queue      uint32 // queue pair, or file descriptor of a socket
	Opcode     uint32
	Length     uint64 // bytes
	Op         uint64 // handle of the operation
}

// Net reads a record of KindNet.
func (r *Record) Net() Net {
	return Net{
		Begin: r[2], End: r[3], Type: r[4] >> 16, Version: uint16(r[4]),
		Queue: uint32(r[5]), Opcode: uint32(r[5] >> 32), Length: r[6], Op: r[7],
	}
}
