// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math"
	"runtime/debug"
	"time"
)

// patience is how long a record of the shared lane may stay unfinished while
// its process lives: a writer is between two stores there, so only one that is
// stopped takes longer.
const patience = time.Second

// Counts of numbered records. For every lane, Read + Lost + Skipped is the
// number of the next record to come, unless Corrupt; where the reading was resumed,
// together with what the reader before had counted.
type Counts struct {
	Read uint64
	Lost uint64 // overwritten before they were read, or given up by their writer
	// Before are those of Lost that were overwritten before the ring was opened here.
	Before  uint64
	Skipped uint64 // above the level asked for; Snapshot may still find them
	// Corrupt counts words that no producer writes: heads that go backwards or
	// outrun their records, and records (counted as Lost too) of impossible
	// numbers.
	Corrupt uint64
	// Reread and Gone are records that the reader before had counted: read once more, and
	// overwritten since.
	Reread, Gone uint64
}

// missing reports whether some record could not be read that was wanted.
func (c *Counts) missing() bool { return c.Lost > 0 || c.Gone > 0 }

func (c *Counts) add(o Counts) {
	c.Read += o.Read
	c.Lost += o.Lost
	c.Skipped += o.Skipped
	c.Before += o.Before
	c.Corrupt += o.Corrupt
	c.Reread += o.Reread
	c.Gone += o.Gone
}

// Poll hands on the records written since the last poll, of a level up to the
// one given: oldest first within a lane, lane after lane. A thread's records may
// be spread over lanes, so across them only times tell the order. It does at most one capacity of records
// per lane and allocates nothing. The record belongs to the callback until it
// returns, which may Close the ring but use it for nothing else. Once Err is set
// there are no more.
func (r *Ring) Poll(level Level, fn func(lane int, rec *Record)) Counts {
	before := r.total
	r.poll(level, fn)
	return Counts{
		Read: r.total.Read - before.Read, Lost: r.total.Lost - before.Lost,
		Skipped: r.total.Skipped - before.Skipped, Corrupt: r.total.Corrupt - before.Corrupt,
		Before: r.total.Before - before.Before, Reread: r.total.Reread - before.Reread, Gone: r.total.Gone - before.Gone,
	}
}

func (r *Ring) poll(level Level, fn func(lane int, rec *Record)) {
	if r.err != nil {
		return
	}
	defer r.caught(debug.SetPanicOnFault(true))
	r.missingUntil = 0
	for i := 0; i < len(r.lanes) && r.err == nil; i++ {
		r.pollLane(i, level, fn)
	}
	r.resuming = false
}

func (r *Ring) pollLane(i int, level Level, fn func(lane int, rec *Record)) {
	l := &r.lanes[i]
	var c Counts
	defer func() {
		l.counts.add(c)
		r.total.add(c)
		if l.gap {
			r.missingUntil = math.MaxUint64
		}
	}()
	end := l.advance(&c)
	if r.resuming {
		end = min(end, l.known)
	}
	for l.gap = l.gap || c.missing(); l.cursor < end && r.err == nil; {
		v := l.take(&r.rec, l.cursor, level)
		if v == pending {
			if r.wait(l) {
				return
			}
			if v = l.take(&r.rec, l.cursor, level); v == pending {
				v = lost
			}
		}
		l.cursor++
		l.count(v, &c)
		if l.gap && (v == taken || v == skipped) {
			l.gap, r.missingUntil = false, max(r.missingUntil, r.rec.LastSeen())
		}
		switch v {
		case taken:
			fn(i, &r.rec)
		case lost, corrupt:
			l.gap = true
			if v == lost {
				l.lapped(end, &c)
			}
		}
	}
}

// count counts the record before the cursor, which is known where the reader before
// counted it.
func (l *lane) count(v verdict, c *Counts) {
	known := l.cursor <= l.known
	if v == corrupt {
		c.Corrupt++
	}
	switch {
	case known && v == taken:
		c.Reread++
	case known && v == skipped:
	case known:
		c.Gone++
	case v == taken:
		c.Read++
	case v == skipped:
		c.Skipped++
	default:
		c.Lost++
	}
}

// wait reports whether the record at the cursor of the shared lane may still be
// finished by its writer.
func (r *Ring) wait(l *lane) bool {
	if l.pending != l.cursor+1 {
		l.pending, l.since = l.cursor+1, time.Now()
	}
	if time.Since(l.since) > patience {
		return false
	}
	alive, err := locked(r.file)
	return alive || err != nil
}

// Snapshot hands on every record that is still there, whatever its level, and
// leaves the reader's place and Stats as they are. Lost are the numbers within
// the lanes' capacity that are not whole now.
func (r *Ring) Snapshot(fn func(lane int, rec *Record)) (c Counts) {
	r.guarded(func() {
		for i := 0; i < len(r.lanes) && r.err == nil; i++ {
			r.snapshotLane(i, &c, fn)
		}
	})
	return c
}

func (r *Ring) snapshotLane(i int, c *Counts, fn func(lane int, rec *Record)) {
	l := r.lanes[i]
	end := load(&l.state[laneHead])
	if end > maxHead {
		c.Corrupt++
		return
	}
	for n := end - min(end, l.capacity()); n < end && r.err == nil; n++ {
		switch l.take(&r.rec, n, ^Level(0)) {
		case taken:
			c.Read++
			fn(i, &r.rec)
		case corrupt:
			c.Corrupt++
			c.Lost++
		default:
			c.Lost++
		}
	}
}

// Stats are totals over the ring's life here.
type Stats struct {
	Counts
	Faults uint64 // reads of a mapping whose file had been truncated: 0 or 1
}

// Stats returns what Poll has counted so far.
func (r *Ring) Stats() Stats { return Stats{Counts: r.total, Faults: r.faults} }

// Lane is the state of one producer thread's lane.
type Lane struct {
	Owner  uint64 // thread id in its own namespace; 0: free, or the shared lane
	Head   uint64 // records written since the file was made
	Claims uint64 // times the lane was taken
	Scope  OpenScope
	Counts // of what was polled
}

// Lanes appends all lanes, the shared one first.
func (r *Ring) Lanes(dst []Lane) []Lane {
	r.guarded(func() {
		for i := range r.lanes {
			l := &r.lanes[i]
			dst = append(dst, Lane{
				Owner: load(&l.state[laneOwner]), Head: load(&l.state[laneHead]),
				Claims: load(&l.state[laneClaims]), Scope: l.openScope(), Counts: l.counts,
			})
		}
	})
	return dst
}
