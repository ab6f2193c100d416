// SPDX-License-Identifier: Apache-2.0

package hang

import "math"

// never is the time of what does not happen.
const never = math.MaxInt64

// start is when jobs begin, Unix ns.
const start = 1_790_000_000_000_000_000

// rank is one rank's host and device.
type rank struct {
	id      int
	program []instr
	host    int   // next instruction of the host
	device  int   // next instruction of the device
	hostAt  int64 // time of the host
	at      int64 // time of the current stream
	passed  []int64
	created []int64 // per instruction
	done    []int64 // per instruction: when it was over here
	counts  [kinds]int64
	streams []stream
	queued  bool
	hit     *hit
	frozen  bool
	// blind is from when on nothing is seen to complete here any more.
	blind int64
}

// stream runs what it is given one after the other.
type stream struct {
	kind kind
	peer int32 // of single messages; -1: collectives and coalesced messages
	list []queued
	head int
}

// queued is an operation that waits for its turn; from is when its device let it go.
type queued struct {
	instr int32
	seq   int64
	from  int64
	begun bool
}

// run executes a job.
type run struct {
	*grid
	ranks     []rank
	instances []map[int64]*instance // per group
	channels  map[channel]*mailbox
	ready     []int
	stalled   map[place64]bool
	lastMove  int64
}

// place64 names an operation of a group by its number.
type place64 struct {
	group int32
	seq   int64
}

func newRun(g *grid, programs [][]instr) *run {
	x := &run{grid: g, ranks: make([]rank, g.world), instances: make([]map[int64]*instance, len(g.groups)), channels: map[channel]*mailbox{}, stalled: map[place64]bool{}}
	for i := range x.instances {
		x.instances[i] = map[int64]*instance{}
	}
	for r := range x.ranks {
		p := programs[r]
		x.ranks[r] = rank{
			id: r, program: p, hostAt: start, at: start, blind: never,
			passed: make([]int64, g.RunAhead), created: make([]int64, len(p)), done: make([]int64, len(p)),
		}
		for i := range p {
			x.ranks[r].created[i], x.ranks[r].done[i] = never, never
		}
	}
	return x
}

// execute runs the job until nothing moves.
func (x *run) execute() {
	for r := range x.ranks {
		x.wake(r)
	}
	for len(x.ready) > 0 {
		r := x.ready[len(x.ready)-1]
		x.ready = x.ready[:len(x.ready)-1]
		x.ranks[r].queued = false
		for moved := true; moved; {
			moved = x.stepHost(&x.ranks[r]) || x.stepDevice(&x.ranks[r])
		}
	}
}

func (x *run) wake(r int) {
	if !x.ranks[r].queued {
		x.ranks[r].queued = true
		x.ready = append(x.ready, r)
	}
}

// hostCost is what a host takes for an instruction, ns.
const hostCost = 15_000

func (x *run) stepHost(r *rank) bool {
	i := r.host
	if i >= len(r.program) || r.hit.stopsHost(i) {
		return false
	}
	if back := i - x.RunAhead; back >= 0 {
		if r.device <= back {
			return false
		}
		r.hostAt = max(r.hostAt, r.passed[back%x.RunAhead])
	}
	if r.program[i].do == sync && i > 0 {
		if r.device < i {
			return false
		}
		r.hostAt = max(r.hostAt, r.passed[(i-1)%x.RunAhead])
	}
	r.hostAt += hostCost
	r.created[i] = r.hostAt
	x.lastMove = max(x.lastMove, r.hostAt)
	r.host++
	return true
}

// stepDevice passes one instruction, or waits for it.
func (x *run) stepDevice(r *rank) bool {
	i := r.device
	if i >= r.host || r.frozen || r.hit.silences(i) {
		return false
	}
	in := &r.program[i]
	r.at = max(r.at, r.created[i])
	switch in.do {
	case work:
		r.at += in.dur
	case call, post:
		if in.do == post && in.batch || in.do == call {
			x.enqueue(r, i, -1)
		} else {
			x.enqueue(r, i, int32(x.peer(r.id, i, in.msgs[0])))
		}
		if r.frozen {
			return false
		}
		if !in.async {
			if r.done[i] == never {
				return false
			}
			r.at = max(r.at, r.done[i])
		}
	case wait:
		at, ok := r.drained(in.kind)
		if !ok {
			return false
		}
		r.at = max(r.at, at)
	}
	r.passed[i%x.RunAhead] = r.at
	r.device++
	return true
}

// drained tells when all that was queued for a kind of group was over.
func (r *rank) drained(k kind) (at int64, ok bool) {
	for s := range r.streams {
		st := &r.streams[s]
		if st.kind != k || len(st.list) == 0 {
			continue
		}
		if st.head < len(st.list) {
			return 0, false
		}
		at = max(at, r.done[st.list[len(st.list)-1].instr])
	}
	return at, true
}

// enqueue puts an operation on its stream, once.
func (x *run) enqueue(r *rank, i int, peer int32) {
	in := &r.program[i]
	st := r.stream(in.kind, peer)
	if n := len(st.list); n > 0 && st.list[n-1].instr == int32(i) {
		return
	}
	if st.head > 256 && st.head == len(st.list) {
		st.list, st.head = append(st.list[:0], st.list[len(st.list)-1]), 1
	}
	q := queued{instr: int32(i), from: r.at}
	if in.do == call {
		r.counts[in.kind]++
		q.seq = r.counts[in.kind]
	}
	st.list = append(st.list, q)
	x.begin(r, st)
}

func (r *rank) stream(k kind, peer int32) *stream {
	for s := range r.streams {
		if r.streams[s].kind == k && r.streams[s].peer == peer {
			return &r.streams[s]
		}
	}
	r.streams = append(r.streams, stream{kind: k, peer: peer})
	return &r.streams[len(r.streams)-1]
}

// begin lets the head of a stream take part in its operation.
func (x *run) begin(r *rank, st *stream) {
	if st.head == len(st.list) || st.list[st.head].begun || r.frozen {
		return
	}
	q := &st.list[st.head]
	q.begun = true
	at := q.from
	if st.head > 0 {
		at = max(at, r.done[st.list[st.head-1].instr])
	}
	if r.hit.blinds(int(q.instr)) {
		r.blind = min(r.blind, at)
	}
	if r.hit.stopsDevice(int(q.instr)) {
		r.frozen = true
	}
	in := &r.program[q.instr]
	if in.do == call {
		x.join(r, in, q, at)
	} else {
		x.exchange(r, in, int(q.instr), at)
	}
}

// finish ends an operation at a rank, and lets the next one of its stream begin.
func (x *run) finish(id int, i int32, at int64) {
	r := &x.ranks[id]
	if r.done[i] != never {
		return
	}
	r.done[i] = at
	x.lastMove = max(x.lastMove, at)
	for s := range r.streams {
		st := &r.streams[s]
		if st.head < len(st.list) && st.list[st.head].instr == i {
			st.head++
			x.begin(r, st)
			break
		}
	}
	x.wake(id)
}
