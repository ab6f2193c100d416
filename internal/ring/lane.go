// SPDX-License-Identifier: Apache-2.0

package ring

import "time"

// lane is a reader's place in one producer's records.
type lane struct {
	state  []uint64 // owner, head, claims, scope
	words  []uint64 // records
	mask   uint64   // capacity - 1
	shared bool
	cursor uint64 // number of the next record to read
	counts Counts
	gap    bool   // records before the cursor were wanted, and could not be read
	opened uint64 // head when the ring was opened
	known  uint64 // below, a reader before counted the records
	// pending is 1 + the number that a writer of the shared lane has not
	// finished, since when it is waited for.
	pending uint64
	since   time.Time
}

// Words of a lane's state.
const (
	laneOwner = iota
	laneHead
	laneClaims
	laneScope
	laneScopeAt
)

// verdict is what became of one number.
type verdict uint8

const (
	taken   verdict = iota
	skipped         // above the level asked for
	lost            // overwritten, or given up by its writer
	corrupt         // lost, and not by a writer that keeps the rules
	pending         // being written
)

func (l *lane) capacity() uint64 { return l.mask + 1 }

func (l *lane) slot(n uint64) *[words]uint64 {
	return (*[words]uint64)(l.words[(n&l.mask)*words:])
}

// take copies record n, if it is there whole and of the level asked for, or the
// first behind a gap. The first word is read before and after; Go's atomic loads
// keep the order.
func (l *lane) take(rec *Record, n uint64, level Level) verdict {
	slot := l.slot(n)
	first := load(&slot[0])
	if first != n+1 {
		return l.missing(n, first)
	}
	rec[0], rec[1] = first, load(&slot[1])
	v := taken
	if rec.Level() > level {
		v = skipped
	}
	if v == taken || l.gap {
		for i := 2; i < words; i++ {
			rec[i] = load(&slot[i])
		}
	}
	if load(&slot[0]) != first {
		return lost
	}
	return v
}

// missing judges a slot that does not hold number n although head has passed it.
func (l *lane) missing(n, first uint64) verdict {
	held := first &^ writing // of the shared lane: the number that is being written
	if first&writing == 0 {
		held = first - 1
	}
	switch {
	case !l.shared && first == 0: // being overwritten
		return lost
	case first == 0 || (held-n)&l.mask != 0:
		return corrupt
	case l.shared:
		// An earlier number: its writer stood still here and n was given up.
		if first == writing|n {
			return pending
		}
		return lost
	case first&writing != 0 || held < n:
		return corrupt
	}
	return lost
}

// advance moves the cursor over what was overwritten before it was read, and
// returns where reading ends. Heads are a stranger's words.
func (l *lane) advance(c *Counts) (end uint64) {
	head := load(&l.state[laneHead])
	switch {
	case head > maxHead:
		c.Corrupt++
		return l.cursor
	case head < l.cursor: // resumes there: numbers start anew
		c.Corrupt++
		l.cursor, l.known = head, min(l.known, head)
		return head
	case head-l.cursor <= l.capacity():
		return head
	case !l.shared && !l.reached(head):
		c.Corrupt++
		return l.cursor
	}
	l.lose(head-l.capacity(), c)
	return head
}

// reached reports whether the record before head is there or was: a head that
// jumped ahead of its records is corrupt, and its numbers are not losses.
func (l *lane) reached(head uint64) bool {
	first := load(&l.slot(head - 1)[0])
	return first == 0 || first&writing == 0 && first >= head && (first-head)&l.mask == 0
}

// lose counts the numbers up to n as lost.
func (l *lane) lose(n uint64, c *Counts) {
	if l.cursor < l.known {
		c.Gone += min(n, l.known) - l.cursor
		l.cursor = min(n, l.known)
	}
	if l.opened > l.capacity() && l.cursor < l.opened-l.capacity() {
		c.Before += min(n, l.opened-l.capacity()) - l.cursor
	}
	c.Lost += n - l.cursor
	l.cursor = n
}

// lapped moves the cursor out of the way of a writer that has lapped it, but
// not beyond end: a poll is bounded.
func (l *lane) lapped(end uint64, c *Counts) {
	head := load(&l.state[laneHead])
	if head > maxHead || head < l.capacity() || !l.shared && !l.reached(head) {
		return
	}
	if oldest := min(head-l.capacity(), end); oldest > l.cursor {
		l.lose(oldest, c)
	}
}
