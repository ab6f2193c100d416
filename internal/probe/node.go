// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-otel/lockstep/internal/mesh"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/netstamp"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// Outcome is what one window says.
type Outcome struct {
	// Until is the window's end on REALTIME, Reading what RAW read then.
	Until   time.Time
	Reading int64
	// Edges are between this node's clocks and those of its peers, and between its
	// clocks among each other.
	Edges []model.ClockEdge
	Paths []PathStats
	Trips []TripStats
	// Neighbours is how many end points are probed.
	Neighbours int
	// Counters are what was counted since the node began, by reason.
	Counters map[string]int64
	// Refused are some addresses from which came in this window what a counter refused,
	// by the counter's name.
	Refused map[string][]netip.Addr
}

// TimeOf is when this node's RAW had a reading, as REALTIME has it now.
func (o *Outcome) TimeOf(reading int64) time.Time {
	return o.Until.Add(time.Duration(reading - o.Reading))
}

// maxPairs is how many pairs a second a node sends at most, against settings that
// no host could follow.
const maxPairs = 50_000

// Node is one host of the probe mesh: its end points answer and probe. It is safe
// for concurrent use.
type Node struct {
	cfg     Config
	count   counts
	lineage lineage

	pairs    *netstamp.Pairs
	ends     []*endpoint
	schedule schedule
	pacer    pacer

	members atomic.Pointer[map[netip.Addr]bool] // addresses

	clocks  *clocks
	targets map[targetKey]*target
	retired map[string]int64 // counters of sessions that are over

	cancel  context.CancelFunc
	running sync.WaitGroup // all goroutines
	update  chan []mesh.Member
}

// endpoint is one local address.
type endpoint struct {
	self    mesh.Member
	name    string // of the node, as the list of members has it
	clock   string
	answers *reflecting
	sockets []*socket
}

type targetKey struct {
	local netip.AddrPort
	peer  mesh.Member
}

// target is a neighbour of one of our end points.
type target struct {
	sessions []*session // by path
	sockets  []*socket
	next     int // path whose turn it is; the pacer's
}

// New returns a node that does nothing yet.
func New(cfg Config) (*Node, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("make probe node: %w", err)
	}
	return &Node{cfg: cfg, lineage: newLineage(), targets: map[targetKey]*target{}, retired: map[string]int64{}, update: make(chan []mesh.Member), pacer: pacer{host: cfg.Host}}, nil
}

// Start opens the sockets and begins to answer and to probe.
func (n *Node) Start() error {
	if n.cancel != nil {
		return errors.New("start probe node: got a second call")
	}
	n.pairs = netstamp.NewPairs(n.cfg.Clock)
	if n.cfg.Pairs != nil {
		n.pairs.PromptEvery(n.cfg.PairInterval)
	}
	if err := n.listenAll(); err != nil {
		return errors.Join(fmt.Errorf("start probe node: %w", err), n.closeSockets())
	}
	for _, e := range n.ends {
		local := e.self.Addr
		if why := e.answers.conn.Fallback(); why != "" {
			n.cfg.Warn(fmt.Errorf("stamp packets of %v: %s", local, why))
		}
	}
	n.clocks = newClocks(&n.cfg, &n.count)
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	n.running.Go(func() { n.pairs.Run(ctx) })
	for _, e := range n.ends {
		n.serve(e.answers.conn, e.answers)
		for _, s := range e.sockets {
			n.serve(s.conn, s)
		}
	}
	n.running.Go(func() { n.watch(ctx) })
	n.running.Go(func() { n.run(ctx) })
	return nil
}

// Close stops probing and answering, and waits until nothing of the node runs.
// Emit is not called afterwards.
func (n *Node) Close() error {
	if n.cancel == nil {
		return nil
	}
	n.cancel()
	err := n.closeSockets()
	n.running.Wait()
	return err
}

func (n *Node) closeSockets() error {
	var errs []error
	for _, e := range n.ends {
		errs = append(errs, e.close())
	}
	return errors.Join(errs...)
}

func (e *endpoint) close() error {
	errs := []error{e.answers.conn.Close()}
	for _, s := range e.sockets {
		errs = append(errs, s.conn.Close())
	}
	return errors.Join(errs...)
}

func (n *Node) serve(c netstamp.PacketConn, h netstamp.Handler) {
	n.running.Go(func() {
		if err := c.Run(h); err != nil {
			n.cfg.Warn(fmt.Errorf("serve end point: %w", err))
		}
	})
}

// listenAll opens the sockets of all end points, first those that answer: the ports
// of paths are taken where they are free.
func (n *Node) listenAll() error {
	for _, local := range n.cfg.Locals {
		e, err := n.listen(local)
		if err != nil {
			return err
		}
		n.ends = append(n.ends, e)
	}
	for _, e := range n.ends {
		if err := n.openPaths(e); err != nil {
			return err
		}
	}
	return nil
}

// listen opens the socket on which an end point answers.
func (n *Node) listen(local netip.AddrPort) (*endpoint, error) {
	conn, err := n.socket(local)
	if err != nil {
		return nil, err
	}
	e := &endpoint{self: mesh.Member{Node: n.cfg.NodeID, Addr: local}, clock: n.cfg.rawClock()}
	e.answers = &reflecting{conn: conn, clock: n.cfg.Clock, count: &n.count}
	e.answers.reflector, err = stamp.NewReflector(stamp.ReflectorConfig{
		Key: n.cfg.Key, Stateful: true, ClockID: e.clock, Mark: n.lineage.mark(local), Peer: n.isMember,
		// Every peer may probe as fast as we do, with room for rounds that coincide.
		Rate: max(stamp.DefaultRate, int(4*n.cfg.Rate)),
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return e, nil
}

// openPaths opens the sockets from which an end point probes.
func (n *Node) openPaths(e *endpoint) error {
	for path := range n.cfg.paths() {
		conn, err := n.pathSocket(e.self.Addr, path)
		if err != nil {
			return err
		}
		e.sockets = append(e.sockets, &socket{
			conn: conn, path: path, clock: n.cfg.Clock, count: &n.count, sessions: map[netip.AddrPort]*session{},
		})
	}
	return nil
}

func (n *Node) socket(local netip.AddrPort) (netstamp.PacketConn, error) {
	c := netstamp.Config{Addr: local, Pairs: n.pairs, Hardware: n.cfg.Hardware}
	if n.cfg.Hardware {
		c.Device = deviceOf(local.Addr())
	}
	return n.cfg.Host.Listen(c)
}

// deviceOf is the network device that has an address; empty where none has.
func deviceOf(addr netip.Addr) string {
	devices, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, d := range devices {
		addrs, err := d.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr() == addr.WithZone("") {
				return d.Name
			}
		}
	}
	return ""
}

// pathSocket takes the ports after the one that answers, so that a path is the
// same route after a restart; where they are taken, any.
func (n *Node) pathSocket(local netip.AddrPort, path int) (netstamp.PacketConn, error) {
	if port := int(local.Port()) + 1 + path; port < 1<<16 {
		if c, err := n.socket(netip.AddrPortFrom(local.Addr(), uint16(port))); err == nil {
			return c, nil
		}
	}
	return n.socket(netip.AddrPortFrom(local.Addr(), 0))
}

// isMember reports whether an address is in the list of members: nobody else is
// answered, and nobody before there is a list.
func (n *Node) isMember(a netip.Addr) bool {
	known := n.members.Load()
	return known != nil && (*known)[plain(a)]
}

// plain is an address without what only this host knows of it.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// setMembers makes the node probe its neighbours among the members. Sessions with
// those that stay go on.
func (n *Node) setMembers(members []mesh.Member) {
	known := make(map[netip.Addr]bool, len(members))
	for _, m := range members {
		known[plain(m.Addr.Addr())] = true
	}
	n.members.Store(&known)
	wanted := map[targetKey]*endpoint{}
	for _, l := range n.links(members) {
		for _, e := range n.ends {
			if e.self.Addr == l.Local.Addr {
				wanted[targetKey{e.self.Addr, l.Peer}] = e
			}
		}
	}
	for key, t := range n.targets {
		if wanted[key] == nil {
			n.retire(t)
			delete(n.targets, key)
		}
	}
	for key, e := range wanted {
		if n.targets[key] != nil {
			continue
		}
		t, err := n.target(e, key.peer)
		if err != nil {
			n.cfg.Warn(fmt.Errorf("probe %v: %w", key.peer, err))
			continue
		}
		n.targets[key] = t
	}
	n.reschedule()
}

func (n *Node) reschedule() {
	all := make([]*target, 0, len(n.targets))
	for _, t := range n.targets {
		all = append(all, t)
	}
	n.schedule.set(all)
	pairs := float64(len(all)) * n.cfg.Rate / 2
	if pairs > maxPairs {
		n.cfg.Warn(fmt.Errorf("pace %d neighbours: got %.0f pairs/s; want at most %d, and keep to that", len(all), pairs, maxPairs))
		pairs = maxPairs
	}
	n.pacer.pace(pairs, n.probe)
}

func (n *Node) target(e *endpoint, peer mesh.Member) (*target, error) {
	t := &target{sockets: e.sockets, next: rand.IntN(len(e.sockets))}
	for _, k := range e.sockets {
		sender, err := stamp.NewSender(stamp.SenderConfig{
			Key: n.cfg.Key, SSID: uint16(1 + rand.IntN(1<<16-1)), Path: uint8(k.path), ClockID: e.clock, Mark: n.lineage.mark(peer.Addr),
			Pending: n.cfg.pending(), Timeout: answerWithin, Patience: n.cfg.patience(),
		})
		if err != nil {
			return nil, err
		}
		t.sessions = append(t.sessions, &session{
			from: endPoint(mesh.Member{Node: e.name, Addr: e.self.Addr}), peer: peer, path: k.path, ownClock: e.clock,
			sender: sender, count: &n.count, byClock: map[string]*heard{},
		})
	}
	for i, k := range t.sockets {
		k.open(t.sessions[i])
	}
	return t, nil
}

func (n *Node) retire(t *target) {
	for i, k := range t.sockets {
		k.close(t.sessions[i])
		addCounters(n.retired, "sender.", t.sessions[i].sender.Counters())
	}
}

// probe sends the next pair of packets; the pacer calls it.
func (n *Node) probe() {
	t := n.schedule.due()
	if t == nil {
		return
	}
	t.sockets[t.next].probe(t.sessions[t.next])
	t.next = (t.next + 1) % len(t.sessions)
}

// run ends windows until ctx ends.
func (n *Node) run(ctx context.Context) {
	defer n.pacer.stop()
	ends := boundary{window: int64(n.cfg.Window)}
	last := n.pairs.Read().Raw
	expired := last
	var known []mesh.Member
	ticker := time.NewTicker(min(20*time.Millisecond, n.cfg.Window/10))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case known = <-n.update:
			n.setMembers(known)
		case <-ticker.C:
			p := n.pairs.Read()
			if p.Raw < last {
				ends.next, expired = 0, p.Raw
				n.beginAnew(known)
			}
			last = p.Raw
			n.tellPairs(p)
			if ends.passed(p.Raw, p.Realtime) {
				n.endWindow(p)
			}
			if p.Raw-expired >= int64(expireEvery) {
				expired = p.Raw
				n.expire(p.Raw)
			}
		}
	}
}

// beginAnew forgets what was measured by readings of RAW that come again, since it went
// back: a virtual machine was restored. Nothing of that can be compared, and a reply would
// be waited for until RAW reads what it did.
func (n *Node) beginAnew(known []mesh.Member) {
	for key, t := range n.targets {
		n.retire(t)
		delete(n.targets, key)
	}
	n.clocks.beginAnew()
	n.setMembers(known)
}

// expireEvery is how often sessions give up what has waited for too long: a window
// may be longer than what they can remember.
const expireEvery = answerWithin / 2

func (n *Node) expire(now int64) {
	for _, t := range n.targets {
		for i, k := range t.sockets {
			k.mu.Lock()
			t.sessions[i].expire(now)
			k.mu.Unlock()
		}
	}
}

// endWindow judges what has come. The stamps of replies that are missing yet come
// with later ones, and count then.
func (n *Node) endWindow(now netstamp.Pair) {
	var paths []pathTrips
	for _, t := range n.targets {
		for i, k := range t.sockets {
			k.mu.Lock()
			paths = append(paths, t.sessions[i].take(now.Raw)...)
			k.mu.Unlock()
		}
	}
	out := Outcome{Until: time.Unix(0, now.Realtime), Reading: now.Raw, Neighbours: len(n.targets)}
	out.Edges, out.Paths, out.Trips = n.clocks.judge(now.Raw, paths)
	out.Edges = n.withhold(append(out.Edges, n.pairs.Edges(n.cfg.rawClock(), n.cfg.realtimeClock())...))
	out.Counters = n.counters()
	out.Refused = n.count.culprits.take() // after the counters, so that none is told later
	n.cfg.Emit(out)
}

// tellPairs hands on what is new of this host's clocks.
func (n *Node) tellPairs(now netstamp.Pair) {
	if n.cfg.Pairs == nil {
		return
	}
	if edges := n.withhold(n.pairs.Prompt(n.cfg.rawClock(), n.cfg.realtimeClock())); len(edges) > 0 {
		n.cfg.Pairs(Outcome{Until: time.Unix(0, now.Realtime), Reading: now.Raw, Edges: edges})
	}
}

// withhold keeps back the edges of a node whose clocks another one says are its own.
func (n *Node) withhold(edges []model.ClockEdge) []model.ClockEdge {
	if !n.clocks.disputed() {
		return edges
	}
	n.count.withheld.Add(int64(len(edges)))
	return nil
}
