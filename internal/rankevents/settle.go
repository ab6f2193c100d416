// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/ring"
)

const (
	// worldPatience is how long after the first operation the world communicator is
	// waited for. It is mostly made first; parts of it follow within seconds.
	worldPatience = uint64(5 * time.Second)
	// quietPatience is how long a process without any operation is waited for: it
	// loads its model before it makes communicators. Lanes hold what it marks.
	quietPatience = uint64(time.Minute)
)

// refresh reads the ring's tables; false until it is known who the rank is. final
// says that nothing more will come.
func (r *Rank) refresh(final bool) bool {
	r.commsSeen = r.src.Comms(r.commsSeen[:0])
	r.findWorld()
	if !r.ready {
		if !final && r.worldMayCome() {
			return false
		}
		if !r.settle() {
			r.stats.NoRank += r.discard()
			return false
		}
	}
	for i := range r.commsSeen {
		r.learn(&r.commsSeen[i])
	}
	return true
}

// settle fixes who the rank is, for its process's life: what is handed on under
// one identity cannot be joined with what comes under another.
func (r *Rank) settle() bool {
	r.pairs = r.src.ClockPairs(r.pairs[:0])
	epoch, agrees, ok := r.node.epoch(r.header.BootID, r.pairs)
	if !ok || r.global < 0 {
		return false
	}
	if !agrees {
		r.stats.ClocksDisagree = 1
	}
	r.epoch, r.ready, r.life = epoch, true, r.worldComm.hash
	return true
}

// worldMayCome reports whether the world communicator may still appear. Where
// nobody said how many ranks the world has, a larger one may.
func (r *Rank) worldMayCome() bool {
	if r.header.WorldSize == 1 || (r.header.WorldSize > 0 && r.worldComm.hash != 0) {
		return false
	}
	if r.firstOp == 0 {
		r.frontiers = r.src.Frontiers(r.frontiers[:0])
		for i := range r.frontiers {
			if m := r.frontiers[i].Enqueued; m.Known && (r.firstOp == 0 || m.At < r.firstOp) {
				r.firstOp = m.At
			}
		}
	}
	if r.firstOp != 0 {
		return r.now < r.firstOp+worldPatience && r.firstOp <= r.now+future
	}
	return r.now < r.header.Created+quietPatience && r.header.Created <= r.now+future
}

// discard reads the lanes of a ring that nothing can be said of, so that its loss
// is known, and returns how many records there were.
func (r *Rank) discard() int64 {
	r.replay()
	before := r.stats.Records
	r.poll(ring.LevelAll, func(int, *ring.Record) {})
	return r.stats.Records - before
}
