// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"unicode"
)

// None stands for a number that the producer does not know, such as its rank.
const None = -1

// Header is what a ring says of its process. It does not change.
type Header struct {
	PID       uint64 // in the producer's own pid namespace
	StartTime uint64 // of the process, clock ticks since boot
	BootID    string // UUID of the host's boot, lower case
	Created   uint64 // ns

	Rank, LocalRank, WorldSize, Restart int32 // None where unknown

	RetainSeconds uint32 // how long the producer wants records to stay readable

	JobID, JobName, HostName, HostID, RunID, Producer string

	Lanes    int    // the shared lane, 0, included
	Capacity uint64 // records per lane
	FileSize int64  // bytes
}

type section struct{ kind, size, offset, count uint64 }

func (s section) end() uint64 { return s.offset + s.size*s.count }

// shape is a checked header: extents that lie inside the file.
type shape struct {
	Header
	section [sections + 1]section // by kind
}

// parse checks a copied header page against the file's size. No word of it is
// used as an offset, a size or a count before it has been checked.
func parse(path string, b []byte, fileSize int64) (*shape, error) {
	u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	if got := u64(b[atMagic:]); got != magic {
		return nil, refuse(path, "magic", fmt.Sprintf("%#016x", got), fmt.Sprintf("%#016x, the mark of a ring", uint64(magic)))
	}
	if got := u32(b[atVersion:]); got != version {
		return nil, refuse(path, "version", got, fmt.Sprintf("%d, the only version that this reader knows", version))
	}
	if got := u32(b[atHeaderSize:]); got != page {
		return nil, refuse(path, "header_size", got, page)
	}
	if got := u64(b[atFileSize:]); got != uint64(fileSize) {
		return nil, refuse(path, "file_size", fmt.Sprintf("%d bytes in the header", got),
			fmt.Sprintf("%d bytes, the size of the file: it was truncated, grown or not written whole", fileSize))
	}
	if got := u64(b[atPID:]); got == 0 || got > math.MaxUint32 {
		return nil, refuse(path, "pid", got, fmt.Sprintf("1 to %d", uint32(math.MaxUint32)))
	}
	s := &shape{Header: identity(b)}
	s.doubt()
	s.FileSize = fileSize
	if err := s.parseSections(path, b[atSections:], uint64(fileSize)); err != nil {
		return nil, err
	}
	return s, s.checkLanes(path)
}

func identity(b []byte) Header {
	u64 := binary.NativeEndian.Uint64
	rank := func(i int) int32 { return int32(binary.NativeEndian.Uint32(b[atRank+4*i:])) }
	return Header{
		PID: u64(b[atPID:]), StartTime: u64(b[atStart:]), Created: u64(b[atCreated:]),
		BootID: uuid([16]byte(b[atBootID:])),
		Rank:   rank(0), LocalRank: rank(1), WorldSize: rank(2), Restart: rank(3),
		RetainSeconds: binary.NativeEndian.Uint32(b[atRetain:]),
		JobID:         text(b[atJobID:atJobName]), JobName: text(b[atJobName:atHostName]),
		HostName: text(b[atHostName:atHostID]), HostID: text(b[atHostID:atRunID]),
		RunID: text(b[atRunID:atProducer]), Producer: text(b[atProducer : atProducer+64]),
	}
}

// doubt takes for unknown what cannot be of a job's claims. Where rank and world
// contradict each other, either may be the wrong one.
func (h *Header) doubt() {
	for _, n := range []*int32{&h.Rank, &h.LocalRank, &h.WorldSize, &h.Restart} {
		*n = max(*n, None)
	}
	if h.WorldSize == 0 {
		h.WorldSize = None
	}
	if h.WorldSize != None && h.Rank >= h.WorldSize {
		h.Rank, h.WorldSize = None, None
	}
}

func (s *shape) parseSections(path string, b []byte, fileSize uint64) error {
	for i := range sections {
		at := b[i*sectionSize:]
		sec := section{
			kind: uint64(binary.NativeEndian.Uint32(at)), size: uint64(binary.NativeEndian.Uint32(at[4:])),
			offset: binary.NativeEndian.Uint64(at[8:]), count: binary.NativeEndian.Uint64(at[16:]),
		}
		if sec.kind < 1 || sec.kind > sections {
			return refuse(path, fmt.Sprintf("sections[%d].kind", i), sec.kind, fmt.Sprintf("1 to %d", sections))
		}
		if s.section[sec.kind].kind != 0 {
			return refuse(path, fmt.Sprintf("sections[%d].kind", i), "a second "+rules[sec.kind].name, "each kind once")
		}
		if err := sec.check(path, fileSize); err != nil {
			return err
		}
		for _, other := range s.section {
			if other.kind != 0 && sec.offset < other.end() && other.offset < sec.end() {
				return refuse(path, rules[sec.kind].name+".offset", sec.offset, "no overlap with "+rules[other.kind].name)
			}
		}
		s.section[sec.kind] = sec
	}
	return nil
}

// check judges one section by itself; after it, end() does not overflow.
func (s section) check(path string, fileSize uint64) error {
	r := rules[s.kind]
	if s.size != r.size {
		return refuse(path, r.name+".entry_size", s.size, r.size)
	}
	if s.count < 1 || s.count > r.most {
		return refuse(path, r.name+".count", s.count, fmt.Sprintf("1 to %d", r.most))
	}
	if s.offset < page || s.offset%r.align != 0 {
		return refuse(path, r.name+".offset", s.offset, fmt.Sprintf("a multiple of %d after the header", r.align))
	}
	over, length := bits.Mul64(s.count, s.size)
	if over != 0 || s.offset > fileSize || length > fileSize-s.offset {
		return refuse(path, r.name+".count", fmt.Sprintf("%d entries of %d bytes at %d", s.count, s.size, s.offset),
			fmt.Sprintf("an end within the file's %d bytes", fileSize))
	}
	return nil
}

func (s *shape) checkLanes(path string) error {
	lanes, records := s.section[sLanes].count, s.section[sRecords].count
	if records%lanes != 0 {
		return refuse(path, "records.count", records, fmt.Sprintf("a multiple of the %d lanes", lanes))
	}
	capacity := records / lanes
	if bits.OnesCount64(capacity) != 1 || capacity > maxCapacity {
		return refuse(path, "capacity", capacity, fmt.Sprintf("a power of two up to %d", maxCapacity))
	}
	s.Lanes, s.Capacity = int(lanes), capacity
	return nil
}

func uuid(b [16]byte) string {
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// text takes a NUL-terminated string out of a field. The bytes are a
// stranger's: what is no text or would steer a terminal is replaced.
func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return unicode.ReplacementChar
		}
		return c
	}, s)
}
