// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"errors"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/rankevents"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// tracked is one ring and what is known of it.
type tracked struct {
	path string
	ring *ring.Ring
	rank *rankevents.Rank
	file os.FileInfo // what path led to when it was opened

	stalled  bool // since the last look, an operation did not end
	detailAt time.Time
	closing  bool // it was closed when it was last read
	leveled  bool // it was asked for a level of detail
	done     bool // its process ended, and everything was read
	endedAt  time.Time
	kept     bool // told that it cannot be removed

	ended       bool   // everything was read and handed on
	undelivered bool   // the collector stopped before all was handed on: the next reader does that
	position    []byte // its position, as written last

	stats   rankevents.Stats
	drops   [ring.DropCount]uint64
	lanes   []ring.Lane
	heads   []uint64
	headsAt time.Time
	history float64 // s
}

func newTracked(path string, r *ring.Ring, rank *rankevents.Rank) *tracked {
	t := &tracked{path: path, ring: r, rank: rank}
	t.file, _ = os.Lstat(path) // nil is what nothing equals
	return t
}

// replaced reports whether the path leads to another file now.
func (t *tracked) replaced() bool {
	if !t.done {
		return t.ring.Replaced()
	}
	now, err := os.Lstat(t.path)
	return err == nil && (t.file == nil || !os.SameFile(t.file, now))
}

// read hands on what has come. What a process that has ended left is read to the
// end.
func (t *tracked) read(rd *reader, now time.Time) {
	if over, closed := t.over(); over {
		t.finish(rd, !closed && t.ring.Err() == nil)
		t.end(rd, now, closed)
		return
	}
	t.rank.Pass(ring.Now(), func(b *rankevents.Batch) { rd.deliver(t, b) })
	t.detail(rd, now)
	t.countUnkept(rd)
}

// over reports whether the ring's process writes no more. One that closes its ring
// may still be in the middle of a record: it is over at the second look. A lock
// that is not held proves no death: see ring.Ring.Dead. Where the lock cannot
// be asked for, only the producer's own word counts.
func (t *tracked) over() (over, closed bool) {
	_, closed, _ = t.ring.Alive()
	if t.ring.Err() != nil {
		return true, false
	}
	if closed {
		before := t.closing
		t.closing = true
		return before, true
	}
	dead, err := t.ring.Dead()
	if err != nil || !dead {
		return t.ring.Err() != nil, false
	}
	_, closed, _ = t.ring.Alive() // it may have been closed between the looks
	return true, closed
}

// leave ends the reading of a ring whose process lives: its open steps are
// another reader's, and the level of detail is its own again.
func (t *tracked) leave(rd *reader) {
	t.rank.Leave(ring.Now(), func(b *rankevents.Batch) { rd.deliver(t, b) })
	t.countUnkept(rd)
	// Who asked for another level since keeps it.
	if level, _ := rd.cfg.record(); t.leveled && t.ring.Asked() == level {
		if err := t.ring.SetLevel(0); err != nil {
			rd.log.Warn("Ring keeps the level of detail that it was asked for", zap.String("file", t.path), zap.Error(err))
		}
	}
}

// detail hands on what the ring still holds of a rank that stalls, once each
// stall_repeat.
func (t *tracked) detail(rd *reader, now time.Time) {
	if !t.stalled {
		return
	}
	t.stalled = false
	if rd.cfg.DetailOnStall && now.Sub(t.detailAt) >= rd.cfg.StallRepeat {
		t.detailAt = now
		t.rank.Detail(ring.Now(), func(b *rankevents.Batch) { rd.deliver(t, b) })
	}
}

// finish reads what is left and closes all steps.
func (t *tracked) finish(rd *reader, died bool) {
	t.rank.Finish(ring.Now(), died, func(b *rankevents.Batch) { rd.deliver(t, b) })
	if died {
		t.detail(rd, time.Now())
	}
	t.ended = true
	t.countUnkept(rd)
}

// countUnkept counts what the ring came to where no position is kept; else that is counted
// when the position is kept, so that no record is counted in two lives of the collector.
func (t *tracked) countUnkept(rd *reader) {
	if rd.store == nil {
		t.count(rd)
	}
}

func (t *tracked) end(rd *reader, now time.Time, closed bool) {
	t.done, t.endedAt = true, now
	t.countEnd(rd, closed)
	rd.save(t)
	rd.node.Detach(t.rank)
	t.close(rd)
	t.rank, t.lanes, t.heads = nil, nil, nil // what stays is to know the file by
}

func (t *tracked) countEnd(rd *reader, closed bool) {
	how := "died"
	switch {
	case t.ring.Err() != nil:
		how = "broken"
		rd.log.Warn("Ring broke", zap.String("file", t.path), zap.Error(t.ring.Err()))
	case closed:
		how = "closed"
	}
	rank := t.rank.Identity()
	rd.telemetry.ReceiverRankEventsRingsEnded.Add(rd.ctx, 1, reason(how))
	rd.log.Info("Ring ended", zap.String("file", t.path), zap.Int64("rank", rank.Rank), zap.String("how", how))
}

// stop ends the reading with that of the collector.
func (t *tracked) stop(rd *reader) {
	if !t.done {
		t.over() // what is closed now is over
		if over, closed := t.over(); over {
			t.finish(rd, !closed && t.ring.Err() == nil)
			if rd.store != nil && !t.undelivered { // else the next reader comes to the end again
				t.countEnd(rd, closed)
			}
		} else {
			t.leave(rd)
		}
	}
}

func (t *tracked) close(rd *reader) {
	if err := t.ring.Close(); err != nil {
		rd.log.Warn("Ring could not be closed", zap.Error(err))
	}
}

// maybeRemove removes the file of a process that ended long ago, asking again
// whether it did.
func (rd *reader) maybeRemove(path string, t *tracked, now time.Time) {
	if rd.cfg.RemoveDead == 0 || now.Sub(t.endedAt) < rd.cfg.RemoveDead || t.replaced() {
		return
	}
	t.endedAt = now // not each poll, where it is refused
	if err := ring.Remove(path, t.file, rd.cfg.RemoveDead); err != nil && !errors.Is(err, os.ErrNotExist) && !t.kept {
		t.kept = true
		rd.log.Warn("Ring of a process that ended could not be removed", zap.Error(err))
	}
}
