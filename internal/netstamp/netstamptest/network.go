// SPDX-License-Identifier: Apache-2.0

package netstamptest

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// wire is how long a packet occupies a path: 250 bytes at 2 Gbit/s.
	wire = time.Microsecond
	// heldFor is how much later a packet arrives that others overtake: more than the
	// spacing of probes that leave together, less than a window.
	heldFor = 2 * time.Millisecond
	// readTakes is how long it takes to read a clock.
	readTakes = int64(30 * time.Nanosecond)
)

// Path is one direction between two addresses.
type Path struct {
	// Delay is the least time under way. Jitter is the mean of what queues add to it; a
	// queue keeps the order of packets.
	Delay, Jitter time.Duration
	// Shares of packets, 0 to 1. A reordered one is held for 2 ms, and the copy of a
	// duplicate is.
	Loss, Duplicate, Reorder float64
}

// Counts is what happened to the packets of one direction.
type Counts struct{ Sent, Lost, Duplicated, Reordered int64 }

type direction struct{ from, to netip.Addr }

type flowKey struct{ from, to netip.AddrPort }

// flow is what goes from one port to another.
type flow struct {
	rng  *rand.Rand
	last int64 // when the last packet in order arrives
}

// Network is a network in memory. It is safe for concurrent use, within one bubble.
type Network struct {
	seed uint64
	now  atomic.Int64

	mu     sync.Mutex
	usual  Path
	paths  map[direction]Path
	counts map[direction]*Counts
	ports  map[netip.AddrPort]*Port
	flows  map[flowKey]*flow
	free   uint16 // the next port for a socket that asks for any
}

// New returns a network whose directions are all like usual, unless SetPath changes them.
func New(seed uint64, usual Path) *Network {
	return &Network{
		seed: seed, usual: usual, free: 49152,
		paths: map[direction]Path{}, counts: map[direction]*Counts{}, ports: map[netip.AddrPort]*Port{}, flows: map[flowKey]*flow{},
	}
}

// Now returns true time, Unix ns: the bubble's, but no two calls return the same, since a
// clock takes time to read.
func (n *Network) Now() int64 {
	for {
		last := n.now.Load()
		next := max(time.Now().UnixNano(), last+readTakes)
		if n.now.CompareAndSwap(last, next) {
			return next
		}
	}
}

// SetPath changes the direction from one address to another, for packets that are sent
// from then on.
func (n *Network) SetPath(from, to netip.Addr, p Path) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.paths[direction{from, to}] = p
}

// Path returns what the direction from one address to another is like.
func (n *Network) Path(from, to netip.Addr) Path {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.path(direction{from, to})
}

func (n *Network) path(d direction) Path {
	if p, ok := n.paths[d]; ok {
		return p
	}
	return n.usual
}

// Counts returns what happened to the packets from one address to another so far.
func (n *Network) Counts(from, to netip.Addr) Counts {
	n.mu.Lock()
	defer n.mu.Unlock()
	return *n.count(direction{from, to})
}

func (n *Network) count(d direction) *Counts {
	c := n.counts[d]
	if c == nil {
		c = &Counts{}
		n.counts[d] = c
	}
	return c
}

// Port is a UDP port that is in use.
type Port struct {
	network *Network
	at      netip.AddrPort
	receive func(b []byte, from netip.AddrPort)
}

// Open takes a port: 0 is any that is free. What arrives goes to receive, which keeps b,
// may send, and does not wait: packets that arrive later wait for it.
func (n *Network) Open(at netip.AddrPort, receive func(b []byte, from netip.AddrPort)) (*Port, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for port := at.Port(); port == 0 && (at.Port() == 0 || n.ports[at] != nil); n.free++ {
		at = netip.AddrPortFrom(at.Addr(), n.free)
	}
	if n.ports[at] != nil {
		return nil, fmt.Errorf("listen on %v: %w", at, syscall.EADDRINUSE)
	}
	p := &Port{network: n, at: at, receive: receive}
	n.ports[at] = p
	return p, nil
}

// Close frees the port. What is under way to it is lost, and not counted.
func (p *Port) Close() {
	p.network.mu.Lock()
	defer p.network.mu.Unlock()
	delete(p.network.ports, p.at)
}

// LocalAddr returns which port it is.
func (p *Port) LocalAddr() netip.AddrPort { return p.at }

// Send sends a copy of b, and returns when it left.
func (p *Port) Send(b []byte, to netip.AddrPort) (left int64) {
	left = p.network.Now()
	b = slices.Clone(b)
	for _, arrives := range p.network.arrivals(flowKey{p.at, to}, left) {
		time.AfterFunc(time.Duration(arrives-time.Now().UnixNano()), func() { p.network.deliver(b, p.at, to) })
	}
	return left
}

// arrivals decides when a packet arrives: never, once or twice.
func (n *Network) arrivals(key flowKey, left int64) (at []int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.flow(key)
	d := direction{key.from.Addr(), key.to.Addr()}
	p, c := n.path(d), n.count(d)
	// All is drawn for each packet, so that no share changes what happens by another.
	queued := time.Duration(f.rng.ExpFloat64() * float64(p.Jitter))
	lost, doubled, held := f.rng.Float64() < p.Loss, f.rng.Float64() < p.Duplicate, f.rng.Float64() < p.Reorder
	c.Sent++
	if lost {
		c.Lost++
		return nil
	}
	arrives := left + int64(p.Delay+queued)
	if held {
		c.Reordered++
		arrives += int64(heldFor)
	} else {
		arrives = max(arrives, f.last+int64(wire))
		f.last = arrives
	}
	if doubled {
		c.Duplicated++
		return []int64{arrives, arrives + int64(heldFor)}
	}
	return []int64{arrives}
}

func (n *Network) flow(key flowKey) *flow {
	f := n.flows[key]
	if f == nil {
		h := fnv.New64a()
		_, _ = fmt.Fprint(h, key.from, key.to)
		f = &flow{rng: rand.New(rand.NewPCG(n.seed, h.Sum64()))}
		n.flows[key] = f
	}
	return f
}

func (n *Network) deliver(b []byte, from, to netip.AddrPort) {
	n.mu.Lock()
	p := n.ports[to]
	n.mu.Unlock()
	if p != nil {
		p.receive(slices.Clone(b), from)
	}
}
