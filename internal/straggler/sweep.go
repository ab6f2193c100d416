// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"slices"
	"time"
)

// part is the owner of an instant.
type part uint8

const (
	partIdle part = iota
	partCompute
	partOverlapped
	partTransfer
	partWait
	partCopy
	partLaunchIdle
	partDependencyIdle
	parts
)

// piece is a stretch of a step that belongs to one part.
type piece struct {
	start, end int64
	key        uint32 // operation, where the part is compute or copy
	part       part
	cause      cause // in a scope map, what the host was kept by
}

// launchLatency is how long after its launch a kernel starts on an idle stream:
// 8 to 13 µs on a V100. Idleness up to then is the host's.
const launchLatency = int64(15 * time.Microsecond)

// running is an operation, or a part of one, that has begun.
type running struct {
	start, end int64
	key        uint32
}

// sweeper divides steps into pieces. What it fills is used again for the next rank.
type sweeper struct {
	comms    [2][]running // waits and transfers, by start
	launches []launched   // of the rank's communication, by start
	left     []launched   // of them, those that idleness was not asked about yet
	active   [parts][]running
	sums     []int64 // by key; 0 between ranks
	touched  []uint32
	room     ownTimes // for what take returns
}

// runningParts are the parts of operations that run.
var runningParts = [...]part{partCompute, partTransfer, partWait, partCopy}

// launched is when an operation began and when it was launched, raw; key is that
// of the work it waited for, where nobody recorded it.
type launched struct {
	start, launch int64
	key           uint32
}

// sweep divides the view's step into pieces. waits gives, for the i-th
// communication of the step, the raw time at which its last member arrived;
// before that the operation waits, after that it transfers.
func (v *rankView) sweep(waits []int64, s *sweeper) {
	s.begin(v, waits)
	v.pieces = v.pieces[:0]
	at, act, launch := v.start, 0, 0
	var comm [2]int
	for {
		for act < len(v.acts) && !v.runs(&v.acts[act]) {
			act++
		}
		next := v.end
		if act < len(v.acts) {
			next = min(next, v.acts[act].start)
		}
		for k := range comm {
			if comm[k] < len(s.comms[k]) {
				next = min(next, s.comms[k][comm[k]].start)
			}
		}
		at = s.until(v, at, next, &launch)
		if next >= v.end {
			break
		}
		for ; act < len(v.acts) && v.acts[act].start <= next; act++ {
			if a := &v.acts[act]; v.runs(a) {
				what := partCompute
				if a.kind == actCopy {
					what = partCopy
				}
				s.active[what] = append(s.active[what], running{a.start, a.end, a.key})
			}
		}
		for k, what := range [2]part{partWait, partTransfer} {
			for ; comm[k] < len(s.comms[k]) && s.comms[k][comm[k]].start <= next; comm[k]++ {
				s.active[what] = append(s.active[what], s.comms[k][comm[k]])
			}
		}
	}
	v.accumulate(s)
}

// runs reports whether the device spent time of the step on the activity.
func (v *rankView) runs(a *activity) bool {
	return a.kind <= actCopy && a.end > a.start && a.end > v.start && a.start < v.end
}

// begin prepares the rank's communication.
func (s *sweeper) begin(v *rankView, waits []int64) {
	s.comms[0], s.comms[1], s.launches = s.comms[0][:0], s.comms[1][:0], s.launches[:0]
	for i := range s.active {
		s.active[i] = s.active[i][:0]
	}
	add := func(k int, start, end int64) {
		if end > start && end > v.start && start < v.end {
			s.comms[k] = append(s.comms[k], running{start: start, end: end})
		}
	}
	for i := range v.comms {
		op := &v.comms[i]
		last := min(max(waits[i], op.start), op.end)
		add(0, op.start, last)
		add(1, last, op.end)
		l := launched{start: op.start, launch: v.launchOf(op)}
		if v.dark {
			l.key = v.unrecorded(op)
		}
		s.launches = append(s.launches, l)
	}
	for k := range s.comms {
		sortMostly(s.comms[k], func(a, b *running) int { return cmp.Compare(a.start, b.start) })
	}
	sortMostly(s.launches, func(a, b *launched) int {
		if a.start != b.start {
			return cmp.Compare(a.start, b.start)
		}
		return cmp.Compare(a.launch, b.launch)
	})
	if v.dark {
		lead(s.launches)
	}
	s.left = s.launches
}

// sortMostly sorts what mostly is in order.
func sortMostly[T any](v []T, by func(a, b *T) int) {
	for i := 1; i < len(v); i++ {
		if by(&v[i-1], &v[i]) > 0 {
			slices.SortFunc(v, func(a, b T) int { return by(&a, &b) })
			return
		}
	}
}

// until adds the pieces from at to the next beginning of something.
func (s *sweeper) until(v *rankView, at, next int64, launch *int) int64 {
	for at < next {
		end := next
		for _, p := range runningParts {
			of := s.active[p]
			n := len(of)
			for n > 0 && of[n-1].end <= at {
				n--
			}
			if n < len(of) {
				s.active[p] = of[:n]
			}
			if n > 0 {
				end = min(end, of[n-1].end)
			}
		}
		what, key := s.owner()
		if what == partIdle {
			v.pushIdle(at, end, s, launch)
		} else {
			v.push(at, end, what, key)
		}
		at = end
	}
	return max(at, next)
}

// owner returns whose the present instant is, and the operation: of several that
// run, the last begun.
func (s *sweeper) owner() (part, uint32) {
	compute := s.active[partCompute]
	comm := len(s.active[partWait])+len(s.active[partTransfer]) > 0
	switch {
	case len(compute) > 0 && comm:
		return partOverlapped, compute[len(compute)-1].key
	case len(compute) > 0:
		return partCompute, compute[len(compute)-1].key
	case len(s.active[partTransfer]) > 0:
		return partTransfer, 0
	case comm:
		return partWait, 0
	case len(s.active[partCopy]) > 0:
		copies := s.active[partCopy]
		return partCopy, copies[len(copies)-1].key
	}
	return partIdle, 0
}

// push appends a piece, or lengthens the last by it.
func (v *rankView) push(start, end int64, what part, key uint32) {
	if n := len(v.pieces); n > 0 {
		if last := &v.pieces[n-1]; last.end == start && last.part == what && last.key == key {
			last.end = end
			return
		}
	}
	v.pushNew(start, end, what, key)
}

func (v *rankView) pushNew(start, end int64, what part, key uint32) {
	var p *piece
	v.pieces, p = oneMore(v.pieces)
	p.start, p.end, p.key, p.part, p.cause = start, end, key, what, byContext
}

// pushIdle appends an idle piece, divided at the launch of what ended it.
// What follows the launch is idleness where all that the device ran was recorded,
// else work.
func (v *rankView) pushIdle(start, end int64, s *sweeper, act *int) {
	ready, rest, key := end, partDependencyIdle, uint32(0)
	l, ok := v.launchAt(end, s, act)
	if ok && l.launch == 0 {
		v.undivided += end - start
	}
	if ok && l.launch != 0 {
		ready = min(max(l.launch+launchLatency, start), end)
		if v.dark {
			rest, key = partCompute, l.key
		}
	}
	if ready > start {
		v.pushNew(start, ready, partLaunchIdle, 0)
	}
	if ready < end {
		v.pushNew(ready, end, rest, key)
	}
}

// launchAt returns the first launched of what began at the given time. act is the
// first activity that did not begin before the last time that was asked for, and so it is
// with the launches that are left.
func (v *rankView) launchAt(at int64, s *sweeper, act *int) (first launched, ok bool) {
	for len(s.left) > 0 && s.left[0].start < at {
		s.left = s.left[1:]
	}
	if len(s.left) > 0 && s.left[0].start == at {
		first, ok = s.left[0], true
	}
	for *act < len(v.acts) && v.acts[*act].start < at {
		*act++
	}
	for k := *act; k < len(v.acts) && v.acts[k].start == at; k++ {
		if a := &v.acts[k]; a.kind <= actCopy && (!ok || a.launch < first.launch) {
			first, ok = launched{start: at, launch: a.launch}, true
		}
	}
	return first, ok
}

// accumulate fills the sums over the pieces: own time, by operation and place.
func (v *rankView) accumulate(s *sweeper) {
	v.scope = v.scopeMap()
	v.cum = slices.Grow(v.cum[:0], len(v.pieces))
	v.parts = [parts]int64{}
	if len(s.sums) < len(v.keys.ops) {
		s.sums = make([]int64, 2*len(v.keys.ops))
	}
	var sum own
	for i := range v.pieces {
		p := &v.pieces[i]
		v.cum = append(v.cum, sum)
		sum = sum.plus(p.own(p.start, p.end))
		v.parts[p.part] += p.end - p.start
		if p.part == partCompute || p.part == partOverlapped || p.part == partCopy {
			s.count(v.keys.plain(p.key), p.end-p.start)
		}
	}
	v.computeBy = s.take()
	if v.parts[partLaunchIdle] > 0 {
		for i := range v.pieces {
			if p := &v.pieces[i]; p.part == partLaunchIdle {
				v.scope.share(p.start, p.end, func(in *piece, d int64) {
					s.count(in.key, d)
					v.idleFor[in.cause] += d
				})
			}
		}
	}
	v.idleBy = s.take()
}

// count adds time to a key.
func (s *sweeper) count(key uint32, ns int64) {
	if s.sums[key] == 0 {
		s.touched = append(s.touched, key)
	}
	s.sums[key] += ns
}

// take returns the counted times, and begins anew.
func (s *sweeper) take() ownTimes {
	if len(s.room)+len(s.touched) > cap(s.room) {
		s.room = make(ownTimes, 0, max(timesAtOnce, len(s.touched)))
	}
	from := len(s.room)
	for _, k := range s.touched {
		s.room = append(s.room, keyTime{s.sums[k], k})
		s.sums[k] = 0
	}
	s.touched = s.touched[:0]
	return s.room[from:len(s.room):len(s.room)]
}

// ownTimes are times by operation or scope.
type ownTimes []keyTime

type keyTime struct {
	ns  int64
	key uint32
}

// timesAtOnce is for how many of them room is made at once: they are kept in records, some
// for each rank of each step.
const timesAtOnce = 512

// of returns the time of a key.
func (t ownTimes) of(key uint32) int64 {
	for i := range t {
		if t[i].key == key {
			return t[i].ns
		}
	}
	return 0
}

// own returns the own time of the piece between two instants inside it.
func (p *piece) own(from, to int64) own {
	switch p.part {
	case partCompute, partCopy:
		return own{compute: to - from}
	case partOverlapped:
		return own{overlapped: to - from}
	case partLaunchIdle:
		return own{idle: to - from}
	}
	return own{}
}

// ownUntil returns the own time from the start of the step to t.
func (v *rankView) ownUntil(t int64) own {
	if len(v.pieces) == 0 || t <= v.start {
		return own{}
	}
	// The last piece that began no later than t. What is asked next is mostly near.
	i, to := 0, len(v.pieces)
	if k := v.asked; k < to && v.pieces[k].start <= t {
		i = k
		for near := min(to, k+nearPieces); i+1 < near && v.pieces[i+1].start <= t; {
			i++
		}
		if i+1 < to && t < v.pieces[i+1].start {
			to = i + 1
		}
	}
	for to-i > 1 {
		if mid := int(uint(i+to) >> 1); v.pieces[mid].start <= t {
			i = mid
		} else {
			to = mid
		}
	}
	v.asked = i
	p := &v.pieces[i]
	return v.cum[i].plus(p.own(p.start, min(t, p.end)))
}

// nearPieces is how many pieces on from the one that was asked for last the next is
// looked for first.
const nearPieces = 8

// ownBetween returns the own time between two instants of the step.
func (v *rankView) ownBetween(from, to int64) own {
	before := v.ownUntil(from)
	return v.ownUntil(to).minus(before)
}

// split returns the time of each part.
func (v *rankView) split() Split {
	of := func(p part) time.Duration { return time.Duration(v.parts[p]) }
	return Split{
		Compute: of(partCompute), ComputeOverlapped: of(partOverlapped),
		Transfer: of(partTransfer), Wait: of(partWait),
		LaunchIdle: of(partLaunchIdle), DependencyIdle: of(partDependencyIdle), Copy: of(partCopy),
	}
}
