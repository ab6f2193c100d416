// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/clock/pair"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

const (
	// idleWindows is after how many windows without a word a clock is forgotten.
	idleWindows = 16
	// waitWindows is for how long messages wait for an estimate of the clocks, which
	// is the later the fewer there are.
	waitWindows = 16
	// keptEstimates cover what waits, also where windows were split.
	keptEstimates = 2 * waitWindows
)

// clockPair names a clock of ours and one of a peer's.
type clockPair struct{ own, peer string }

// peerClock is a clock of somebody else, as seen from one of ours.
type peerClock struct {
	estimator *pair.Estimator
	estimates []pair.Estimate // the last ones that are final and bounded on both sides
	heard     int64           // number of the last window with evidence
	worst     uint8           // kind of stamps
	least     uint8           // kind of stamps that count
	record    record
}

// pathKey names one path to one clock.
type pathKey struct {
	from, to string
	path     int
	clocks   clockPair
}

// clocks are the estimates of a node. The goroutine that ends windows owns them.
type clocks struct {
	cfg    *Config
	count  *counts
	owners *owners
	pairs  *bounded.Map[clockPair, *peerClock] // the pair without evidence for longest first
	waits  map[pathKey]*waiting
	window int64           // number of the one that is being judged
	warned map[string]bool // contested hosts that the log tells of
	copies int64           // requests of copies of this node, up to the window before
}

func newClocks(cfg *Config, count *counts) *clocks {
	return &clocks{
		cfg: cfg, count: count, owners: newOwners(cfg.host()),
		pairs: bounded.NewMap(bounded.MapConfig[clockPair, *peerClock]{Entries: cfg.MaxClocks, Order: bounded.ByUse}),
		waits: map[pathKey]*waiting{}, warned: map[string]bool{},
	}
}

// disputed reports whether what this node says of its clocks is withheld.
func (c *clocks) disputed() bool { return c.owners.disputed() }

// pathTrips is what one path to a peer had in a window.
type pathTrips struct {
	pathKey
	node  string // the peer's
	at    netip.Addr
	trips []trip // of one clock of the peer's, ordered by sending
	// crossed are trips that contradict themselves, which are not in trips; answered
	// are all.
	crossed  contradictions
	answered int64
	// sent are the requests that were answered or given up.
	sent, unanswered, lostOut, lostBack int64
}

// judge ends a window at a reading of our clock.
func (c *clocks) judge(end int64, paths []pathTrips) (edges []model.ClockEdge, stats []PathStats, trips []TripStats) {
	c.window++
	gathered := map[clockPair]*evidence{}
	heard := false
	for i := range paths { // all, before any counts: of what two claim, nothing does
		c.claim(&paths[i])
		heard = heard || paths[i].answered > 0
	}
	c.copied()
	for i := range paths {
		c.gather(&paths[i], gathered)
	}
	c.pairs.DeleteFunc(func(at clockPair, _ *peerClock) bool { return !c.owners.holds(at.peer) })
	var crossed []model.ClockEdge
	for at, p := range c.pairs.All() {
		edges = append(edges, p.judge(at, gathered[at], end)...)
		if e := gathered[at]; e != nil && e.crossed.n > 0 && p.record.wrong() {
			crossed = append(crossed, e.crossed.edge(at))
		}
	}
	said := map[pathKey]bool{}
	for i := range paths {
		p := &paths[i]
		said[p.pathKey] = true
		stats = append(stats, c.directions(p, end)...)
		trips = append(trips, p.tripStats())
	}
	for key := range c.waits {
		if !said[key] { // nothing new came, and what waits may be covered now
			stats = append(stats, c.directions(&pathTrips{pathKey: key}, end)...)
		}
	}
	c.forget()
	c.owners.endWindow(heard)
	sortOutcome(edges, stats)
	sortOutcome(crossed, nil)
	return append(edges, crossed...), stats, trips // behind those that they contradict
}

func sortOutcome(edges []model.ClockEdge, stats []PathStats) {
	slices.SortFunc(edges, func(a, b model.ClockEdge) int {
		return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst), cmp.Compare(a.At, b.At))
	})
	slices.SortFunc(stats, func(a, b PathStats) int {
		return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst), cmp.Compare(a.Path, b.Path))
	})
}

// gather adds what a path shows of the peer's clock, if the clock is the peer's.
func (c *clocks) gather(p *pathTrips, to map[clockPair]*evidence) {
	if p.clocks.peer == "" {
		return
	}
	if err := c.admit(p); err != nil {
		c.refuse(p, err)
		return
	}
	if to[p.clocks] == nil {
		to[p.clocks] = &evidence{}
	}
	to[p.clocks].contradict(p)
	out, back := to[p.clocks].add(p.trips, int64(c.cfg.Tolerance))
	c.count.purity(out)
	c.count.purity(back)
	w := c.waits[p.pathKey]
	if w == nil {
		w = &waiting{}
		c.waits[p.pathKey] = w
	}
	w.out = c.hold(w.out, single(p.trips, outLeg))
	w.back = c.hold(w.back, single(p.trips, backLeg))
}

func (e *evidence) contradict(p *pathTrips) {
	e.answered += p.answered
	e.crossed.n += p.crossed.n
	e.crossed.kept = append(e.crossed.kept, p.crossed.kept...)
}

// claim checks what the peer says whose clock it is.
func (c *clocks) claim(p *pathTrips) {
	if p.clocks.peer == "" {
		c.count.refuse(errBadClock, p.answered, p.at)
		return
	}
	err := c.owners.claim(p.clocks.peer, p.node, c.window)
	if err != nil {
		if errors.Is(err, errOwnClock) && stamped(p.trips) && c.owners.addRival(p.clocks.peer, p.node, c.window) {
			c.cfg.Warn(fmt.Errorf("check clock of node %q: it says that it is host %q, as we are: its measurements are left out until it is silent", p.node, c.cfg.HostID))
		}
		c.refuse(p, err)
	}
}

// copied looks whether a copy of this node was heard.
func (c *clocks) copied() {
	before := c.copies
	if c.copies = c.count.copies.Load(); c.copies > before && c.owners.heardCopy(c.window) {
		c.cfg.Warn(fmt.Errorf("check clock %s: another machine was resumed from the memory of this one, and bears its name: nothing is said of it until that one is silent", c.cfg.rawClock()))
	}
}

// stamped reports whether any trip bears stamps of the peer's clock: a reflector that
// only repeats what it is sent says our name, too, but knows no reading.
func stamped(trips []trip) bool {
	return slices.ContainsFunc(trips, func(t trip) bool { return t.out.ok || t.back.ok })
}

// refuse counts what came of a clock that is not the peer's: readings of
// nobody's clock are neither evidence nor delays.
func (c *clocks) refuse(p *pathTrips, err error) {
	c.count.refuse(err, p.answered, p.at)
	p.clocks.peer, p.trips, p.crossed = "", nil, contradictions{}
}

// admit checks that nobody else claims the clock, and makes an estimator where there
// is none.
func (c *clocks) admit(p *pathTrips) error {
	if c.owners.rivals.Has(p.node) {
		return errOwnClock
	}
	if !c.owners.holds(p.clocks.peer) {
		return c.contested(p.clocks.peer)
	}
	k, known := c.pairs.Get(p.clocks)
	if !known {
		if !c.pairs.Fits(p.clocks, nil) {
			return errTooManyClocks
		}
		cfg := pair.Config{Window: c.cfg.Window, Overlap: c.cfg.Window}
		if c.cfg.Record != nil {
			cfg.Record = c.cfg.Record(p.clocks.own, p.clocks.peer)
		}
		k = &peerClock{estimator: pair.New(cfg)}
		c.pairs.Set(p.clocks, k)
	}
	k.heard = c.window
	return nil
}

// contested says why a clock is nobody's, and warns, once while it lasts, where two
// nodes claim it.
func (c *clocks) contested(clock string) error {
	first, second := c.owners.claimants(clock)
	if second == "" {
		return errFormerClock
	}
	if !c.warned[clock] && len(c.warned) < c.cfg.MaxClocks {
		c.warned[clock] = true
		c.cfg.Warn(fmt.Errorf("check clock %s: nodes %q and %q both say that it is their host's: it is left out until one of them is silent", clock, first, second))
	}
	return errOtherOwner
}

func (c *clocks) hold(held, more []leg) []leg {
	room := max(0, maxTrips-len(held))
	if len(more) > room {
		c.count.tripsDropped.Add(int64(len(more) - room))
		more = more[:room]
	}
	return append(held, more...)
}

func (c *clocks) beginAnew() {
	c.pairs.Clear()
	clear(c.waits)
}

// judge ends a window of one pair of clocks; e is nil where nothing came.
func (p *peerClock) judge(at clockPair, e *evidence, end int64) (edges []model.ClockEdge) {
	if e != nil {
		if len(e.out)+len(e.back) > 0 {
			p.worst = e.settle()
			p.least = e.least
		}
		p.record.add(e.answered, e.crossed.n)
		for i := range e.out {
			p.estimator.Upper(e.out[i].ours, e.out[i].peer, e.out[i].width)
		}
		for i := range e.back {
			p.estimator.Lower(e.back[i].ours, e.back[i].peer, e.back[i].width)
		}
	}
	for _, est := range p.estimator.Close(end) {
		edges = append(edges, est.Edge(at.own, at.peer, model.EdgeProbe, stampName(p.worst)))
		if est.HasLower && est.HasUpper && !est.Provisional {
			p.estimates = append(p.estimates, est)
		}
	}
	if over := len(p.estimates) - keptEstimates; over > 0 {
		p.estimates = slices.Delete(p.estimates, 0, over)
	}
	return edges
}

func (c *clocks) forget() {
	c.pairs.DropOldest(func(_ clockPair, p *peerClock) bool { return c.window-p.heard >= idleWindows })
	maps.DeleteFunc(c.waits, func(_ pathKey, w *waiting) bool { return len(w.out) == 0 && len(w.back) == 0 })
	c.owners.forget(c.window - idleWindows)
	maps.DeleteFunc(c.warned, func(clock string, _ bool) bool {
		_, second := c.owners.claimants(clock)
		return second == ""
	})
}

// directions are the stats of both directions of a path.
func (c *clocks) directions(p *pathTrips, end int64) []PathStats {
	forth, back := single(p.trips, outLeg), single(p.trips, backLeg)
	out := PathStats{Src: p.from, Dst: p.to, Path: p.path, Stamps: usualStamps(forth), Lost: p.lostOut}
	ret := PathStats{Src: p.to, Dst: p.from, Path: p.path, Stamps: usualStamps(back), Lost: p.lostBack}
	out.Reordered = reordered(crossings(p.trips, outLeg, true))
	ret.Reordered = reordered(crossings(p.trips, backLeg, false))
	w := c.waits[p.pathKey]
	if w == nil {
		return []PathStats{out, ret}
	}
	since := end - waitWindows*int64(c.cfg.Window)
	var estimates []pair.Estimate
	var least uint8
	if k, known := c.pairs.Peek(p.clocks); known {
		estimates, least = k.estimates, k.least
	}
	w.out = out.correct(w.out, true, estimates, least, since)
	w.back = ret.correct(w.back, false, estimates, least, since)
	return []PathStats{out, ret}
}

func (s *PathStats) correct(legs []leg, outward bool, estimates []pair.Estimate, least uint8, since int64) (rest []leg) {
	if s.Stamps == "" {
		s.Stamps = usualStamps(legs)
	}
	var c corrected
	c, rest, s.Uncorrected = correct(legs, outward, estimates, least, since)
	s.Delays, s.Bound = c.delays, c.bound
	return rest
}

func (p *pathTrips) tripStats() TripStats {
	t := TripStats{
		Src: p.from, Dst: p.to, Path: p.path, Sent: p.sent, Unanswered: p.unanswered,
		Stamps: usualStamps(append(single(p.trips, outLeg), single(p.trips, backLeg)...)),
	}
	for i := range p.trips {
		if rt := p.trips[i].roundTrip; rt >= 0 {
			t.RoundTrips = append(t.RoundTrips, rt)
		}
	}
	return t
}

// usualStamps names the kind of most stamps.
func usualStamps(legs []leg) string {
	if len(legs) == 0 {
		return ""
	}
	var n [stamp.KindHardware + 1]int
	for i := range legs {
		n[legs[i].kind]++
	}
	best := 0
	for kind := range n {
		if n[kind] > n[best] {
			best = kind
		}
	}
	return stampName(uint8(best))
}
