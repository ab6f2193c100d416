// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"slices"
)

// Entry states of the tables of communicators and GPUs.
const (
	entryLive  = 2
	entryEnded = 3
)

// Comm is a communicator of the process. Index 0 stands for all that found no
// room in the table.
type Comm struct {
	Index              uint16
	Ended              bool
	Hash               uint64 // the same on all its ranks
	Ranks, Rank, Nodes int32  // None where unknown
	ABI                uint32 // version of the profiler table in use
	GPU                uint32 // index among GPUs; 0: unknown
	Created            uint64 // ns
	Name               string
}

// Comms appends the communicators that the process made.
func (r *Ring) Comms(dst []Comm) []Comm {
	r.guarded(func() {
		var b [commWords * 8]byte
		for i := range len(r.comms) / commWords {
			if state, ok := copyEntry(b[:], r.comms[i*commWords:][:commWords]); ok {
				dst = append(dst, comm(uint16(i), state, b[:]))
			}
		}
	})
	return dst
}

func comm(index uint16, state uint64, b []byte) Comm {
	u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	return Comm{
		Index: index, Ended: state == entryEnded, Hash: u64(b[8:]),
		Ranks: int32(u32(b[16:])), Rank: int32(u32(b[20:])), Nodes: int32(u32(b[24:])),
		ABI: u32(b[28:]), GPU: u32(b[32:]), Created: u64(b[40:]), Name: text(b[48:176]),
	}
}

// copyEntry copies an entry that is set, word by word; false where it is free,
// being written, or changed meanwhile.
func copyEntry(dst []byte, w []uint64) (state uint64, ok bool) {
	state = load(&w[0])
	if state != entryLive && state != entryEnded {
		return state, false
	}
	for i := range w {
		binary.NativeEndian.PutUint64(dst[i*8:], load(&w[i]))
	}
	// One that ended meanwhile is still the same; a hostile one may not be.
	return state, load(&w[0]) >= entryLive
}

// GPU that communicators of the process use.
type GPU struct {
	Index  uint32 // what Comm.GPU refers to
	UUID   string // as the vendor's tools print it
	Device int32  // ordinal within the process
}

// GPUs appends the GPUs that the process named. Entry 0, the unknown one, is
// left out.
func (r *Ring) GPUs(dst []GPU) []GPU {
	r.guarded(func() {
		var b [gpuWords * 8]byte
		for i := 1; i < len(r.gpus)/gpuWords; i++ {
			if _, ok := copyEntry(b[:], r.gpus[i*gpuWords:][:gpuWords]); ok {
				dst = append(dst, GPU{
					Index: uint32(i), UUID: "GPU-" + uuid([16]byte(b[8:24])),
					Device: int32(binary.NativeEndian.Uint32(b[24:])),
				})
			}
		}
	})
	return dst
}

// stringTable remembers the strings that were asked for: they never change.
type stringTable struct {
	words []uint64
	known []string
}

const stringSet = 2 // state of an entry that holds a string

// String is the text of a code; "" for 0, for an unknown code, and for one that
// is not set yet. Text that is no UTF-8 or would steer a terminal is replaced.
func (r *Ring) String(code uint16) (s string) {
	t := &r.strings
	if int(code) < len(t.known) && t.known[code] != "" {
		return t.known[code]
	}
	r.guarded(func() { s = t.read(int(code)) })
	return s
}

func (t *stringTable) read(code int) string {
	if code == 0 || code >= len(t.words)/stringWords {
		return ""
	}
	w := t.words[code*stringWords:][:stringWords]
	if load(&w[0]) != stringSet {
		return ""
	}
	var b [stringWords * 8]byte
	for i := range w {
		binary.NativeEndian.PutUint64(b[i*8:], load(&w[i]))
	}
	if t.known == nil {
		t.known = make([]string, len(t.words)/stringWords)
	}
	t.known[code] = text(b[8:])
	return t.known[code]
}

// ClockPair is one reading of both clocks of the host.
type ClockPair struct {
	Number   uint64 // its place in the sequence, from 0
	Raw      uint64 // MONOTONIC_RAW ns, the middle of the reading
	Realtime uint64 // REALTIME ns
	Width    uint64 // ns between the readings of Raw before and after: twice its uncertainty
}

// ClockPairs appends the last readings of the host's clocks, oldest first.
func (r *Ring) ClockPairs(dst []ClockPair) []ClockPair {
	from := len(dst)
	r.guarded(func() {
		for i := range clockPairs {
			w := r.header[atPairs/8+i*pairWords:][:pairWords]
			number := load(&w[3])
			p := ClockPair{Number: number - 1, Raw: load(&w[0]), Realtime: load(&w[1]), Width: load(&w[2])}
			if number != 0 && load(&w[3]) == number {
				dst = append(dst, p)
			}
		}
	})
	slices.SortFunc(dst[from:], func(a, b ClockPair) int {
		switch {
		case a.Number < b.Number:
			return -1
		case a.Number > b.Number:
			return 1
		}
		return 0
	})
	return dst
}

// DropCount is how many reasons for drops a producer counts.
const DropCount = 32

// Reasons for which what a producer does is not all to be seen: its tables were full.
const (
	DropSlots     = 2 // operations, scopes or NVTX domains not followed
	DropComms     = 3 // communicators, or their GPUs, not named
	DropFrontiers = 4 // frontiers not kept
)

var dropNames = [DropCount]string{
	"shared_lane", "shared_busy", "slots_full", "comms_full", "frontiers_full", "strings_full",
	"foreign_pid", "stale_handle", "null_args", "finalized", "bad_gpu_time", "inferred",
	"unknown_event", "reserved", "steps_full", "control",
	"scopes_rate", "scopes_unbalanced", "scopes_given_up", "names", "cupti_lost", "cupti_garbage",
	"cupti_no_time", "cupti_no_buffer", "cupti_no_launch", "links",
	"resumes", "reserved_27", "reserved_28", "reserved_29", "reserved_30", "reserved_31",
}

// DropName names a reason for which a producer dropped or put right something,
// as an attribute's value; inject/ring.h says each at length.
func DropName(i int) string {
	if i < 0 || i >= DropCount {
		return "unknown"
	}
	return dropNames[i]
}

// Drops returns the producer's own counters, by reason.
func (r *Ring) Drops() (d [DropCount]uint64) {
	r.guarded(func() {
		for i := range d {
			d[i] = load(&r.header[atDrops/8+i])
		}
	})
	return d
}
