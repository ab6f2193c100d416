// SPDX-License-Identifier: Apache-2.0

package ring

// ProxyState is what the proxy of an operation was last seen doing: the
// library's own numbers of its states.
type ProxyState uint8

// States of a proxy step. Receiving, peer and wire cannot be told apart from
// one side.
const (
	ProxyNone        ProxyState = 0
	ProxySendGPU     ProxyState = 8
	ProxySendWire    ProxyState = 9
	ProxyRecv        ProxyState = 10
	ProxyRecvFlush   ProxyState = 11
	ProxyRecvGPU     ProxyState = 12
	ProxySendPeer    ProxyState = 20
	lastProxyState              = ProxySendPeer
	proxyStatesCount            = int(lastProxyState) + 1
)

var proxyNames = [proxyStatesCount]string{
	ProxyNone:      "none",
	ProxySendGPU:   "sending: waits for its GPU to fill the buffer",
	ProxySendPeer:  "sending: waits for the peer to be ready",
	ProxySendWire:  "sending: waits for the wire",
	ProxyRecv:      "receiving: waits for the peer or the wire",
	ProxyRecvFlush: "receiving: waits for the flush to GPU memory",
	ProxyRecvGPU:   "receiving: waits for its GPU to take the data",
}

func (s ProxyState) String() string {
	if s <= lastProxyState && proxyNames[s] != "" {
		return proxyNames[s]
	}
	return nameOf(nil, uint64(s))
}

// SlotState is how far an open operation has come.
type SlotState uint8

// States of an open operation. One that is being filled is never returned.
const (
	SlotEnqueueing SlotState = 2
	SlotEnqueued   SlotState = 3
	SlotStarted    SlotState = 4
	SlotEnding     SlotState = 5 // its record is being written, or is there already
)

var slotNames = [...]string{"free", "claimed", "enqueueing", "enqueued", "started", "ending"}

func (s SlotState) String() string { return nameOf(slotNames[:], uint64(s)) }

// Wait is what a proxy step waits for.
type Wait struct {
	State   ProxyState // ProxyNone: for nothing
	Channel uint8
	Peer    int32  // rank of the communicator
	Since   uint64 // ns
}

// Slot is an operation in flight: a copy, consistent in itself.
type Slot struct {
	Index      int
	Generation uint64
	State      SlotState
	Record     Record // what is known of the operation so far; word 0 is the slot's own
	Order      uint64 // n-th operation enqueued on this communicator, from 1

	OpenKernelChannels, OpenProxyOps uint32

	// What its proxies have waited for longest in each direction: a rank often waits
	// for its own GPU to send because it waits for a peer to receive.
	Send, Receive Wait
	// The longer of the two.
	Proxy        ProxyState
	ProxyChannel uint8
	ProxySend    bool
	ProxyPeer    int32  // rank of the communicator
	ProxySince   uint64 // ns; 0: no proxy step seen
	Last         uint64 // last event, ns
}

// Words of a slot after the record's.
const (
	slotOrder = words + iota
	slotChildren
	slotLast
	slotWaits
)

// slotTries is enough to copy an operation that is there all the time: it
// changes its state at most three times (enqueueing, enqueued, started, ending).
// One that is gone by then was enqueued after we began or left its record.
const slotTries = 5

// InFlight appends the operations that are open. A record is written before its
// slot is freed: who calls InFlight first and polls afterwards has every
// operation that was enqueued before as an open slot, a record, or both. It
// allocates nothing where dst has room.
func (r *Ring) InFlight(dst []Slot) []Slot {
	r.guarded(func() {
		for i := range len(r.slots) / slotWords {
			dst = appendSlot(dst, i, r.slots[i*slotWords:][:slotWords])
		}
	})
	return dst
}

func appendSlot(dst []Slot, index int, w []uint64) []Slot {
	for range slotTries {
		first := load(&w[0])
		state := SlotState(first)
		if state < SlotEnqueueing || state > SlotEnding {
			return dst
		}
		s := Slot{Index: index, Generation: first >> 8, State: state}
		s.fill(w)
		if load(&w[0]) == first {
			return append(dst, s)
		}
	}
	return dst
}

func (s *Slot) fill(w []uint64) {
	for i := range s.Record {
		s.Record[i] = load(&w[i])
	}
	children := load(&w[slotChildren])
	s.Order, s.Last = load(&w[slotOrder]), load(&w[slotLast])
	s.OpenKernelChannels, s.OpenProxyOps = uint32(children), uint32(children>>32)
	for i := range slotWaitCount {
		s.wait(load(&w[slotWaits+2*i]), load(&w[slotWaits+2*i+1]))
	}
	s.longest()
}

// slotWaitCount: both directions, on channels of even and of odd number.
const slotWaitCount = 4

// wait takes what a channel waits for, unless another of its direction has waited
// longer.
func (s *Slot) wait(proxy, since uint64) {
	w := Wait{State: ProxyState(proxy), Channel: uint8(proxy >> 8), Peer: int32(proxy >> 32), Since: since}
	oldest := &s.Receive
	if uint8(proxy>>16) != 0 {
		oldest = &s.Send
	}
	if w.State != ProxyNone && since != 0 && (oldest.State == ProxyNone || since < oldest.Since) {
		*oldest = w
	}
}

func (s *Slot) longest() {
	w := s.Receive
	if s.Send.State != ProxyNone && (w.State == ProxyNone || s.Send.Since <= w.Since) {
		w, s.ProxySend = s.Send, true
	}
	s.Proxy, s.ProxyChannel, s.ProxyPeer, s.ProxySince = w.State, w.Channel, w.Peer, w.Since
}

// Mark is how far a communicator has come in one way.
type Mark struct {
	Known bool
	Seq   uint64 // of the last operation; of messages, how many
	At    uint64 // ns
}

// Frontier is how far a communicator has come in one function.
type Frontier struct {
	Comm uint16
	Func uint8 // string code

	Enqueued, Started, Completed Mark

	Open     uint64 // operations in flight
	Total    uint64 // operations enqueued
	Inferred uint64 // of them completed by a later one
}

// Words of a frontier.
const (
	frontierKey = iota
	frontierEnqueued
	frontierEnqueuedAt
	frontierStarted
	frontierStartedAt
	frontierCompleted
	frontierCompletedAt
	frontierOpen
	frontierTotal
	frontierInferred
)

// Frontiers appends the frontiers in use. Their numbers are read one after the
// other while the producer goes on: a Mark's time may be that of the operation
// before or after.
func (r *Ring) Frontiers(dst []Frontier) []Frontier {
	r.guarded(func() {
		for i := range len(r.frontiers) / frontierWords {
			w := r.frontiers[i*frontierWords:][:frontierWords]
			if key := load(&w[frontierKey]); key&1 != 0 {
				dst = append(dst, frontier(key, w))
			}
		}
	})
	return dst
}

func frontier(key uint64, w []uint64) Frontier {
	// Read from the end of an operation to its beginning: so completed never
	// seems ahead of started, nor started of enqueued.
	completed := mark(w, frontierCompleted)
	started := mark(w, frontierStarted)
	return Frontier{
		Comm: uint16(key >> 16), Func: uint8(key >> 32),
		Enqueued: mark(w, frontierEnqueued), Started: started, Completed: completed,
		Open: load(&w[frontierOpen]), Total: load(&w[frontierTotal]), Inferred: load(&w[frontierInferred]),
	}
}

func mark(w []uint64, at int) Mark {
	seq := load(&w[at])
	if seq == 0 {
		return Mark{}
	}
	return Mark{Known: true, Seq: seq - 1, At: load(&w[at+1])}
}
