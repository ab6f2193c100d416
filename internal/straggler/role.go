// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// role tells ranks apart that run different programs, such as the stages of a
// pipeline: only ranks of one role are compared. It is a hash of the rank's
// pipeline stage, or where that is not known of its place among those that messages
// connect it with, which is the stage; and of the sorts of collectives and messages
// (kind, name and group size) that it took part in with others lately. Neither their
// order counts, since what runs side by side begins in any order, nor how many there
// were: a span that was lost makes no other program.
type role uint64

// roleMemory is what a rank took part in lately.
type roleMemory struct {
	sorts   [maxSorts]sortSeen
	n       int
	streams []streamAt // of the last step
}

// streamAt is a stream and what number the table of streams had for it.
type streamAt struct {
	key streamKey
	id  int32
}

// guess returns the number that the i-th stream of a step most likely has.
func (m *roleMemory) guess(i int) int32 {
	if i < len(m.streams) {
		return m.streams[i].id
	}
	return 0
}

type sortSeen struct {
	sort uint64
	step int64
}

// A sort counts for roleSteps steps, so that losing the only span of its sort in one
// step changes nothing. More than maxSorts sorts are not told apart.
const (
	roleSteps = 4
	maxSorts  = 24
)

// saw notes that the rank took part in something in the step.
func (m *roleMemory) saw(sort uint64, step int64) {
	for i := range m.sorts[:m.n] {
		if m.sorts[i].sort == sort {
			m.sorts[i].step = step
			return
		}
	}
	if m.n == maxSorts {
		oldest := 0
		for i := range m.sorts {
			if m.sorts[i].step < m.sorts[oldest].step {
				oldest = i
			}
		}
		if m.sorts[oldest].step < step {
			m.sorts[oldest] = sortSeen{sort, step}
		}
		return
	}
	m.sorts[m.n] = sortSeen{sort, step}
	m.n++
}

// sum hashes what counts in the step. A sum does not depend on the order.
func (m *roleMemory) sum(step int64) (r role) {
	for _, s := range m.sorts[:m.n] {
		if s.step <= step && s.step > step-roleSteps {
			r += role(mix(s.sort, 5, 0))
		}
	}
	return r
}

// assignRoles gives every rank its role in this step.
func (j *job) assignRoles(step int64, views []*rankView, met []*gathering) {
	for _, g := range met {
		fresh := false
		for _, p := range g.parties {
			fresh = p.at.does(p.op) || fresh
		}
		if fresh && g.kind != model.KindCollective {
			j.pipes.join(g.parties[0].at.rank.Rank, g.parties[1].at.rank.Rank)
		}
	}
	for _, v := range views {
		m := j.does[v.rank.Rank]
		if m == nil {
			m = &roleMemory{}
			j.does[v.rank.Rank] = m
		}
		for _, s := range v.streams {
			m.saw(s.sort, step)
		}
		v.role = m.sum(step)
	}
	j.pipes.settle()
	for _, v := range views {
		if pp := v.rank.Parallel.PP; pp.OK {
			v.role += role(mix(uint64(pp.V), 6, 0))
		} else {
			v.role += role(mix(uint64(j.pipes.place[v.rank.Rank]), 7, 0))
		}
	}
}

// pipes are the ranks that messages ever connected, and where each stands among those
// that it is connected with, in order of rank.
type pipes struct {
	first map[int64]int64 // towards the first of each pipe, by union
	place map[int64]int
	moved bool
}

func (p *pipes) root(rank int64) int64 {
	up, ok := p.first[rank]
	if !ok {
		p.first[rank], p.moved = rank, true
		return rank
	}
	for up != rank {
		over := p.first[up]
		p.first[rank] = over
		rank, up = up, over
	}
	return rank
}

func (p *pipes) join(a, b int64) {
	if p.first == nil {
		p.first = map[int64]int64{}
	}
	a, b = p.root(a), p.root(b)
	if a != b {
		p.first[max(a, b)], p.moved = min(a, b), true
	}
}

// settle counts the places anew where some pipe has changed.
func (p *pipes) settle() {
	if !p.moved {
		return
	}
	p.moved = false
	ranks := make([]int64, 0, len(p.first))
	for r := range p.first {
		ranks = append(ranks, r)
	}
	slices.Sort(ranks)
	members := map[int64]int{}
	p.place = make(map[int64]int, len(ranks))
	for _, r := range ranks {
		root := p.root(r)
		p.place[r] = members[root]
		members[root]++
	}
}

// stream is a sequence of operations of a rank that are numbered together: of one
// communicator and name, or messages in one direction to one peer.
type stream struct {
	key  streamKey
	id   int32  // in the table of streams
	sort uint64 // kind, name and group size
	nth  uint64 // of its sort, in order of their first operation
	// The least and the largest number of the step on this rank, and the least of all.
	low, high, first int64
}

// maxStreams bounds the streams of a rank's step: operations of further ones have no
// peers.
const maxStreams = 1024

type streamKey struct {
	group    uint32
	src, dst int32
}

// does notes that the operation met others, and to which stream it belongs; true where it
// is the first of it.
func (v *rankView) does(op *commOp) bool {
	key := v.streamOf(op)
	op.met = true
	v.joined++
	for i := range v.streams {
		if s := &v.streams[i]; s.key == key && s.sort == op.form.sort {
			s.low, s.high = min(s.low, op.number), max(s.high, op.number)
			op.stream = int32(i)
			return false
		}
	}
	if len(v.streams) >= maxStreams {
		op.stream = -1
		v.joined--
		return true
	}
	op.stream = int32(len(v.streams))
	v.streams = append(v.streams, stream{key: key, sort: op.form.sort, low: op.number, high: op.number})
	return true
}

func (v *rankView) streamOf(op *commOp) streamKey {
	key := streamKey{group: op.form.group, src: -1, dst: -1}
	if op.form.kind == model.KindCollective {
		return key
	}
	key.src, key.dst = int32(v.rank.Rank), op.peer
	if op.form.kind == model.KindRecv {
		key.src, key.dst = key.dst, key.src
	}
	return key
}

// spotOf tells which operation of its program one is, the same for all ranks that run
// that program: by its sort, by which of the rank's streams of this sort it is in, and
// by its number. What others lost moves nobody's spot.
func (v *rankView) spotOf(op *commOp) uint64 {
	if op.stream < 0 {
		return mix(op.form.sort, 10, uint64(op.number))
	}
	s := &v.streams[op.stream]
	return mix(s.sort, s.nth, uint64(op.number-s.first))
}

// assignSpots gives each operation that met others its spot, and finds where some are
// missing.
func (j *job) assignSpots(views []*rankView) {
	t := &j.numbers
	t.begin()
	for _, v := range views {
		does := j.does[v.rank.Rank]
		for i := range v.streams {
			s := &v.streams[i]
			s.id = t.add(s.key, does.guess(i), s.low, s.high)
		}
	}
	// Whose partner's span was lost has a number all the same.
	for _, v := range views {
		for i := range v.comms {
			if v.joined == len(v.comms) {
				break
			}
			if op := &v.comms[i]; op.numbered && (!op.met || op.stream < 0) {
				if id, ok := t.find(v.streamOf(op)); ok {
					t.add(t.known[id].key, id, op.number, op.number)
				}
			}
		}
	}
	for _, v := range views {
		for i := range v.streams {
			v.streams[i].first = t.known[v.streams[i].id].of.low
		}
		t.counted = v.order(t.counted)
		v.findHoles(t, j.does[v.rank.Rank])
		for i := range v.comms {
			if op := &v.comms[i]; op.met {
				op.spot = v.spotOf(op)
			}
		}
	}
}

// order numbers the streams of each sort by their first operation in the step. It works in
// the room, and returns it.
func (v *rankView) order(room []bool) []bool {
	if len(v.streams) < 2 {
		return room
	}
	counted := slices.Grow(room[:0], len(v.streams))[:len(v.streams)]
	clear(counted)
	rest := len(counted)
	for i := 0; i < len(v.comms) && rest > 0; i++ {
		op := &v.comms[i]
		if !op.met || op.stream < 0 || counted[op.stream] {
			continue
		}
		counted[op.stream] = true
		rest--
		s := &v.streams[op.stream]
		for k := range v.streams {
			if counted[k] && int32(k) != op.stream && v.streams[k].sort == s.sort {
				s.nth++
			}
		}
	}
	return counted
}

func hashRole(parts ...string) role {
	h := fnv.New64a()
	for _, s := range parts {
		_, _ = h.Write(append([]byte(s), 0))
	}
	return role(h.Sum64())
}

// sortOf hashes what operations of one sort have in common.
func sortOf(n *commName) uint64 {
	return uint64(hashRole(string(n.kind), n.collective, strconv.FormatInt(n.size, 10)))
}
