// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

const (
	// MaxRate is how much the rate of realtime against raw may change between two
	// pairs without being seen: adjtime and the frequency that NTP sets are limited
	// to 500 ppm each by the kernel. A faster slew is seen as a step is, and the
	// stamps of the readings between which it began are dropped.
	MaxRate = 1e-3

	// minStep, in ns, is the least step of realtime against which stamps are safe:
	// readings that are narrower show it, and others widen the stamps.
	minStep = 1000

	// wander is the change of rate that is no event: temperature, and the kernel's
	// rounding of the frequency.
	wander = 1e-6

	// ReadEvery is how often Pairs.Run reads the clocks where no traffic does.
	ReadEvery = 20 * time.Millisecond

	// Of readings closer together than thin only the last is kept, so that history
	// holds a second and more under any traffic.
	thin    = int64(time.Millisecond)
	history = 1024

	// rateOver is the least time over which the rate is measured.
	rateOver = int64(500 * time.Millisecond)
)

// Pairs follows what realtime reads against raw, and carries stamps over from one
// to the other. It is safe for concurrent use.
type Pairs struct {
	clock Clock

	mu    sync.Mutex
	nodes queue
	// The rate is measured from base, which lies rateOver to twice of it back, or
	// at the last event. While settling it is unknown.
	settling   bool
	base, next Pair
	rate       float64
	uncertain  float64 // half width of rate
	prompt     windows // of edges that tell of the same readings sooner
	windows    windows
	counters   PairCounters
}

// PairCounters is what Pairs read, and why it did not carry stamps over.
type PairCounters struct {
	Readings int64
	Events   int64 // steps, and changes of rate that were seen
	RawBack  int64 // readings of raw before the last one, which start anew

	StampEvent  int64 // stamps from an event, or from the some ms after it
	StampTwice  int64 // stamps of a time that occurred twice
	StampFuture int64 // stamps later than now
	StampOld    int64 // stamps before the history that is kept, or never shown

	EdgesDropped int64 // edges that nobody fetched
}

// node is a reading, with what is known of the time since the one before.
type node struct {
	Pair
	rate  float64 // of realtime against raw
	shift float64 // by which the rate may have been another
	slack int64   // ns that the offset may have deviated from that rate
	event bool    // a step or a change of rate
	// unsure: after an event, or with one. No stamp of that time is carried.
	unsure bool
	peak   int64 // the latest that realtime can have read up to then
}

func (p Pair) offset() int64 { return p.Realtime - p.Raw }

// NewPairs returns a Pairs of clock; nil is System. It reads the clock for some ms,
// so that the first stamps can be carried over.
func NewPairs(clock Clock) *Pairs {
	if clock == nil {
		clock = System()
	}
	p := newPairs(clock)
	for i := 0; i < settleReadings && p.settling; i++ {
		time.Sleep(time.Duration(thin))
		p.Read()
	}
	return p
}

// settleReadings are enough on a busy machine too.
const settleReadings = 50

func newPairs(clock Clock) *Pairs {
	p := &Pairs{clock: clock, settling: true, windows: windows{every: window}}
	p.Read()
	return p
}

// Run reads the clocks every ReadEvery until ctx ends.
func (p *Pairs) Run(ctx context.Context) {
	t := time.NewTicker(ReadEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			p.Read()
		}
	}
}

// Read reads the clocks, adds what it read and returns it.
func (p *Pairs) Read() Pair {
	p.mu.Lock()
	defer p.mu.Unlock()
	pair := p.clock.Pair() // under the lock, so that readings are added in order
	p.add(pair)
	return pair
}

// Add adds a reading that was taken elsewhere. Readings come in raw's order.
func (p *Pairs) Add(pair Pair) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(pair)
}

func (p *Pairs) add(pair Pair) {
	last, ok := p.nodes.last()
	if pair == (Pair{}) || ok && pair == last.Pair {
		return // a clock that could not be read
	}
	p.counters.Readings++
	back := ok && pair.Raw <= last.Raw
	if back {
		p.counters.RawBack++
	}
	if !ok || back {
		p.base, p.settling = pair, true
		p.push(node{Pair: pair, event: back, unsure: true})
		return
	}
	n := p.since(last, pair)
	switch {
	case p.settling:
		n.unsure = true
		p.settle(pair)
		p.push(n)
		return
	case p.beyond(last, n):
		n.event, n.unsure = true, true
		p.counters.Events++
		p.base, p.settling = pair, true
		p.push(n)
		return
	case !last.unsure && p.nodes.n > 1 && last.Raw-p.nodes.at(1).Raw < thin:
		p.nodes.replace(p.since(*p.nodes.at(1), pair))
	default:
		p.push(n)
	}
	p.measure(pair)
}

// beyond says whether a reading is not where the rate leads to from the last one.
func (p *Pairs) beyond(last, n node) bool {
	allowed := math.Ceil(p.uncertain*float64(n.Raw-last.Raw)) + 2
	return float64(n.slack) > float64(2*(last.Width+n.Width))+allowed
}

// settle ends the time after an event, or at the beginning, in which the rate is
// not known well enough to see the next event.
func (p *Pairs) settle(pair Pair) {
	u := p.precision(pair)
	switch {
	case 2*pair.Width < p.base.Width:
		p.base = pair
	case u < MaxRate/2:
		p.rate, p.uncertain = pair.rateSince(p.base), u
		p.next, p.settling = pair, false
	}
}

// precision is the half width of the rate between base and a reading.
func (p *Pairs) precision(pair Pair) float64 {
	over := pair.Raw - p.base.Raw
	if over < thin {
		return math.Inf(1)
	}
	return float64(p.base.Width+pair.Width)/float64(over) + wander
}

// since is the node of a reading that follows one. Whatever happened between
// both, if it went one way, moved the offset by no more than slack.
func (p *Pairs) since(from node, pair Pair) node {
	moved := pair.offset() - from.offset() - int64(math.Round(p.rate*float64(pair.Raw-from.Raw)))
	n := node{Pair: pair, rate: p.rate, shift: MaxRate + p.uncertain, slack: magnitude(moved) + from.Width + pair.Width}
	if from.Width+pair.Width > minStep {
		n.shift = math.Inf(1) // a step can hide here
	}
	return n
}

// measure measures the rate up to a reading, unless that is a wide one.
func (p *Pairs) measure(pair Pair) {
	if u := p.precision(pair); u < max(p.uncertain, MaxRate/10) {
		p.rate, p.uncertain = pair.rateSince(p.base), u
	}
	if pair.Raw-p.next.Raw > rateOver {
		p.base, p.next = p.next, pair
	}
}

// rateSince is the rate of realtime against raw between two readings.
func (p Pair) rateSince(from Pair) float64 {
	return float64(p.offset()-from.offset()) / float64(p.Raw-from.Raw)
}

func (p *Pairs) push(n node) {
	if last, ok := p.nodes.last(); ok {
		p.counters.EdgesDropped += p.windows.add(last) + p.prompt.add(last)
		if n.Raw <= last.Raw {
			p.nodes = queue{}
		}
	}
	p.nodes.push(n)
}

// Carry returns what raw read when realtime read unix, and the half width of it.
// Read must be called between the moment at which the caller got unix and Carry:
// only then is it seen that realtime was set back in between. ok is false where
// the answer is not known; the counters say why.
func (p *Pairs) Carry(unix int64) (raw int64, width uint32, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, ok := p.nodes.last(); !ok || last.Realtime < unix {
		p.counters.StampFuture++
		return 0, 0, false
	}
	found, ok := p.find(unix)
	if !ok {
		return 0, 0, false
	}
	raw, half := found.carry(unix)
	return raw, uint32(min(half, math.MaxUint32)), true
}

// StampOf returns a stamp of kind at unix, a reading of the machine's realtime in ns,
// carried over to raw as Carry does. Where that is not known, its kind is KindNone.
func (p *Pairs) StampOf(unix int64, kind uint8) stamp.Stamp {
	unix = p.clock.Kernel(unix)
	raw, width, ok := p.Carry(unix)
	if !ok {
		return stamp.Stamp{}
	}
	return stamp.Stamp{Raw: raw, Unix: unix, Kind: kind, Width: width}
}

// carry goes back from the reading to unix, which lies before it.
func (n *node) carry(unix int64) (raw, width int64) {
	age := n.Realtime - unix
	elapsed := float64(age) / (1 + n.rate)
	unseen := n.slack
	if moved := math.Ceil(n.shift * elapsed); moved < float64(unseen) {
		unseen = int64(moved)
	}
	return n.Raw - int64(math.Round(elapsed)), n.Width + unseen + 1
}

// find returns the reading that follows unix, and that alone can.
func (p *Pairs) find(unix int64) (found *node, ok bool) {
	for i := range p.nodes.n - 1 {
		n, before := p.nodes.at(i), p.nodes.at(i+1)
		if found != nil && (p.nodes.unsure == 0 || n.peak < unix) {
			break // no earlier time can have read unix
		}
		switch {
		case n.unsure:
			if n.touches(before, unix) {
				p.counters.StampEvent++
				return nil, false
			}
		case before.Realtime < unix && unix <= n.Realtime:
			if found != nil {
				p.counters.StampTwice++
				return nil, false
			}
			found = n
		}
	}
	if found == nil {
		p.counters.StampOld++
	}
	return found, found != nil
}

// touches says whether realtime may have read unix between before and n, where an
// event lies between: it ran on from before, or up to n, for as long as raw did, or
// from one to the other.
func (n *node) touches(before *node, unix int64) bool {
	reach := n.reach(before)
	after := func(from, until int64) bool { return from < unix && unix <= until }
	return after(before.Realtime, before.Realtime+reach) || after(n.Realtime-reach, n.Realtime) ||
		after(before.Realtime, n.Realtime)
}

// reach is how far realtime can have come from before to n without a step.
func (n *node) reach(before *node) int64 {
	took := n.Raw - before.Raw
	return took + int64(MaxRate*float64(took)) + int64(math.Abs(n.rate)*float64(took)) + n.Width + before.Width
}

// Counters returns the counts so far.
func (p *Pairs) Counters() PairCounters {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counters
}

// Edges returns what the windows of two seconds that ended since the last call
// say of both clocks: the edges from the clock named raw to the one named
// realtime, in their order. It is called at least every minute; what nobody
// fetches is dropped and counted.
func (p *Pairs) Edges(raw, realtime string) []model.ClockEdge {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.windows.take(raw, realtime)
}

// PromptEvery lets Prompt return edges, one in d.
func (p *Pairs) PromptEvery(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prompt.every = d.Nanoseconds()
}

// Prompt returns edges as Edges does, of the last two seconds each, before these have
// ended.
func (p *Pairs) Prompt(raw, realtime string) []model.ClockEdge {
	p.mu.Lock()
	defer p.mu.Unlock()
	edges := p.prompt.take(raw, realtime)
	for i := range edges {
		edges[i].Prompt = true
	}
	return edges
}

func (w *windows) take(raw, realtime string) []model.ClockEdge {
	edges := w.done
	w.done = nil
	for i := range edges {
		edges[i].Src, edges[i].Dst = raw, realtime
	}
	return edges
}

func magnitude(x int64) int64 { return max(x, -x) }

// Realtime returns what realtime read when raw read raw, as the last reading has
// it: for display, without a bound.
func (p *Pairs) Realtime(raw int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, _ := p.nodes.last()
	return raw + last.offset() + int64(math.Round(p.rate*float64(raw-last.Raw)))
}
