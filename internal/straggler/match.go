package straggler

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// party is one member's operation in a meeting under construction.
type party struct {
	at *rankView
	op *model.Op
	// pos is the operation's place among its rank's communication in the step.
	pos int
}

// gathering is a meeting under construction.
type gathering struct {
	key     model.RendezvousKey
	kind    model.OpKind
	parties []party
}

// match joins the communication operations of all ranks into meetings and
// returns how many operations found no partner.
func (j *job) match(views []*rankView) (met []*gathering, unmatched int) {
	unmatched = resyncOrdinals(views)
	found := gatherings{}
	for _, v := range views {
		for i := range v.comms {
			op := &v.comms[i]
			key, ok := model.Rendezvous(&v.rank, op)
			if !ok {
				unmatched++
				continue
			}
			if !found.of(key, op).join(party{at: v, op: op, pos: i}) {
				j.e.stats.DuplicateOps++
			}
		}
	}
	settled, twice := found.settled()
	j.e.stats.DuplicateOps += int64(twice)
	for _, g := range settled {
		if len(g.parties) < 2 || !g.consistent() {
			unmatched += len(g.parties)
			continue
		}
		met = append(met, g)
	}
	slices.SortFunc(met, func(a, b *gathering) int {
		return cmp.Or(cmp.Compare(a.parties[0].pos, b.parties[0].pos), slices.Compare(a.key.Bytes(), b.key.Bytes()),
			cmp.Compare(a.parties[0].at.index, b.parties[0].at.index))
	})
	return met, unmatched
}

// gatherings are meetings under construction, by key and by the members that
// their communicator has. Groups without a common member may bear one name, as
// PyTorch's split groups do; the digest of their ranks tells them apart.
type gatherings map[model.RendezvousKey]map[string]*gathering

func (gs gatherings) of(key model.RendezvousKey, op *model.Op) *gathering {
	if gs[key] == nil {
		gs[key] = map[string]*gathering{}
	}
	g := gs[key][op.Comm.Digest]
	if g == nil {
		g = &gathering{key: key, kind: op.Kind}
		gs[key][op.Comm.Digest] = g
	}
	return g
}

// settled returns all meetings. Members that do not know their group's ranks
// belong to the only group there is, unless they are in it already; among several
// groups they stay apart.
func (gs gatherings) settled() (out []*gathering, twice int) {
	for _, byDigest := range gs {
		if unknown := byDigest[""]; unknown != nil && len(byDigest) == 2 {
			delete(byDigest, "")
			for _, only := range byDigest {
				twice += only.absorb(unknown)
			}
		}
		for _, g := range byDigest {
			out = append(out, g)
		}
	}
	return out, twice
}

// absorb takes the parties of o whose ranks are not in g, and counts the others.
func (g *gathering) absorb(o *gathering) (twice int) {
	in := map[*rankView]bool{}
	for _, p := range g.parties {
		in[p.at] = true
	}
	for _, p := range o.parties {
		if in[p.at] {
			twice++
			continue
		}
		g.parties = append(g.parties, p)
	}
	slices.SortFunc(g.parties, func(a, b party) int { return cmp.Compare(a.at.index, b.at.index) })
	return twice
}

// join adds a party; false where its rank is in already. Parties come rank by rank.
func (g *gathering) join(p party) bool {
	if n := len(g.parties); n > 0 && g.parties[n-1].at == p.at {
		return false
	}
	g.parties = append(g.parties, p)
	return true
}

// size returns how many members the communicator has, 0 where unknown.
func (g *gathering) size() int {
	if g.kind != model.KindCollective {
		return 2
	}
	var n int64
	for _, p := range g.parties {
		n = max(n, p.op.Comm.Size.Or(0))
	}
	return int(n)
}

func (g *gathering) name() string {
	if g.kind != model.KindCollective {
		return model.SendRecv
	}
	return g.parties[0].op.Collective.Name
}

func (g *gathering) bytes() int64 { return g.parties[0].op.Collective.Bytes.Or(0) }

// waiters says who waits for whom: every member for the last, or only some for
// one.
type waiters int

const (
	waitNobody    waiters = iota // not decidable from what was recorded
	waitAll                      // everyone for the last arriver
	waitForRoot                  // leaves of a broadcast for its root
	waitForSender                // the receiver for the sender
)

// waiters returns the meeting's rule. An all_to_all is taken to make everyone
// wait: each member needs every other's part, save where splits are empty. That
// serves the attribution of waits, which is an estimate; as a constraint on
// clocks it is not used.
func (g *gathering) waiters() waiters {
	if g.kind != model.KindCollective {
		return waitForSender
	}
	switch g.name() {
	case model.AllReduce, model.AllGather, model.ReduceScatter, model.Barrier, model.AllToAll:
		return waitAll
	case model.Broadcast:
		if g.root() >= 0 {
			return waitForRoot
		}
	}
	return waitNobody
}

// root returns the index of the root among the parties, or -1.
func (g *gathering) root() int {
	if g.kind != model.KindCollective {
		return slices.IndexFunc(g.parties, func(p party) bool { return p.op.Kind == model.KindSend })
	}
	return slices.IndexFunc(g.parties, func(p party) bool {
		root := p.op.Collective.Root
		return root.OK && p.op.Comm.Rank.OK && p.op.Comm.Rank.V == root.V
	})
}

// meeting is a gathering on the timeline.
type meeting struct {
	*gathering
	rule    waiters
	enter   []int64 // of each party, corrected Unix ns
	exit    []int64
	last    int   // party that the others wait for
	arrived int64 // its arrival
	// attributed: the waits are owed to parties[last].
	attributed bool
}

func (j *job) place(g *gathering) *meeting {
	m := &meeting{gathering: g, rule: g.waiters(), enter: make([]int64, len(g.parties)), exit: make([]int64, len(g.parties))}
	for i, p := range g.parties {
		m.enter[i] = p.op.Start + p.at.shift(p.op)
		m.exit[i] = p.op.End + p.at.shift(p.op)
	}
	switch m.rule {
	case waitForRoot, waitForSender:
		m.last = g.root()
	default:
		m.last = argmax(m.enter)
	}
	m.arrived = m.enter[m.last]
	m.attributed = m.rule != waitNobody && g.comparable()
	return m
}

// wait returns how long party i waited for the last arriver.
func (m *meeting) wait(i int) time.Duration {
	if !m.attributed || i == m.last {
		return 0
	}
	return time.Duration(max(0, min(m.arrived, m.exit[i])-m.enter[i]))
}

// withdraw takes the attribution from incomplete meetings whose last seen member
// may have waited itself, for one who was not seen. A member that waits for
// nobody spends the transfer only: so it stays attributed where it left as fast
// as the last arrivers of complete meetings of this kind do, or in a small part
// of the time that the others waited for it.
func withdraw(meetings []*meeting) {
	stays := map[kindOfMeeting][]int64{}
	for _, m := range meetings {
		if m.complete() && !m.parties[m.last].op.EndInferred {
			stays[m.class()] = append(stays[m.class()], m.lastStay())
		}
	}
	for _, m := range meetings {
		if m.complete() {
			continue
		}
		usual := median(stays[m.class()])
		spread := float64(m.arrived - slices.Min(m.enter))
		if m.lastStay() > max(usual, int64(promptLeave*spread)) {
			m.attributed = false
		}
	}
}

// kindOfMeeting groups meetings whose transfers can be expected to last alike.
type kindOfMeeting struct {
	name, comm  string
	size, scale int
}

func (m *meeting) class() kindOfMeeting {
	return kindOfMeeting{m.name(), m.key.Comm, m.size(), bits.Len64(uint64(max(0, m.bytes())))}
}

// promptLeave is the share of the arrivals' spread within which a last arriver
// must leave to be believed the last although a member is missing.
const promptLeave = 0.25

// lastStay is how long the last arriver stayed.
func (m *meeting) lastStay() int64 { return m.exit[m.last] - m.enter[m.last] }

// complete reports whether every member is here; where the communicator's size
// is not known, it cannot be said, and is taken as yes.
func (g *gathering) complete() bool {
	size := g.size()
	return size == 0 || len(g.parties) >= size
}

// comparable reports whether the stamps of all parties stand on one timeline.
func (g *gathering) comparable() bool {
	first := g.parties[0]
	return !slices.ContainsFunc(g.parties[1:], func(p party) bool {
		a, b := first.at.clockOf(first.op), p.at.clockOf(p.op)
		oa, _ := first.at.clocks.Offset(a)
		ob, _ := p.at.clocks.Offset(b)
		return !first.at.clocks.Comparable(a, b) || oa.Conflict || ob.Conflict
	})
}

// consistent reports whether the parties did the same thing: a name or a size
// that differs tells that a number was shared by different collectives. Bytes
// are compared only where every member moves as many.
func (g *gathering) consistent() bool {
	if g.kind != model.KindCollective {
		return len(g.parties) == 2
	}
	if size := g.size(); size > 0 && len(g.parties) > size {
		return false
	}
	first := &g.parties[0].op.Collective
	return !slices.ContainsFunc(g.parties, func(p party) bool {
		c := &p.op.Collective
		return c.Name != first.Name ||
			(sameBytes(c.Name) && c.Bytes.OK && first.Bytes.OK && c.Bytes.V != first.Bytes.V)
	})
}

// sameBytes reports whether all members of the named collective move as many
// bytes. Gathers, scatters and exchanges may be uneven.
func sameBytes(name string) bool {
	return name == model.AllReduce || name == model.Broadcast || name == model.Reduce
}

func argmax(v []int64) int {
	best := 0
	for i := range v {
		if v[i] > v[best] {
			best = i
		}
	}
	return best
}
