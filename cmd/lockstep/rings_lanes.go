// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/ring"
)

// ringLanes says who has the lanes of a ring. The first is for all threads that found
// none of their own; where those are, the ring does not say.
type ringLanes struct {
	own     int // of threads
	taken   int // of those
	used    int // that hold records, the shared one too
	written uint64
	sharing int // threads of which records are on the shared lane: there may be more
	main    bool
}

func lanesOf(r *ring.Ring) (l ringLanes) {
	owners := map[uint64]bool{}
	lanes := r.Lanes(nil)
	for i := range lanes {
		l.written += lanes[i].Head
		if lanes[i].Head > 0 {
			l.used++
		}
		if lanes[i].Owner != 0 {
			owners[lanes[i].Owner] = true
		}
	}
	l.own, l.taken, l.main = len(lanes)-1, len(owners), owners[r.Header().PID]
	if l.full() && lanes[0].Head > 0 {
		l.sharing = sharing(r, owners)
	}
	return l
}

func (l *ringLanes) full() bool { return l.taken >= l.own }

// sharing counts the threads of which scopes or steps are on the shared lane, and that
// have no lane now.
func sharing(r *ring.Ring, owners map[uint64]bool) int {
	seen := map[uint32]bool{}
	r.Snapshot(func(lane int, rec *ring.Record) {
		if lane != 0 {
			return
		}
		tid := uint32(0)
		switch rec.Kind() {
		case ring.KindScope:
			tid = rec.Scope().TID
		case ring.KindStep:
			tid = rec.StepMark().TID
		}
		if tid != 0 && !owners[uint64(tid)] {
			seen[tid] = true
		}
	})
	return len(seen)
}

func (l *ringLanes) words() string {
	return fmt.Sprintf("%d records written on %d lanes of %d, %d taken", l.written, l.used, l.own+1, l.taken)
}

// crowded says what is not shown since there are no more lanes; nothing where there are.
func (l *ringLanes) crowded() string {
	if !l.full() {
		return ""
	}
	text := fmt.Sprintf("all %d lanes of threads are taken", l.own)
	if l.own == 0 {
		text = "no thread has a lane of its own"
	}
	if !l.main {
		text += ", the main thread has none"
	}
	if l.sharing > 0 {
		return text + fmt.Sprintf("; at least %s on the shared lane: their scopes are not shown (LOCKSTEP_RING_LANES)", counted(int64(l.sharing), "thread"))
	}
	return text + "; a further thread is on the shared lane, and its scopes are not shown (LOCKSTEP_RING_LANES)"
}
