// SPDX-License-Identifier: Apache-2.0

package ring

import "fmt"

// Level is how much detail is asked for, or belongs to a record.
type Level uint8

// Levels. Each includes those before it; 0 in SetLevel means the producer's own
// default.
const (
	LevelSummary     Level = 1
	LevelCollectives Level = 2
	LevelAll         Level = 3
)

var levelNames = [...]string{"default", "summary", "collectives", "all"}

func (l Level) String() string { return nameOf(levelNames[:], uint64(l)) }

// Kind is what a record tells of.
type Kind uint8

// Kinds of records.
const (
	KindOp            Kind = 1  // a collective or one side of a message, ended
	KindStep          Kind = 2  // a step begins
	KindScope         Kind = 3  // a phase of the host, ended
	KindProxyStep     Kind = 4  // one chunk of one proxy operation, ended
	KindKernelChannel Kind = 5  // one channel of one kernel, ended
	KindAPI           Kind = 6  // a call into the library, ended
	KindNet           Kind = 7  // a work request of a network plugin, ended
	KindKernel        Kind = 8  // a kernel, copy or set that the device ran
	KindClock         Kind = 9  // readings of CUPTI's clock and the host's together
	KindLink          Kind = 10 // a span of a trace that the step works for
	KindResume        Kind = 11 // what the process loaded as it resumed
	KindFingerprint   Kind = 12 // what a slice of its parameters hashes to
)

var kindNames = [...]string{"none", "op", "step", "scope", "proxy_step", "kernel_channel", "api", "net", "kernel", "clock", "link", "resume", "fingerprint"}

func (k Kind) String() string { return nameOf(kindNames[:], uint64(k)) }

// Flags of an operation.
type Flags uint16

// Flags of an operation; inject/ring.h says each at length.
const (
	FlagInferred     Flags = 1 << 0  // completed by a later one on its communicator and stream
	FlagGraph        Flags = 1 << 1  // replayed from a CUDA graph
	FlagKernel       Flags = 1 << 2  // kernel times are there
	FlagProxy        Flags = 1 << 3  // proxy times are there
	FlagWaits        Flags = 1 << 4  // waits are there
	FlagCopyEngine   Flags = 1 << 5  // executed by the copy engine
	FlagSend         Flags = 1 << 6  // point-to-point, sending
	FlagRecv         Flags = 1 << 7  // point-to-point, receiving
	FlagGroup        Flags = 1 << 8  // Group is there
	FlagKernelPart   Flags = 1 << 9  // some channel's times were missing or impossible
	FlagEnqueuedOnly Flags = 1 << 10 // no completion event was to be had: times end at enqueue
)

// tick is the unit of durations held in 32 bits, ns.
const tick = 100

// noStep is the step of what was not done within one.
const noStep = 0xffffffff

// Record is one event as its producer wrote it. The accessors below Comm belong
// to KindOp; the other kinds have a view each. A record handed to a callback is
// valid until the callback returns.
type Record [words]uint64

// Number is the record's place among those of its lane, from 0.
func (r *Record) Number() uint64 { return r[0] - 1 }

// Kind says which view applies. Values without a name are possible.
func (r *Record) Kind() Kind { return Kind(r[1]) }

// Level is the level of detail from which on the record is wanted.
func (r *Record) Level() Level { return Level(r[1] >> 8) }

// Flags of an operation.
func (r *Record) Flags() Flags { return Flags(r[1] >> 16) }

// Has reports whether all the flags f are set.
func (r *Record) Has(f Flags) bool { return r.Flags()&f == f }

// Comm is the communicator's index (Ring.Comms); 0 where the table was full.
func (r *Record) Comm() uint16 { return uint16(r[1] >> 32) }

// Func is the string code of the function, or of the kind of a call.
func (r *Record) Func() uint8 { return uint8(r[1] >> 48) }

// DType is the string code of the data type.
func (r *Record) DType() uint8 { return uint8(r[1] >> 56) }

// handleBits is how many bits of word 2 are the handle's.
const handleBits = 48

// Handle names the operation within its process.
func (r *Record) Handle() uint64 { return r[2] & (1<<handleBits - 1) }

// SendSteps is how many proxy steps the operation sent, of which the wire waits
// are the sum; 65,535 stands for that many and more.
func (r *Record) SendSteps() uint16 { return uint16(r[2] >> handleBits) }

// AddSendSteps adds the steps that another operation sent, in a copy that stands
// for both.
func (r *Record) AddSendSteps(o *Record) {
	sum := min(uint64(r.SendSteps())+uint64(o.SendSteps()), 1<<(64-handleBits)-1)
	r[2] = r.Handle() | sum<<handleBits
}

// Seq is the library's sequence number, or for a message its number per
// communicator, peer and direction.
func (r *Record) Seq() uint64 { return r[3] }

// Bytes moved.
func (r *Record) Bytes() uint64 { return r[4] }

// Peer of a message: a rank of the communicator.
func (r *Record) Peer() int32 { return int32(r[5]) }

// Root of a rooted collective: a rank of the communicator.
func (r *Record) Root() int32 { return int32(r[5]) }

// Channels that the library planned to use.
func (r *Record) Channels() uint8 { return uint8(r[5] >> 32) }

// Algo is the string code of the algorithm.
func (r *Record) Algo() uint8 { return uint8(r[5] >> 40) }

// Proto is the string code of the protocol.
func (r *Record) Proto() uint8 { return uint8(r[5] >> 48) }

// SlowestChannel is the channel that took longest.
func (r *Record) SlowestChannel() uint8 { return uint8(r[5] >> 56) }

// EnqueueBegin is when the host began to enqueue, ns.
func (r *Record) EnqueueBegin() uint64 { return r[6] }

// EnqueueTook is how long that took, ns; it saturates at 4.29 s.
func (r *Record) EnqueueTook() uint32 { return uint32(r[7]) }

// Step is the training step; false where none was marked.
func (r *Record) Step() (uint32, bool) { return stepOf(r[7] >> 32) }

// KernelStart is the first channel's start on the GPU's clock: ns for CUDA,
// ticks of unknown rate for ROCm. 0 without FlagKernel.
func (r *Record) KernelStart() uint64 { return r[8] }

// KernelStop is the last channel's stop on the GPU's clock.
func (r *Record) KernelStop() uint64 { return r[9] }

// SlowestTook is the slowest channel's duration, in units of the GPU's clock.
func (r *Record) SlowestTook() uint32 { return uint32(r[10]) }

// WirePeer is the communicator's rank towards which the operation waited
// longest for the wire.
func (r *Record) WirePeer() int32 { return int32(r[10] >> 32) }

// CompletedAt is when the host saw the completion, ns.
func (r *Record) CompletedAt() uint64 { return r[11] }

// ProxyStart is the first proxy operation's start, ns to 100 ns.
func (r *Record) ProxyStart() (uint64, bool) {
	return r[6] + tick*uint64(uint32(r[12])), r.Has(FlagProxy)
}

// ProxyStop is the last proxy operation's stop, ns to 100 ns.
func (r *Record) ProxyStop() (uint64, bool) {
	return r[6] + tick*(r[12]>>32), r.Has(FlagProxy)
}

// Group is the launch that the operation was part of; 0 without FlagGroup.
func (r *Record) Group() uint32 { return uint32(r[13]) }

// Stream tells the streams of the process apart; 0 where unknown.
func (r *Record) Stream() uint16 { return uint16(r[13] >> 32) }

// KernelChannels is how many channels' times were seen; it saturates.
func (r *Record) KernelChannels() uint8 { return uint8(r[13] >> 48) }

// ProxyOps is how many proxy operations were seen; it saturates.
func (r *Record) ProxyOps() uint8 { return uint8(r[13] >> 56) }

// Waits of the proxy, summed over its steps, ns to 100 ns: for the own GPU, for
// the peer's credit, for the wire, for the flush. All 0 without FlagWaits.
func (r *Record) Waits() (gpu, peer, wire, flush uint64) {
	return tick * uint64(uint32(r[14])), tick * (r[14] >> 32), tick * uint64(uint32(r[15])), tick * (r[15] >> 32)
}

// LastSeen is the record's latest time on the host's clock, ns; 0 for kinds that
// are not known, and for kernels, which only CUPTI's clock has stamped.
func (r *Record) LastSeen() uint64 {
	switch r.Kind() {
	case KindOp:
		return max(r.EnqueueBegin(), r.CompletedAt())
	case KindStep:
		return r[3]
	case KindClock:
		return r[2]
	case KindLink:
		return r[6]
	case KindResume, KindFingerprint:
		return r[4]
	case KindScope, KindAPI, KindNet:
		return max(r[2], r[3])
	case KindProxyStep:
		return max(r[5], r[9])
	case KindKernelChannel:
		return max(r[5], r[6])
	}
	return 0
}

func stepOf(w uint64) (uint32, bool) {
	s := uint32(w)
	if s == noStep {
		return 0, false
	}
	return s, true
}

// nameOf gives unknown values a name too: producers may be newer than we are.
func nameOf(names []string, i uint64) string {
	if i < uint64(len(names)) {
		return names[i]
	}
	return fmt.Sprintf("unknown (%d)", i)
}
