// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"encoding/hex"
	"strconv"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// maxComms bounds the communicators that a node knows: eight ranks of some
// thousands each, as the largest mixture-of-experts jobs have.
const maxComms = 65536

// Node is what the ranks of one node share. It is not safe for concurrent use.
type Node struct {
	cfg    Config
	comms  map[uint64]*members
	epochs map[string]int64 // boot id to Unix ns less MONOTONIC_RAW
	links  linkTable

	commsOverflowed, bootsOverflowed int64

	boot func() string         // the host's boot
	pair func() ring.ClockPair // of its clocks, now
}

// members is what the local ranks together know of one communicator.
type members struct {
	size   int32
	global map[int32]int64 // by rank in the communicator, of local ranks
	// identity: as far as is known, ranks in it are global ranks.
	identity bool
	digest   string
}

// NewNode returns a node without ranks.
func NewNode(cfg Config) *Node {
	n := &Node{cfg: cfg, comms: map[uint64]*members{}, epochs: map[string]int64{}, boot: ring.BootID, pair: ring.NowPair}
	n.links.init()
	return n
}

// CommsOverflowed returns how many communicators found no room.
func (n *Node) CommsOverflowed() int64 { return n.commsOverflowed }

// BootsOverflowed returns how many rings were of a boot that found no room.
func (n *Node) BootsOverflowed() int64 { return n.bootsOverflowed }

// LinksOverflowed returns how many halves of proxy steps were forgotten before
// their other half came, and delays that found no room.
func (n *Node) LinksOverflowed() int64 { return n.links.overflowed }

// learn takes what a rank says of a communicator it is in.
func (n *Node) learn(c *ring.Comm, world int32, rank int64) {
	if c.Hash == 0 { // the entry of those that found no room
		return
	}
	m := n.comms[c.Hash]
	if m == nil {
		if len(n.comms) >= maxComms {
			n.commsOverflowed++
			return
		}
		m = &members{size: c.Ranks, global: map[int32]int64{}, identity: c.Ranks > 0 && c.Ranks == world}
		n.comms[c.Hash] = m
	}
	if c.Rank < 0 {
		return
	}
	m.global[c.Rank] = rank
	m.identity = m.identity && int64(c.Rank) == rank
	if m.digest == "" {
		m.digest = m.digestOf()
	}
}

// Detach forgets what only an ended rank said of communicators, so that a node
// can outlive any number of jobs.
func (n *Node) Detach(r *Rank) {
	for _, c := range r.comms {
		if c != nil {
			n.unlearn(&c.comm, r.global)
		}
	}
}

// unlearn takes back what a rank said of a communicator.
func (n *Node) unlearn(c *ring.Comm, rank int64) {
	m := n.comms[c.Hash]
	if m == nil {
		return
	}
	if g, ok := m.global[c.Rank]; ok && g == rank {
		delete(m.global, c.Rank)
	}
	if len(m.global) == 0 {
		delete(n.comms, c.Hash)
		n.links.forget(c.Hash)
	}
}

// digestOf is lockstep.comm.digest where all members are known. For a world
// communicator the id says as much, and hashing thousands of ranks costs.
func (m *members) digestOf() string {
	if m.identity || m.size <= 0 || len(m.global) < int(m.size) {
		return ""
	}
	ranks := make([]int64, m.size)
	for local, global := range m.global {
		if local >= m.size {
			return ""
		}
		ranks[local] = global
	}
	return model.RanksDigest(ranks)
}

// maxMembers bounds the members that are listed: as many ranks as an analysis holds.
const maxMembers = 1 << 17

// membersOf lists the global ranks of a communicator where all of them are known.
func (n *Node) membersOf(hash uint64) []int64 {
	m := n.comms[hash]
	if m == nil || m.size <= 0 || m.size > maxMembers || (!m.identity && len(m.global) < int(m.size)) {
		return nil
	}
	ranks := make([]int64, m.size)
	for local := range ranks {
		global, ok := m.global[int32(local)]
		switch {
		case ok:
			ranks[local] = global
		case m.identity:
			ranks[local] = int64(local)
		default:
			return nil
		}
	}
	return ranks
}

// globalRank returns the global rank of a communicator's member; unknown where
// it is not local and ranks are not those of the world.
func (n *Node) globalRank(hash uint64, local int32) model.Optional[int64] {
	m := n.comms[hash]
	if m == nil || local < 0 {
		return model.Optional[int64]{}
	}
	if g, ok := m.global[local]; ok {
		return model.Some(g)
	}
	if m.identity {
		return model.Some(int64(local))
	}
	return model.Optional[int64]{}
}

// maxBoots bounds the boots whose constant is kept: one's own, and those of rings
// that were copied from elsewhere.
const maxBoots = 64

// clockTolerance is how far a ring's clock pairs may be from the host's own: more
// than clocks are stepped by in a job's life, less than would mislead.
const clockTolerance = int64(time.Second)

// epoch returns Unix ns less MONOTONIC_RAW for a boot: one constant, so that all
// ranks of a node share one clock exactly. That of our own boot is read from the
// clocks themselves, since a ring holds a stranger's word; agrees says that the
// ring's pairs are no contradiction.
func (n *Node) epoch(boot string, pairs []ring.ClockPair) (e int64, agrees, ok bool) {
	said, told := closest(pairs)
	e, ok = n.epochs[boot]
	if !ok {
		switch {
		case boot != "" && boot == n.boot():
			said = epochOf(n.pair())
		case !told:
			return 0, true, false
		}
		e = said
		if len(n.epochs) < maxBoots {
			n.epochs[boot] = e
		} else {
			n.bootsOverflowed++
		}
		said, told = closest(pairs)
	}
	off := said - e
	return e, !told || (off <= clockTolerance && off >= -clockTolerance), true
}

// closest returns the constant of the closest reading of the clocks.
func closest(pairs []ring.ClockPair) (int64, bool) {
	if len(pairs) == 0 {
		return 0, false
	}
	best := pairs[0]
	for _, p := range pairs[1:] {
		if p.Width < best.Width {
			best = p
		}
	}
	return epochOf(best), true
}

func epochOf(p ring.ClockPair) int64 { return int64(p.Realtime - p.Raw) }

// hostClock names the clock of a node's ranks.
func hostClock(h *ring.Header) string {
	id := h.HostID
	if id == "" {
		id = h.HostName
	}
	return "host:" + id + "/" + h.BootID + "/raw"
}

func hashText(hash uint64) string {
	var b [8]byte
	for i := range b {
		b[i] = byte(hash >> (56 - 8*i))
	}
	return "0x" + hex.EncodeToString(b[:])
}

// identify returns who the rank is, as of now.
func (r *Rank) identify() model.Rank {
	h := &r.header
	out := model.Rank{
		JobID: firstOf(r.node.cfg.JobID, h.JobID, r.fallbackJob), Rank: r.global,
		HostName: h.HostName, HostID: h.HostID, ClockID: r.clock, ClockEpoch: model.Some(r.epoch), PID: model.Some(int64(h.PID)),
		LocalRank: known(h.LocalRank), WorldSize: known(r.world), HWID: r.gpuUUID(),
	}
	out.JobName = firstOf(r.node.cfg.JobName, h.JobName, out.JobID)
	w := model.World{Launcher: []string{out.JobID, h.RunID}, Restart: int64(max(h.Restart, 0))}
	if r.life != 0 {
		w.CommHash = hashText(r.life)
	}
	out.Incarnation = model.Incarnation(w)
	return out
}

func known(v int32) model.Optional[int64] {
	if v < 0 {
		return model.Optional[int64]{}
	}
	return model.Some(int64(v))
}

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// local returns the global rank of a communicator's member that is on this node.
func (n *Node) local(hash uint64, rank int32) (int64, bool) {
	m := n.comms[hash]
	if m == nil {
		return 0, false
	}
	g, ok := m.global[rank]
	return g, ok
}
