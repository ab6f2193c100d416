// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// A world size is what somebody configured, and may be wrong. One that is too small would close
// steps before all ranks have delivered; one that is too large invents ranks that are missing,
// and doubts for their sake.

// worlds is what was said of the size of the job's world, and what does not agree with it.
type worlds struct {
	first, firstBy int64 // the size that was stated first, and the rank that did
	other, otherBy int64 // another one, the last
	stated         int64 // the largest
	grown          string
	apart          int // steps in which those missing shared nothing with those seen

	negative, negativeBy int64 // no size at all
}

// heed takes the world's size from what a rank states.
func (j *job) heed(r *model.Rank) {
	size := r.WorldSize.Or(0)
	if size <= 0 {
		if size < 0 {
			j.faults.worlds.negative, j.faults.worlds.negativeBy = size, r.Rank
			j.e.stats.WorldsContradicted++
		}
		return
	}
	if most := int64(j.e.cfg.MaxRanks); size > most {
		j.e.stats.WorldsCapped++
		size = most
	}
	w := &j.faults.worlds
	switch {
	case w.first == 0:
		w.first, w.firstBy = size, r.Rank
	case size != w.first:
		w.other, w.otherBy = size, r.Rank
		j.e.stats.WorldsContradicted++
	}
	w.stated = max(w.stated, size)
	if j.world == 0 {
		j.lookAtAll() // no step was complete without a size
	}
	if size > j.world {
		j.world, w.grown = size, ""
	}
}

// outgrow makes the world as large as what is in it.
func (j *job) outgrow(least int64, why string) {
	least = min(least, int64(j.e.cfg.MaxRanks))
	if j.world == 0 || least <= j.world {
		return
	}
	j.world, j.faults.worlds.grown = least, why
	j.e.stats.WorldsContradicted++
}

// touched reports whether ranks that were not seen can have held up those that were: some
// collective lacks a member, or some communication met nobody.
func touched(views []*rankView, meetings []*meeting) bool {
	for _, v := range views {
		if len(v.met) < len(v.comms) {
			return true
		}
	}
	for _, m := range meetings {
		if m.size() == 0 || !m.complete() {
			return true
		}
	}
	return len(meetings) == 0
}

// sayWorld says what contradicts the stated size of the world, "" where nothing does.
func (j *job) sayWorld() string {
	w := &j.faults.worlds
	seen := int64(len(j.ranks))
	switch {
	case w.negative != 0:
		return fmt.Sprintf("check world size: got %d of rank %d; want at least 1. It is left out", w.negative, w.negativeBy)
	case w.grown != "":
		return fmt.Sprintf("check world size: got %d as stated; want at least %d, since so many %s", w.stated, j.world, w.grown)
	case w.other != 0:
		return fmt.Sprintf("check world size: got %d of rank %d and %d of rank %d; want one. The larger is taken", w.first, w.firstBy, w.other, w.otherBy)
	case w.apart > 0 && w.apart == j.steps && seen < j.world:
		return fmt.Sprintf("check world size: got %d as stated, and %d ranks; want %d where these are all: none of their collectives lacks a member, so that who is missing keeps nobody waiting", w.stated, seen, seen)
	}
	return ""
}
