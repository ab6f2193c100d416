// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

const (
	// maxHalves bounds the proxy steps that wait for their other half: at 10^5
	// steps a second of a busy node, half a second of them.
	maxHalves = 65536
	// maxLinks bounds the links of a node, per communicator and channel: eight
	// ranks in both directions of 32 channels and 64 communicators.
	maxLinks = 32768
)

// Link is one direction between two ranks of a node on one channel, and the
// in-band delays on it: from the sender's entry into the wait for its send to
// the receiver's exit from its wait for the data. Both stamps are the host's, so
// that the delay is exact.
type Link struct {
	Comm     string
	Channel  uint8
	Src, Dst int64 // global ranks
	*stats.Recorder
}

// halfKey joins the two halves of one proxy step.
type halfKey struct {
	comm, seq uint64
	fn        string
	step      uint32
	src, dst  int32
	channel   uint8
}

type half struct {
	at   uint64
	sent bool
}

type linkKey struct {
	comm     uint64
	src, dst int32
	channel  uint8
}

// linkTable joins proxy steps of local ranks.
type linkTable struct {
	halves     map[halfKey]half
	links      map[linkKey]*Link
	byDst      map[int64][]*Link // with delays since they were taken last
	pages      stats.Pool
	overflowed int64
}

func (t *linkTable) init() {
	t.halves, t.links, t.byDst = map[halfKey]half{}, map[linkKey]*Link{}, map[int64][]*Link{}
}

// add takes one half; with its other half it is a delay.
func (t *linkTable) add(k halfKey, h half, link Link) {
	other, ok := t.halves[k]
	if !ok || other.sent == h.sent {
		if len(t.halves) >= maxHalves {
			t.overflowed += int64(len(t.halves))
			clear(t.halves)
		}
		t.halves[k] = h
		return
	}
	delete(t.halves, k)
	sent, received := h.at, other.at
	if !h.sent {
		sent, received = other.at, h.at
	}
	l := t.link(linkKey{k.comm, k.src, k.dst, k.channel}, link)
	if l == nil {
		t.overflowed++
		return
	}
	if l.Count == 0 {
		t.byDst[l.Dst] = append(t.byDst[l.Dst], l)
	}
	// The sender may note its wait later than the data arrive.
	l.Add(received-min(sent, received), &t.pages)
}

func (t *linkTable) link(k linkKey, fresh Link) *Link {
	if l := t.links[k]; l != nil {
		return l
	}
	if len(t.links) >= maxLinks {
		return nil
	}
	fresh.Recorder = &stats.Recorder{}
	t.links[k] = &fresh
	return &fresh
}

// take appends the links into a rank that have delays, until they are recycled.
func (t *linkTable) take(dst int64, to []Link) []Link {
	for _, l := range t.byDst[dst] {
		to = append(to, *l)
	}
	if len(t.byDst[dst]) > 0 {
		t.byDst[dst] = t.byDst[dst][:0]
	}
	return to
}

// forget drops the links of a communicator that has ended on this node.
func (t *linkTable) forget(comm uint64) {
	maps.DeleteFunc(t.links, func(k linkKey, l *Link) bool {
		if k.comm == comm {
			t.byDst[l.Dst] = slices.DeleteFunc(t.byDst[l.Dst], func(o *Link) bool { return o == l })
		}
		return k.comm == comm
	})
	maps.DeleteFunc(t.byDst, func(_ int64, links []*Link) bool { return len(links) == 0 })
}

// recycle empties links that were handed on.
func (t *linkTable) recycle(taken []Link) {
	for i := range taken {
		t.pages.Reset(taken[i].Recorder)
	}
}
