// SPDX-License-Identifier: Apache-2.0

package steptrace

import (
	"cmp"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Sizes of what is held beside texts, bytes: of maps an estimate.
const (
	stepBytes = 256
	rankBytes = int64(unsafe.Sizeof(heldRank{})) + 64
	opBytes   = int64(unsafe.Sizeof(model.Op{}))
	// heldBytes is how many bytes there are for each operation that may be kept.
	heldBytes = 1024
)

func rankSize(r *model.Rank) int64 {
	return rankBytes + int64(len(r.JobName)+len(r.JobID)+len(r.Incarnation)+len(r.HostName)+len(r.HostID)+len(r.HWID)+len(r.ClockID))
}

func opSize(op *model.Op) int64 {
	c := &op.Collective
	text := len(op.Kind) + len(op.Name) + len(op.Key) + len(op.ClockID) + len(op.Phase) + len(op.WorkGrid) + len(op.Stack) +
		len(op.Comm.ID) + len(op.Comm.Name) + len(op.Comm.Digest) +
		len(c.Name) + len(c.SeqScope) + len(c.DType) + len(c.Algo) + len(c.Proto) + len(c.State) +
		len(op.Clock.Timeline) + len(op.Clock.Verdict) + len(op.Straggler.Class)
	return opBytes + int64(text) + int64(len(op.Links))*int64(unsafe.Sizeof(model.SpanRef{}))
}

// byAge compares two steps by when something was kept for them first.
func byAge(a, b *bounded.Pair[stepKey, *heldStep]) int {
	return cmp.Or(a.Value.first.Compare(b.Value.first), cmp.Compare(a.Key.step, b.Key.step), cmp.Compare(a.Key.incarnation, b.Key.incarnation))
}

// count adds bytes to those that are kept for a job.
func (h *Holder) count(incarnation string, bytes int64) {
	h.bytes += bytes
	if h.jobs[incarnation] += bytes; h.jobs[incarnation] <= 0 {
		delete(h.jobs, incarnation)
	}
}

func (h *Holder) full() bool { return h.held >= h.maxHeld || h.bytes >= h.maxBytes() }

func (h *Holder) maxBytes() int64 { return int64(h.maxHeld) * heldBytes }

// makeRoom drops the oldest quarter of the operations kept for step traces: of the job that holds more
// than half, if there is one, else of all jobs. It returns false if that job wants the room itself.
func (h *Holder) makeRoom(incarnation string) bool {
	if h.holdsHalf(incarnation) { // asked first: each operation of that job comes here
		return false
	}
	of, any := h.halfHolder()
	for key := range h.steps.All() {
		if any && key.incarnation != of {
			continue
		}
		h.drop(key)
		if h.held <= h.maxHeld*3/4 && h.bytes <= h.maxBytes()*3/4 {
			break
		}
	}
	return true
}

// holdsHalf reports whether a job holds more than half of the kept bytes.
func (h *Holder) holdsHalf(incarnation string) bool { return h.jobs[incarnation] > h.bytes/2 }

// halfHolder returns the job that holds more than half of what may be kept.
func (h *Holder) halfHolder() (incarnation string, any bool) {
	for incarnation := range h.jobs {
		if h.holdsHalf(incarnation) {
			return incarnation, true
		}
	}
	return "", false
}
