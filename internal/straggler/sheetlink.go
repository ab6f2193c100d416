// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math/bits"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// linkDrawer gathers the transfers of a step by link and by group.
type linkDrawer struct {
	links []judge.Link
	at    map[linkKey]int
	sent  map[sentKey]int
	loose []uint64 // by link, its class whatever the roles
	count map[uint64]int
	forms []int32 // links, by form of the sender
	// Scratch of one group.
	exposed []int64
	hosts   map[string]bool
}

// linkKey tells groups apart, and what they do.
type linkKey struct {
	src, dst         int64
	comm, digest, op string
	class            uint64
}

// sentKey tells links of messages apart.
type sentKey struct {
	src, dst int64
	class    uint64
}

// draw returns the step's links: the messages by sender and receiver, the groups by
// what they do, and the senders whose waits on the wire were recorded.
func (d *linkDrawer) draw(rec *record, views []*rankView, meetings []*meeting) []judge.Link {
	d.links, d.loose = d.links[:0], d.loose[:0]
	if d.at == nil {
		d.at, d.sent, d.count = map[linkKey]int{}, map[sentKey]int{}, map[uint64]int{}
		d.hosts = map[string]bool{}
	}
	clear(d.at)
	clear(d.sent)
	clear(d.count)
	for k, m := range meetings {
		if !m.attributed {
			continue
		}
		switch m.rule {
		case waitAll:
			d.group(m, rec.meets[k])
		case waitForSender:
			d.message(m, rec)
		}
	}
	d.classify()
	d.wires(rec, views)
	return d.links
}

// message adds the transfer of one message: what the receiver stayed after both had
// come. Where the waits on its wire were recorded these tell more.
func (d *linkDrawer) message(m *meeting, rec *record) {
	src, dst := &m.parties[m.last], &m.parties[1-m.last]
	if rec.ranks[src.at.index].wired || dst.op.inferred {
		return
	}
	own := max(0, m.exit[1-m.last]-max(m.arrived, m.enter[1-m.last]))
	bytes := max(m.bytes(), src.op.carried, dst.op.carried)
	size := uint64(bits.Len64(uint64(max(0, bytes)))) // messages may carry packed sequences
	k := sentKey{src.at.rank.Rank, dst.at.rank.Rank, mix(uint64(src.at.role), uint64(dst.at.role), size)}
	guess := d.guess(src.op.form)
	i, ok := int(*guess), true
	if i >= len(d.links) || (sentKey{d.links[i].Src, d.links[i].Dst, d.links[i].Class}) != k {
		i, ok = d.sent[k]
	}
	if !ok {
		near := uint64(0)
		if src.at.rank.HostName == dst.at.rank.HostName {
			near = 1
		}
		i = d.begin(judge.Link{Src: k.src, Dst: k.dst, Op: m.name(), Class: k.class}, mix(1, near, size))
		d.sent[k] = i
	}
	*guess = int32(i)
	d.add(i, own, bytes)
}

// guess returns the place of the link over which a message of the form went last.
func (d *linkDrawer) guess(form *commForm) *int32 {
	for int(form.id) >= len(d.forms) {
		d.forms = append(d.forms, 0)
	}
	return &d.forms[form.id]
}

// group adds the exposed transfer of a meeting: the median over its members.
func (d *linkDrawer) group(m *meeting, mr *meetingRecord) {
	if len(m.parties) == 2 && m.size() > 2 {
		return
	}
	d.exposed = d.exposed[:0]
	clear(d.hosts)
	wired, roles := 0, uint64(0)
	for i := range m.parties {
		p := &m.parties[i]
		if mr.members[i].wire.known {
			wired++
		}
		if !p.op.inferred {
			d.exposed = append(d.exposed, max(0, m.exposed[i]))
		}
		roles += mix(uint64(p.at.role), 0, 0)
		if i == 0 || p.at.rank.HostName != m.parties[i-1].at.rank.HostName {
			d.hosts[p.at.rank.HostName] = true
		}
	}
	if len(d.exposed) == 0 || 2*wired > len(m.parties) {
		return
	}
	scale := uint64(bits.Len64(uint64(max(0, m.bytes()))))
	does := mix(hashText(m.name()), uint64(m.size()), scale)
	k := linkKey{src: -1, dst: -1, comm: m.parties[0].op.form.comm, digest: m.digest, op: m.name(), class: mix(does, roles, 2)}
	at, ok := d.at[k]
	if !ok {
		at = d.begin(judge.Link{Src: k.src, Dst: k.dst, Comm: k.comm, Digest: k.digest, Members: mr.ranks, Op: k.op, Class: k.class}, mix(does, uint64(len(d.hosts)), 3))
		d.at[k] = at
	}
	slices.Sort(d.exposed)
	d.add(at, stats.MedianMidpoint(d.exposed), m.bytes())
}

// begin adds a link that has carried nothing yet.
func (d *linkDrawer) begin(l judge.Link, loose uint64) int {
	d.links, d.loose = append(d.links, l), append(d.loose, loose)
	d.count[l.Class]++
	return len(d.links) - 1
}

func (d *linkDrawer) add(i int, own, bytes int64) {
	l := &d.links[i]
	l.N++
	l.Own += float32(seconds(own))
	l.Bytes += float64(max(0, bytes))
}

// minAlike is how many links of a class there must be to compare them: two only show
// that they differ.
const minAlike = 3

// classify puts links whose roles are shared by too few into the class of those that
// carry as much, whatever their roles: a transfer depends on nothing else.
func (d *linkDrawer) classify() {
	for i := range d.links {
		if l := &d.links[i]; d.count[l.Class] < minAlike {
			l.Class = d.loose[i]
		}
	}
}

// wires adds the ranks that were compared by their waits on the wire.
func (d *linkDrawer) wires(rec *record, views []*rankView) {
	from := len(d.links)
	for i := range rec.ranks {
		r := &rec.ranks[i]
		if !r.wired {
			continue
		}
		d.links = append(d.links, judge.Link{
			Src: views[i].rank.Rank, Dst: -1, Class: mix(uint64(r.role), 4, 0), Own: float32(seconds(r.transfer)),
			Given: true, Excess: float32(seconds(r.wire)),
		})
	}
	d.sides(rec, from)
}

// sides fills who is on the other side of the links, and what they carried: those of
// the operation with the largest excess.
func (d *linkDrawer) sides(rec *record, from int) {
	if from == len(d.links) {
		return
	}
	place := make([]int, len(rec.ranks))
	at := from
	for i := range rec.ranks {
		place[i] = -1
		if rec.ranks[i].wired {
			place[i] = at
			at++
		}
	}
	most := make([]int64, len(d.links)-from)
	for _, mr := range rec.meets {
		for i := range mr.members {
			m := &mr.members[i]
			if !m.wire.known || place[m.rank] < 0 {
				continue
			}
			l, x := &d.links[place[m.rank]], &most[place[m.rank]-from]
			if l.N++; l.N == 1 || m.wire.excess > *x {
				*x = m.wire.excess
				l.Dst, l.Op = m.wire.peer, mr.name
			}
		}
	}
}

// mix hashes three numbers into one.
func mix(a, b, c uint64) uint64 {
	const odd = 0x9e3779b97f4a7c15
	h := a*odd ^ bits.RotateLeft64(b*odd, 23) ^ bits.RotateLeft64(c*odd, 47)
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}

func hashText(s string) uint64 { return uint64(hashRole(s)) }
