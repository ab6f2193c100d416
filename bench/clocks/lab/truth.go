// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/bench/clocks/plan"
	"github.com/lockstep-otel/lockstep/internal/netstamp"
)

// truth knows what every clock of a mesh reads at every moment.
type truth struct {
	nodes map[string]*netstamp.Skewed // by clock id
	// twice are readings that a clock has had twice, since it was stepped back: nobody can
	// say which of both is meant.
	twice map[string][][2]int64
}

func newTruth(nodes []*plan.Node) truth {
	t := truth{map[string]*netstamp.Skewed{}, map[string][][2]int64{}}
	for _, n := range nodes {
		s := n.Clock.Skewed()
		t.nodes[plan.RawClock(n.Name)], t.nodes[plan.RealtimeClock(n.Name)] = s, s
		t.noteTwice(plan.RawClock(n.Name), n.Clock.RawChanges)
		t.noteTwice(plan.RealtimeClock(n.Name), n.Clock.RealtimeChanges)
	}
	return t
}

func (tr truth) noteTwice(clock string, changes []netstamp.Change) {
	for _, c := range changes {
		if c.Step < 0 {
			tr.twice[clock] = append(tr.twice[clock], [2]int64{tr.reads(clock, c.At), tr.reads(clock, c.At-1)})
		}
	}
}

func isRaw(clock string) bool { return strings.HasSuffix(clock, "/raw") }

// reads returns what a clock reads at true time t.
func (tr truth) reads(clock string, t int64) int64 {
	if isRaw(clock) {
		return tr.nodes[clock].Raw(t)
	}
	return tr.nodes[clock].Realtime(t)
}

// when returns the true time at which a clock read what it did; false where a step
// left the reading out or had it twice, or the clock is not of this mesh.
func (tr truth) when(clock string, reading int64) (int64, bool) {
	s := tr.nodes[clock]
	if s == nil {
		return 0, false
	}
	for _, r := range tr.twice[clock] {
		if r[0] <= reading && reading <= r[1] {
			return 0, false
		}
	}
	if isRaw(clock) {
		return s.TrueOfRaw(reading)
	}
	return s.TrueOfRealtime(reading)
}

// offset is dst's reading less src's when src reads at.
func (tr truth) offset(src, dst string, at int64) (int64, bool) {
	t, ok := tr.when(src, at)
	if !ok || tr.nodes[dst] == nil {
		return 0, false
	}
	return tr.reads(dst, t) - at, true
}

// drift is dst's rate less src's, over the minute after t: only for clocks whose
// rates do not change any more.
func (tr truth) drift(src, dst string, t int64) float64 {
	until := t + int64(time.Minute)
	s := tr.reads(src, until) - tr.reads(src, t)
	d := tr.reads(dst, until) - tr.reads(dst, t)
	return float64(d-s) / float64(s)
}

// scenario is what is asked of a mesh.
type scenario struct {
	name string
	rate float64 // packets/s to each neighbour
	k    int
	// event, if any, is called with a moment and a random sign, and plans what happens then.
	event func(c *plan.Clock, at int64, sign float64)
	liar  plan.Lie // of the last node
}

const second = int64(time.Second)

const (
	maxOffset = 10e6  // ns
	maxDrift  = 50e-6 // beside true time
)

// nodes plans a mesh whose clocks begin at true time now. The same seed gives the same clocks.
func (s *scenario) nodes(w *network, now int64, length time.Duration, seed uint64) []*plan.Node {
	rng := rand.New(rand.NewPCG(seed, 0x1ab))
	var peers []plan.Peer
	for i := range w.names {
		peers = append(peers, plan.Peer{Name: "n" + string(rune('0'+i)), Addr: w.addr(i)})
	}
	nodes := make([]*plan.Node, len(peers))
	for i, p := range peers {
		nodes[i] = &plan.Node{Name: p.Name, Addr: p.Addr, Peers: peers, Rate: s.rate, K: s.k}
		c := &nodes[i].Clock
		// Far from one another's origins, as those of hosts are, but for the offset that is asked for.
		// They run at their rates before anything is measured: a change at the
		// start would be one of the whole mesh in its first windows.
		begun := now - int64(10*time.Second)
		*c = plan.Clock{At: begun, Raw: int64(time.Hour), Realtime: begun}
		c.Raw += int64((2*rng.Float64() - 1) * maxOffset)
		c.Realtime += int64((2*rng.Float64() - 1) * maxOffset)
		rate := (2*rng.Float64() - 1) * maxDrift
		c.RawChanges = []netstamp.Change{{At: begun, Rate: rate}}
		c.RealtimeChanges = []netstamp.Change{{At: begun, Rate: rate / 5}}
	}
	if s.event != nil {
		s.plan(nodes, now, length, rng)
	}
	nodes[len(nodes)-1].Lie = s.liar
	return nodes
}

// plan has every node's clock change every four to five seconds, at random moments. Two
// changes that no exchange comes between cannot be seen, not even as one where they undo one
// another; so there is time for one of each pair between any two.
func (s *scenario) plan(nodes []*plan.Node, now int64, length time.Duration, rng *rand.Rand) {
	gap := s.apart().Seconds()
	each := max(4/float64(len(nodes)), 1.2*gap)
	var order []int
	for at := now + second; at < now+int64(2*length); at += int64((gap + 2*(each-gap)*rng.Float64()) * float64(second)) {
		if len(order) == 0 {
			order = rng.Perm(len(nodes))
		}
		sign := float64(1 - 2*rng.IntN(2))
		s.event(&nodes[order[0]].Clock, at, sign)
		order = order[1:]
	}
}

// apart is the least time between two changes: each round probes every neighbour with two
// packets, in another order, so that two rounds can lie between them.
func (s *scenario) apart() time.Duration {
	const rounds = 2.5
	return max(time.Second/4, time.Duration(rounds*2/s.rate*float64(time.Second)))
}

// rawRate changes the raw clock's frequency by d, and back with the next change.
func rawRate(d float64) func(*plan.Clock, int64, float64) {
	return func(c *plan.Clock, at int64, sign float64) {
		first := c.RawChanges[0].Rate
		rate := first + sign*d
		if last := c.RawChanges[len(c.RawChanges)-1].Rate; last != first {
			rate = first
		}
		c.RawChanges = append(c.RawChanges, netstamp.Change{At: at, Rate: rate})
	}
}

// rawStep steps the raw clock.
func rawStep(size time.Duration) func(*plan.Clock, int64, float64) {
	return func(c *plan.Clock, at int64, sign float64) {
		rate := c.RawChanges[0].Rate
		c.RawChanges = append(c.RawChanges, netstamp.Change{At: at, Rate: rate, Step: int64(sign * float64(size))})
	}
}

// realtimeSlew slews the real-time clock by 500 ppm, as the kernel does, and back.
func realtimeSlew(c *plan.Clock, at int64, sign float64) {
	first := c.RealtimeChanges[0].Rate
	rate := first + sign*500e-6
	if last := c.RealtimeChanges[len(c.RealtimeChanges)-1].Rate; last != first {
		rate = first
	}
	c.RealtimeChanges = append(c.RealtimeChanges, netstamp.Change{At: at, Rate: rate})
}

// realtimeStep steps the real-time clock.
func realtimeStep(size time.Duration) func(*plan.Clock, int64, float64) {
	return func(c *plan.Clock, at int64, sign float64) {
		rate := c.RealtimeChanges[0].Rate
		c.RealtimeChanges = append(c.RealtimeChanges, netstamp.Change{At: at, Rate: rate, Step: int64(sign * float64(size))})
	}
}
