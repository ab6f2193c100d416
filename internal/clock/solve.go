package clock

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// Arrival is one member of a meeting, stamped by its own clock in Unix ns.
type Arrival struct {
	Clock       string
	Enter, Exit int64
}

// Meeting is one collective as its members' clocks saw it.
type Meeting struct {
	Name     string // collective name of the data model
	Bytes    int64  // 0 where unknown
	Arrivals []Arrival
	// Synchronising: every member leaves after the last has entered.
	Synchronising bool
	// EndsCoincide: all members leave at nearly the same time, so that the
	// meeting serves the estimate. A broadcast's root may leave long before.
	EndsCoincide bool
	// Root is the index of a broadcast's root in Arrivals, or -1.
	Root int
}

// Message is one send and its receive: the receive ends after the send began.
type Message struct {
	SendClock, RecvClock string
	SendStart, RecvEnd   int64
}

// Options tune the solution.
type Options struct {
	// Clocks are all clocks in the order of preference as a reference; clocks
	// that only meetings name follow in order of appearance.
	Clocks []string
	// Resolution is added to every hard bound; see DefaultResolution.
	Resolution time.Duration
	// Off leaves every Value zero: estimates are reported and not applied.
	Off bool
}

// DefaultResolution covers stamps in whole microseconds, as old PyTorch traces
// have: start and duration are each cut by up to 1 µs.
const DefaultResolution = 2 * time.Microsecond

// applySigmas is how many sigmas an estimate must differ from zero before it is
// applied: at 3, one healthy clock in 370 is moved by its own noise.
const applySigmas = 3

// solvePasses bounds the alternation between meeting times and offsets. Each
// pass carries an offset one meeting further: groups that share all ranks need
// two passes, parallel layouts, whose groups cross, some ten. A chain of more
// than 64 groups is not solved to the end, which its sigma covers.
const solvePasses = 64

// Timeline relates clocks to one another.
type Timeline struct {
	index   map[string]int
	offsets []Offset
	groups  []int // component of each clock
	hard    *constraints
}

// Solve estimates the offsets from coinciding ends and collects the hard
// constraints. It never fails: a clock without evidence has the offset zero,
// and is its own reference.
func Solve(meetings []Meeting, messages []Message, opt Options) *Timeline {
	p := newProblem(meetings, messages, opt)
	p.components()
	p.countHops()
	p.solve()
	p.learnSigmas()
	p.solve()
	t := &Timeline{index: p.index, groups: p.group, hard: p.hard}
	t.offsets = p.offsets(opt)
	return t
}

// Offset returns what is known of a clock; false for one never mentioned.
func (t *Timeline) Offset(clock string) (Offset, bool) {
	i, ok := t.index[clock]
	if !ok {
		return Offset{Clock: clock, Reference: clock}, false
	}
	return t.offsets[i], true
}

// Comparable reports whether stamps of both clocks stand on one timeline.
func (t *Timeline) Comparable(a, b string) bool {
	if a == b {
		return true
	}
	i, okA := t.index[a]
	j, okB := t.index[b]
	return okA && okB && t.groups[i] == t.groups[j]
}

// Interval bounds the offset of clock b minus that of clock a by hard
// constraints alone; false where there are none in one of the directions.
func (t *Timeline) Interval(a, b string) (lower, upper time.Duration, ok bool) {
	i, okA := t.index[a]
	j, okB := t.index[b]
	if !okA || !okB {
		return 0, 0, false
	}
	return t.hard.interval(i, j)
}

type seen struct {
	clock int
	enter float64 // ns after the problem's base
	exit  float64
}

type row struct {
	class  class
	at     float64 // when it ended, on the timeline
	sigma  float64
	member []seen
}

// place is one member of one row.
type place struct{ row, member int }

// class groups meetings whose ends can be expected to spread alike.
type class struct {
	name  string
	scale int // log2 of bytes
	size  int
}

type problem struct {
	index map[string]int
	names []string
	rows  []row
	group []int
	theta []float64
	byMem [][]place // of each clock
	hard  *constraints
	base  int64
	hops  []int      // meetings between each clock and its reference
	ends  []float64  // scratch
	wants []weighted // scratch
}

func newProblem(meetings []Meeting, messages []Message, opt Options) *problem {
	p := &problem{index: map[string]int{}, base: firstStamp(meetings, messages)}
	for _, c := range opt.Clocks {
		p.clock(c)
	}
	for i := range meetings {
		p.addRow(&meetings[i])
	}
	res := opt.Resolution
	if res == 0 {
		res = DefaultResolution
	}
	p.hard = newConstraints(p, meetings, messages, float64(res))
	p.theta = make([]float64, len(p.names))
	p.byMem = make([][]place, len(p.names))
	for k := range p.rows {
		for n, m := range p.rows[k].member {
			p.byMem[m.clock] = append(p.byMem[m.clock], place{k, n})
		}
	}
	return p
}

func firstStamp(meetings []Meeting, messages []Message) int64 {
	for i := range meetings {
		if len(meetings[i].Arrivals) > 0 {
			return meetings[i].Arrivals[0].Enter
		}
	}
	if len(messages) > 0 {
		return messages[0].SendStart
	}
	return 0
}

func (p *problem) clock(name string) int {
	if i, ok := p.index[name]; ok {
		return i
	}
	p.index[name] = len(p.names)
	p.names = append(p.names, name)
	return len(p.names) - 1
}

func (p *problem) addRow(m *Meeting) {
	if !m.EndsCoincide {
		for _, a := range m.Arrivals {
			p.clock(a.Clock)
		}
		return
	}
	r := row{class: class{name: m.Name, scale: bits.Len64(uint64(max(0, m.Bytes))), size: len(m.Arrivals)}}
	r.sigma = priorSigma(m.Bytes)
	for _, a := range m.Arrivals {
		r.member = append(r.member, seen{clock: p.clock(a.Clock), enter: float64(a.Enter - p.base), exit: float64(a.Exit - p.base)})
	}
	// One clock alone, however many members it stamps, says nothing of others.
	if slices.ContainsFunc(r.member, func(m seen) bool { return m.clock != r.member[0].clock }) {
		p.rows = append(p.rows, r)
	}
}

// Ends of one collective spread by a few µs for small messages (0 to 7 µs over
// the eight V100 of one host) and by 0.13 to 0.34 ms for messages of gigabytes.
const (
	priorFloor   = 4e3         // ns
	priorPerByte = 200e3 / 1e9 // ns per byte
)

func priorSigma(bytes int64) float64 {
	return priorFloor + priorPerByte*float64(max(0, bytes))
}

// components labels clocks that meetings connect. A message bounds an offset on
// one side and estimates nothing.
func (p *problem) components() {
	parent := make(forest, len(p.names))
	for i := range parent {
		parent[i] = i
	}
	for k := range p.rows {
		for _, m := range p.rows[k].member[1:] {
			a, b := parent.root(p.rows[k].member[0].clock), parent.root(m.clock)
			// The earliest clock leads, so that it becomes the reference.
			parent[max(a, b)] = min(a, b)
		}
	}
	p.group = make([]int, len(parent))
	for i := range p.group {
		p.group[i] = parent.root(i)
	}
}

// forest is a union-find structure: each element names its parent.
type forest []int

func (f forest) root(i int) int {
	for f[i] != i {
		f[i] = f[f[i]]
		i = f[i]
	}
	return i
}

// settled is the share of the sharpest sigma below which a move is not worth
// another pass.
const settled = 0.01

// solve alternates between the meetings' times and the clocks' offsets, each
// the median of what the others say of it: least absolute deviations, so that a
// late leaver moves nobody.
func (p *problem) solve() {
	enough := math.Inf(1)
	for k := range p.rows {
		enough = min(enough, settled*p.rows[k].sigma)
	}
	for range solvePasses {
		p.placeRows()
		moved := 0.0
		for i := range p.theta {
			moved = max(moved, p.placeClock(i))
		}
		p.pinReferences()
		if moved < enough {
			break
		}
	}
	p.placeRows()
}

func (p *problem) placeRows() {
	for k := range p.rows {
		ends := p.ends[:0]
		for _, m := range p.rows[k].member {
			ends = append(ends, m.exit+p.theta[m.clock])
		}
		p.ends = ends
		p.rows[k].at = medianOf(ends)
	}
}

func (p *problem) placeClock(i int) float64 {
	wants := p.wants[:0]
	for _, at := range p.byMem[i] {
		r := &p.rows[at.row]
		wants = append(wants, weighted{r.at - r.member[at.member].exit, 1 / (r.sigma * r.sigma)})
	}
	p.wants = wants
	if len(wants) == 0 {
		return 0
	}
	next := weightedMedian(wants)
	moved := math.Abs(next - p.theta[i])
	p.theta[i] = next
	return moved
}

func (p *problem) pinReferences() {
	for i := len(p.theta) - 1; i >= 0; i-- {
		p.theta[i] -= p.theta[p.group[i]]
	}
}

// madToSigma turns a median absolute deviation of normal noise into a sigma.
const madToSigma = 1.4826

// learnSigmas replaces the prior spread of each class by the observed one where
// that is larger: a prior must not claim more than the data show.
func (p *problem) learnSigmas() {
	residuals := map[class][]float64{}
	for k := range p.rows {
		r := &p.rows[k]
		for _, m := range r.member {
			residuals[r.class] = append(residuals[r.class], math.Abs(m.exit+p.theta[m.clock]-r.at))
		}
	}
	spread := make(map[class]float64, len(residuals))
	for c, v := range residuals {
		spread[c] = madToSigma * medianOf(v)
	}
	for k := range p.rows {
		r := &p.rows[k]
		r.sigma = max(r.sigma, spread[r.class])
	}
}

func (p *problem) offsets(opt Options) []Offset {
	out := make([]Offset, len(p.names))
	for i, name := range p.names {
		o := Offset{
			Clock: name, Reference: p.names[p.group[i]], Meetings: len(p.byMem[i]),
			Estimate: time.Duration(math.Round(p.theta[i])), Sigma: time.Duration(p.sigma(i)),
		}
		o.Lower, o.Upper, o.Bounded = p.hard.interval(p.group[i], i)
		if o.Bounded && o.Lower > o.Upper {
			o.Lower, o.Upper, o.Bounded, o.Conflict = 0, 0, false, true
		}
		if !opt.Off {
			o.Value = o.applied()
		}
		out[i] = o
	}
	return out
}

// systematicShare is the part of a class's spread that no averaging removes:
// the order in which ranks leave a ring is not random.
const systematicShare = 0.5

// medianEfficiency is the standard error of a median over that of a mean.
const medianEfficiency = 1.2533

func (p *problem) sigma(i int) float64 {
	if i == p.group[i] || len(p.byMem[i]) == 0 {
		return 0
	}
	best := math.Inf(1)
	for _, at := range p.byMem[i] {
		best = min(best, p.rows[at.row].sigma)
	}
	n := float64(len(p.byMem[i]))
	own := best * math.Sqrt(systematicShare*systematicShare+medianEfficiency*medianEfficiency/n)
	return own * math.Sqrt(float64(p.hops[i]))
}

// countHops fills how many meetings lie between each clock and its reference:
// each adds its own error.
func (p *problem) countHops() {
	p.hops = make([]int, len(p.names))
	var frontier []int
	for i, g := range p.group {
		if i == g {
			frontier = append(frontier, i)
		}
	}
	done := make([]bool, len(p.rows))
	for hop := 1; len(frontier) > 0; hop++ {
		var next []int
		for _, i := range frontier {
			for _, at := range p.byMem[i] {
				if done[at.row] {
					continue
				}
				done[at.row] = true
				for _, m := range p.rows[at.row].member {
					if p.hops[m.clock] == 0 && m.clock != p.group[m.clock] {
						p.hops[m.clock] = hop
						next = append(next, m.clock)
					}
				}
			}
		}
		frontier = next
	}
}

// applied decides what is added to stamps: the estimate where it is
// significant, kept inside the hard interval, which is true where they differ.
func (o Offset) applied() time.Duration {
	v := o.Estimate
	if math.Abs(float64(v)) <= applySigmas*float64(o.Sigma) {
		v = 0
	}
	if o.Bounded {
		v = min(max(v, o.Lower), o.Upper)
	}
	return v
}

type weighted struct{ value, weight float64 }

func weightedMedian(w []weighted) float64 {
	slices.SortFunc(w, func(a, b weighted) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	})
	var total float64
	for _, x := range w {
		total += x.weight
	}
	var sum float64
	for i, x := range w {
		sum += x.weight
		switch {
		case sum > total/2:
			return x.value
		case sum == total/2 && i+1 < len(w):
			return (x.value + w[i+1].value) / 2
		}
	}
	return w[len(w)-1].value
}

// medianOf sorts s and returns its median.
func medianOf(s []float64) float64 {
	slices.Sort(s)
	n := len(s)
	switch {
	case n == 0:
		return 0
	case n%2 == 1:
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}
