// SPDX-License-Identifier: Apache-2.0

package netstamp

// queue is the last readings; the oldest make room.
type queue struct {
	ring   []node
	head   int // of the newest
	n      int
	unsure int // among them, but for the oldest: nothing is known of before it
}

// at returns the i-th newest.
func (q *queue) at(i int) *node { return &q.ring[(q.head-i+len(q.ring))%len(q.ring)] }

func (q *queue) last() (node, bool) {
	if q.n == 0 {
		return node{}, false
	}
	return *q.at(0), true
}

func (q *queue) push(n node) {
	if q.ring == nil {
		q.ring, q.head = make([]node, history), -1
	}
	if q.n == len(q.ring) {
		if q.at(q.n - 2).unsure {
			q.unsure--
		}
		q.n--
	}
	if n.unsure && q.n > 0 {
		q.unsure++
	}
	q.head = (q.head + 1) % len(q.ring)
	q.n++
	q.replace(n)
}

// replace puts a reading in the place of the newest.
func (q *queue) replace(n node) {
	n.peak = n.Realtime
	if q.n > 1 {
		before := q.at(1)
		n.peak = max(n.peak, before.peak)
		if n.unsure {
			n.peak = max(n.peak, before.Realtime+n.reach(before))
		}
	}
	*q.at(0) = n
}
