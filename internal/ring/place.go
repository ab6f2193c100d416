// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
	"fmt"
)

// Place is where a reader is to go on in one lane; numbers are those of records.
type Place struct {
	From  uint64 // first to read
	Known uint64 // below, the reader before counted the records
}

// Resume takes up what another reader of this ring began, one place a lane. The first poll
// reads only up to Known, so that what the reader before has read comes apart from what it has
// not. It is called before the first poll; places that no reader of this ring can have
// left are refused, and change nothing.
func (r *Ring) Resume(places []Place) error {
	if r.err != nil {
		return r.err
	}
	if len(places) != len(r.lanes) {
		return fmt.Errorf("resume ring %s: got places of %d lanes; want %d", r.path, len(places), len(r.lanes))
	}
	var err error
	r.guarded(func() {
		for i, p := range places {
			if head := load(&r.lanes[i].state[laneHead]); p.From > p.Known || p.Known > head || head > maxHead {
				err = fmt.Errorf("resume ring %s: got place %+v in lane %d; want rising numbers up to its head, %d", r.path, p, i, head)
				return
			}
		}
	})
	if err != nil || r.err != nil {
		return cmp.Or(err, r.err)
	}
	for i, p := range places {
		l := &r.lanes[i]
		l.cursor, l.known, l.opened = p.From, p.Known, 0
	}
	r.resuming = true
	return nil
}

// Cursors appends the number of the next record to read of each lane.
func (r *Ring) Cursors(dst []uint64) []uint64 {
	for i := range r.lanes {
		dst = append(dst, r.lanes[i].cursor)
	}
	return dst
}

// MissingUntil returns the time up to which records may be missing, as far as the last poll found
// out: that of the first record behind those that it could not read, ns; 0 where none was missing,
// and the maximum where nothing follows them yet.
func (r *Ring) MissingUntil() uint64 { return r.missingUntil }
