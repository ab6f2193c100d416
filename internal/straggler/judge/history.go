// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"
)

// entry is what is kept of one rank's step. Times are s.
type entry struct {
	seen   uint32 // 1 + the number of the frame that it belongs to; 0 for none
	flags  entryFlags
	excess [Kinds]float32
	work   float32 // beyond peers because there was more of it
	choice float32 // beyond peers because another kernel did it
	device float32
	own    float32
	base   float32 // peers' own time
	pause  float32 // longest gap of the host beyond peers' longest
	// unknown is the part of the excess that lies in work whose amount nobody recorded,
	// and fed what peers took for that.
	unknown, fed float32
}

type entryFlags uint32

const (
	entryCompared entryFlags = 1 << iota // with peers
	entryGiven
	entryHollow // its idleness may be operations, if any are lost
)

func (e *entry) net() float64 {
	return float64(e.excess[Compute]) + float64(e.excess[Overlapped]) + float64(e.excess[Copy]) + float64(e.excess[Host])
}

func (e *entry) host() float64 { return float64(e.excess[Host]) }

// idle returns how long the rank's host was idle.
func (e *entry) idle() float64 { return float64(e.own) - float64(e.device) }

func (e *entry) slow() float64 { return e.net() - e.host() }

func (e *entry) share(x float64) float64 { return x / max(float64(e.base), leastBase) }

// leastBase keeps shares finite: nobody is judged by less than a microsecond of own
// time per step.
const leastBase = 1e-6

// member is a rank of the job.
type member struct {
	seat   Seat
	cohort cohortKey // zero of a rank that has no peers
	device basis
	host   basis
	last   uint32 // frame in which it was seen
	usual  *usual // of a rank without peers
}

// frame is what is kept of one step.
type frame struct {
	number       uint32
	step         int64
	seconds      float64
	ranks        int
	lost         float64 // share of the operations that was not recorded, mean over the ranks
	device, host float64 // medians of own time
	correlation  float64 // of forward and backward times, median; NaN where unknown
	variation    float64
	details      []detail // row is the rank's number here
	stages       []stageSlow
}

// history is the window of steps. Ranks have numbers, which are used again.
type history struct {
	window  int
	frames  []frame // ring
	count   uint32  // frames ever
	members []member
	entries [][]entry // by rank's number, then by frame
	passes  []passes  // the same of the first passRanks ranks, as shares
	index   map[int64]int32
	free    []int32
	long    []longStep // ring of longMemory
	longAt  int
}

// passRanks is of how many ranks passes are kept: work that nobody counts differs on all.
const passRanks = 256

// longStep is remembered of many steps, for change points.
type longStep struct {
	step                 int64
	seconds              float32
	device, host, waited float32
}

// longMemory is how many steps are searched for a change of the whole job: some minutes
// of short steps, hours of long ones.
const longMemory = 1024

func newHistory(window int) history {
	return history{window: window, frames: make([]frame, window), index: map[int64]int32{}}
}

// at returns a rank's entry in the frame, nil where it was absent.
func (h *history) at(rank int32, f *frame) *entry {
	e := &h.entries[rank][int(f.number)%h.window]
	if e.seen != f.number+1 {
		return nil
	}
	return e
}

// passesAt returns a rank's passes in the frame, and whether they are known.
func (h *history) passesAt(rank int32, f *frame) (passes, bool) {
	e := h.at(rank, f)
	if e == nil || e.flags&entryCompared == 0 || rank >= passRanks {
		return passes{}, false
	}
	p := h.passes[int(rank)*h.window+int(f.number)%h.window]
	return p, p.known()
}

// each calls f with the window's frames, the oldest first.
func (h *history) each(f func(*frame)) {
	from := uint32(0)
	if h.count > uint32(h.window) {
		from = h.count - uint32(h.window)
	}
	for n := from; n < h.count; n++ {
		f(&h.frames[int(n)%h.window])
	}
}

// lost returns what share of the operations in the window was not recorded.
func (h *history) lost() float64 {
	sum, n := 0.0, 0
	h.each(func(f *frame) { sum, n = sum+f.lost, n+1 })
	return sum / float64(max(1, n))
}

// lost returns the mean share that was lost of the rows.
func lost(rows []*Row) float64 {
	sum := 0.0
	for _, r := range rows {
		sum += float64(r.Lost)
	}
	return sum / float64(max(1, len(rows)))
}

// begin takes the oldest frame out and returns it for a new step.
func (h *history) begin() *frame {
	f := &h.frames[int(h.count)%h.window]
	*f = frame{number: h.count, details: f.details[:0], stages: f.stages[:0], correlation: math.NaN(), variation: math.NaN()}
	h.count++
	return f
}

// number returns the rank's number; false where there are too many.
func (h *history) number(seat *Seat, limit int) (int32, bool) {
	if n, ok := h.index[seat.Rank]; ok {
		h.members[n].seat = *seat
		return n, true
	}
	if len(h.index) >= limit {
		return 0, false
	}
	var n int32
	if k := len(h.free); k > 0 {
		n = h.free[k-1]
		h.free = h.free[:k-1]
		clear(h.entries[n])
	} else {
		n = int32(len(h.members))
		h.members = append(h.members, member{})
		h.entries = append(h.entries, make([]entry, h.window))
		if n < passRanks {
			h.passes = append(h.passes, make([]passes, h.window)...)
		}
	}
	h.members[n] = member{seat: *seat}
	h.index[seat.Rank] = n
	return n, true
}

// forget frees the numbers of ranks that the window knows no more, and says how many.
func (h *history) forget() (gone uint64) {
	for rank, n := range h.index {
		if h.count-h.members[n].last > uint32(h.window) {
			delete(h.index, rank)
			h.free = append(h.free, n)
			gone++
		}
	}
	slices.Sort(h.free)
	return gone
}

// remember adds a step to the long memory.
func (h *history) remember(l longStep) {
	if len(h.long) < longMemory {
		h.long = append(h.long, l)
		return
	}
	h.long[h.longAt] = l
	h.longAt = (h.longAt + 1) % longMemory
}
