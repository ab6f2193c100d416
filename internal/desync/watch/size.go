// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// What a job holds is counted in bytes, by estimates: states of ranks differ in size a thousandfold,
// and whoever sends them chooses. Where all jobs together hold too much one of them is given up.

// What single entries take beside their texts, with what maps need for them.
const (
	mapBytes      = 48
	jobBytes      = int(unsafe.Sizeof(job{})) + 1024 // maps, stretches
	rankBytes     = int(unsafe.Sizeof(rank{})+unsafe.Sizeof(held{})+unsafe.Sizeof(opened{})) + 4*mapBytes
	progressBytes = int(unsafe.Sizeof(progress{})+unsafe.Sizeof(model.Comm{})) + 2*mapBytes
	reachedBytes  = int(unsafe.Sizeof(reached{})) + mapBytes
	openBytes     = int(unsafe.Sizeof(openKey{})) + mapBytes
	listBytes     = int(unsafe.Sizeof(list{})) + mapBytes
)

// grow counts what a rank holds from now on, less than 0 for what it gives back.
func (j *job) grow(r *rank, bytes int) {
	r.bytes += bytes
	j.share.Add(bytes)
}

// countAbsence counts the bytes of a rank's absence again.
func (j *job) countAbsence(r *rank) {
	bytes := 0
	if a := r.absence; a != nil {
		bytes = int(unsafe.Sizeof(*a)) + len(a.Reason) + len(a.Detail)
	}
	j.grow(r, bytes-r.noted)
	r.noted = bytes
}

// clear gives back all that a rank holds.
func (j *job) clear(r *rank) {
	for _, h := range r.states {
		j.unlist(h)
	}
	j.grow(r, -r.bytes)
}

// forget drops the state of a source.
func (j *job) forget(r *rank, source model.StateSource) {
	if h := r.states[source]; h != nil {
		delete(r.states, source)
		j.unlist(h)
		j.grow(r, -h.size())
	}
}

// count counts a state that takes the place of old, nil for none.
func (j *job) count(r *rank, old, h *held) {
	h.bytes = h.state.Bytes() + len(h.heads)*int(unsafe.Sizeof(head{}))
	of := func(s *model.RankState) int {
		switch s {
		case nil:
			return 0
		case old.state:
			return old.bytes
		}
		return old.beforeBytes
	}
	h.beforeBytes, h.formerBytes = of(h.before), of(h.former)
	if old == nil {
		j.enlist(h)
		j.grow(r, h.size())
		return
	}
	if h.before != nil || h.former != nil || old.before != nil || old.former != nil || !sameLists(h.state, old.state) {
		j.enlist(h)
		j.unlist(old)
	}
	j.grow(r, h.size()-old.size())
}

// size is what a state takes, with those before it that are kept.
func (h *held) size() int { return h.bytes + h.beforeBytes + h.formerBytes }

// states are all that are kept.
func (h *held) states() [3]*model.RankState { return [3]*model.RankState{h.state, h.before, h.former} }

// sameLists reports whether two states share all of their lists of members, as the states of a rank do
// that come one after the other.
func sameLists(a, b *model.RankState) bool {
	if len(a.Comms) != len(b.Comms) {
		return false
	}
	for i := range a.Comms {
		if listOf(a.Comms[i].Members) != listOf(b.Comms[i].Members) {
			return false
		}
	}
	return true
}

func listOf(members []int64) list { return list{unsafe.SliceData(members), len(members)} }

// enlist counts the lists of members of states: each once, however many ranks share it.
func (j *job) enlist(h *held) {
	for _, s := range h.states() {
		for i := 0; s != nil && i < len(s.Comms); i++ {
			if l := listOf(s.Comms[i].Members); l.n > 0 {
				if j.lists[l]++; j.lists[l] == 1 {
					j.share.Add(l.bytes())
				}
			}
		}
	}
}

// unlist takes that back.
func (j *job) unlist(h *held) {
	for _, s := range h.states() {
		for i := 0; s != nil && i < len(s.Comms); i++ {
			if l := listOf(s.Comms[i].Members); l.n > 0 {
				if j.lists[l]--; j.lists[l] == 0 {
					delete(j.lists, l)
					j.share.Add(-l.bytes())
				}
			}
		}
	}
}

func (l list) bytes() int { return l.n*int(unsafe.Sizeof(int64(0))) + listBytes }

// measure counts what the rhythm of a job takes.
func (j *job) measure() {
	bytes := cap(j.rhythm.pending)*int(unsafe.Sizeof(pendingGap{})) + len(j.rhythm.phases)*int(unsafe.Sizeof(stats.LogLinear{}))
	j.share.Add(bytes - j.rhythmBytes)
	j.rhythmBytes = bytes
}

// makeRoom keeps to MaxBytes. It drops the largest job as a whole: if it dropped only some ranks, the
// watch would accuse those.
func (w *Watch) makeRoom() {
	for w.room.Bytes() > w.cfg.MaxBytes {
		w.stats.JobsEvicted++
		w.drop(w.room.Largest())
	}
}

// Bytes estimates what all jobs hold together.
func (w *Watch) Bytes() int { return w.room.Bytes() }
