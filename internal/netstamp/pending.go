// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// maxPending is how many packets may wait for their transmit stamp at once: some
// hundred milliseconds of 10,000 packets a second.
const maxPending = 4096

// pending are the packets that wait for their transmit stamp, by number.
type pending struct {
	slots  [maxPending]waiting
	oldest uint32 // no lower number waits
	n      int    // that wait
}

type waiting struct {
	id       uint32
	used     bool
	before   int64         // machine's realtime before it was sent
	since    time.Duration // of the program's own clock
	software stamp.Stamp   // that is to serve unless a NIC's comes
}

// put adds a packet and says whether another one had to go.
func (p *pending) put(w waiting) (overflow bool) {
	slot := &p.slots[w.id%maxPending]
	if overflow = slot.used; !overflow {
		p.n++
	}
	w.used = true
	*slot = w
	return overflow
}

// find returns the packet that a stamp is of, nil where none of the number waits.
// A software stamp from before the packet was sent is another packet's, which had
// the number earlier.
func (p *pending) find(id uint32, software int64) *waiting {
	slot := &p.slots[id%maxPending]
	if !slot.used || slot.id != id || software != 0 && software < slot.before {
		return nil
	}
	return slot
}

// ended says whether the packet of this number had its stamp.
func (p *pending) ended(id uint32) bool {
	slot := &p.slots[id%maxPending]
	return !slot.used && slot.id == id
}

// expired takes a packet that has waited since limit or longer; next is the
// number of the next packet.
func (p *pending) expired(limit time.Duration, next uint32) (w waiting, ok bool) {
	if next-p.oldest > maxPending {
		p.oldest = next - maxPending
	}
	for ; p.oldest != next; p.oldest++ {
		slot := &p.slots[p.oldest%maxPending]
		if !slot.used || slot.id != p.oldest {
			continue
		}
		if slot.since > limit {
			break
		}
		p.end(slot)
		return *slot, true
	}
	return waiting{}, false
}

// drop forgets the packet that was put last.
func (p *pending) drop(id uint32) { p.end(&p.slots[id%maxPending]) }

func (p *pending) end(slot *waiting) {
	slot.used = false
	p.n--
}
