// SPDX-License-Identifier: Apache-2.0

package ring

// What inject/ring.h lays down. Words are of the machine's own byte order: a
// ring is read where it is written.
const (
	magic      = 0x474e495254534b4c // "LKSTRING"
	version    = 1
	page       = 4096
	words      = 16 // in a record
	recordSize = words * 8

	// writing marks a record of the shared lane that is being written.
	writing = 1 << 63
)

// Offsets in the header.
const (
	atMagic      = 0
	atVersion    = 8
	atHeaderSize = 12
	atFileSize   = 16
	atBootID     = 24
	atPID        = 40
	atStart      = 48
	atCreated    = 56
	atRank       = 64
	atRetain     = 80
	atHeartbeat  = 88
	atState      = 96
	atStep       = 104
	atLevel      = 120
	atJobID      = 128
	atJobName    = 256
	atHostName   = 384
	atHostID     = 448
	atRunID      = 512
	atProducer   = 640
	atWitnesses  = 704
	atCUPTI      = 712
	atSections   = 1024
	atDrops      = 1536
	atPairs      = 2048

	sectionSize = 32
	clockPairs  = 32
	pairWords   = 4
)

// Kinds of sections.
const (
	sControl = iota + 1
	sStrings
	sComms
	sGPUs
	sFrontiers
	sSlots
	sLanes
	sRecords
	sections = sRecords
)

// Sizes of entries, in words.
const (
	stringWords   = 8
	commWords     = 24
	gpuWords      = 8
	frontierWords = 16
	slotWords     = 32
	laneWords     = 16
)

// rule is what a section must look like.
type rule struct {
	name  string
	size  uint64 // of an entry, bytes
	align uint64
	most  uint64 // entries
}

const (
	// maxLanes is more threads than emit in any process seen; each poll visits
	// every lane.
	maxLanes = 4096
	// maxCapacity keeps lanes*capacity*recordSize far from overflow: 2^12 * 2^24
	// * 2^7 = 2^43. Files are limited much lower by Options.MaxFileBytes.
	maxCapacity = 1 << 24
	// maxCodes is what a u16 code or index can name.
	maxCodes = 1 << 16
	// maxSlots is what the low 16 bits of a handle, slot + 1, can name.
	maxSlots = 1<<16 - 1
	// maxGPUs is far above the GPUs of one host.
	maxGPUs = 1024
	// maxHead is more records than a lane can hold in its life: at one every
	// 10 ns it is reached after 22 years. A head beyond it is corrupt.
	maxHead = 1 << 56
	// cacheLine is the alignment of tables: no entry of theirs may straddle.
	cacheLine = 64
)

var rules = [sections + 1]rule{
	sControl:   {"control", page, page, 1},
	sStrings:   {"strings", stringWords * 8, cacheLine, maxCodes},
	sComms:     {"comms", commWords * 8, cacheLine, maxCodes},
	sGPUs:      {"gpus", gpuWords * 8, cacheLine, maxGPUs},
	sFrontiers: {"frontiers", frontierWords * 8, cacheLine, maxCodes},
	sSlots:     {"slots", slotWords * 8, cacheLine, maxSlots},
	sLanes:     {"lanes", laneWords * 8, cacheLine, maxLanes},
	sRecords:   {"records", recordSize, cacheLine, maxLanes * maxCapacity},
}
