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
	part       part
	key        uint32 // operation, where the part is compute or copy
	cause      cause  // in a scope map, what the host was kept by
}

// edge is a point at which an activity of one sort begins or ends.
type edge struct {
	at    int64
	what  part
	delta int
	key   uint32
}

// launchLatency is how long after its launch a kernel starts on an idle stream:
// 8 to 13 µs on a V100. Idleness up to then is the host's.
const launchLatency = int64(15 * time.Microsecond)

// sweep divides the view's step into pieces. waits gives, for the i-th
// communication of the step, the raw time at which its last member arrived;
// before that the operation waits, after that it transfers.
func (v *rankView) sweep(waits []int64) {
	edges, launches := v.edges(waits)
	var active [parts][]uint32 // operations that run, the last begun at the end
	at := v.start
	for i := 0; i <= len(edges); i++ {
		next := v.end
		if i < len(edges) {
			next = min(max(edges[i].at, v.start), v.end)
		}
		if next > at {
			what := owner(&active)
			v.push(piece{start: at, end: next, part: what, key: keyOf(&active, what)}, launches)
			at = next
		}
		if i < len(edges) {
			edges[i].apply(&active)
		}
	}
	v.accumulate()
}

// apply begins or ends an operation.
func (e *edge) apply(active *[parts][]uint32) {
	running := active[e.what]
	if e.delta > 0 {
		active[e.what] = append(running, e.key)
		return
	}
	for i := len(running) - 1; i >= 0; i-- {
		if running[i] == e.key {
			active[e.what] = slices.Delete(running, i, i+1)
			return
		}
	}
}

func owner(active *[parts][]uint32) part {
	runs := func(p part) bool { return len(active[p]) > 0 }
	comm := runs(partWait) || runs(partTransfer)
	switch {
	case runs(partCompute) && comm:
		return partOverlapped
	case runs(partCompute):
		return partCompute
	case runs(partTransfer):
		return partTransfer
	case runs(partWait):
		return partWait
	case runs(partCopy):
		return partCopy
	}
	return partIdle
}

// keyOf returns the operation that a part's time belongs to: of several that
// run, the last begun.
func keyOf(active *[parts][]uint32, p part) uint32 {
	if p == partOverlapped {
		p = partCompute
	}
	if running := active[p]; len(running) > 0 {
		return running[len(running)-1]
	}
	return 0
}

// edges returns the sorted edges of everything that runs in the step, and the
// launch times of operations by start, sorted.
func (v *rankView) edges(waits []int64) (edges []edge, launches []launched) {
	add := func(start, end int64, what part, key uint32) {
		if end > start && end > v.start && start < v.end {
			edges = append(edges, edge{start, what, 1, key}, edge{end, what, -1, key})
		}
	}
	each := func(a *activity) {
		switch a.kind {
		case actCompute:
			add(a.start, a.end, partCompute, a.key)
		case actCopy:
			add(a.start, a.end, partCopy, a.key)
		default:
			return
		}
		launches = append(launches, launched{start: a.start, launch: a.launch})
	}
	for i := range v.acts {
		each(&v.acts[i])
	}
	for i := range v.comms {
		op := &v.comms[i]
		last := min(max(waits[i], op.Start), op.End)
		add(op.Start, last, partWait, 0)
		add(last, op.End, partTransfer, 0)
		l := launched{start: op.Start, launch: v.launchOf(op)}
		if v.dark {
			l.key = v.unrecorded(op)
		}
		launches = append(launches, l)
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.delta, b.delta)) })
	slices.SortFunc(launches, func(a, b launched) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.launch, b.launch))
	})
	if v.dark {
		lead(launches)
	}
	return edges, launches
}

// launched is when an operation began and when it was launched, raw; key is that
// of the work it waited for, where nobody recorded it.
type launched struct {
	start, launch int64
	key           uint32
}

// push appends a piece; an idle one is divided at the launch of what ended it.
// What follows the launch is idleness where all that the device ran was recorded,
// else work.
func (v *rankView) push(p piece, launches []launched) {
	if p.part != partIdle {
		v.pieces = append(v.pieces, p)
		return
	}
	p.part, p.key = partLaunchIdle, 0
	ready, rest := p.end, piece{end: p.end, part: partDependencyIdle}
	i, _ := slices.BinarySearchFunc(launches, p.end, func(l launched, at int64) int { return cmp.Compare(l.start, at) })
	if i < len(launches) && launches[i].start == p.end && launches[i].launch != 0 {
		ready = min(max(launches[i].launch+launchLatency, p.start), p.end)
		if v.dark {
			rest.part, rest.key = partCompute, launches[i].key
		}
	}
	if ready > p.start {
		v.pieces = append(v.pieces, piece{start: p.start, end: ready, part: partLaunchIdle})
	}
	if ready < p.end {
		rest.start = ready
		v.pieces = append(v.pieces, rest)
	}
}

// accumulate fills the sums over the pieces: own time, by operation and place.
func (v *rankView) accumulate() {
	scopes := v.scopes()
	v.cum = make([]own, 0, len(v.pieces))
	var sum own
	for _, p := range v.pieces {
		v.cum = append(v.cum, sum)
		sum = sum.plus(p.own(p.start, p.end))
		switch p.part {
		case partCompute, partOverlapped, partCopy:
			v.computeBy[p.key] += p.end - p.start
		case partLaunchIdle:
			scopes.share(p.start, p.end, func(in *piece, d int64) {
				v.idleBy[in.key] += d
				v.idleFor[in.cause] += d
			})
		}
	}
}

// own returns the own time of the piece between two instants inside it.
func (p piece) own(from, to int64) own {
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
	i, found := slices.BinarySearchFunc(v.pieces, t, func(p piece, t int64) int { return cmp.Compare(p.start, t) })
	if !found {
		i--
	}
	p := v.pieces[i]
	return v.cum[i].plus(p.own(p.start, min(t, p.end)))
}

// ownBetween returns the own time between two instants of the step.
func (v *rankView) ownBetween(from, to int64) own {
	return v.ownUntil(to).minus(v.ownUntil(from))
}

// split sums the pieces by part.
func (v *rankView) split() Split {
	var by [parts]time.Duration
	for _, p := range v.pieces {
		by[p.part] += time.Duration(p.end - p.start)
	}
	return Split{
		Compute: by[partCompute], ComputeOverlapped: by[partOverlapped],
		Transfer: by[partTransfer], Wait: by[partWait],
		LaunchIdle: by[partLaunchIdle], DependencyIdle: by[partDependencyIdle], Copy: by[partCopy],
	}
}
