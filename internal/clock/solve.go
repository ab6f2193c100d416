// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"time"
)

// Arrival is one member of a meeting, stamped by its own clock in Unix ns.
type Arrival struct {
	Clock       string
	Enter, Exit int64
	// ExitUnknown: Exit is no measurement. It bounds and estimates nothing.
	ExitUnknown bool
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

// Timeline relates clocks to one another.
type Timeline struct {
	index   map[string]int
	offsets []Offset
	groups  []int // component of each clock
	hard    *constraints
}

// Solver solves one timeline after another, in the room of the last.
type Solver struct {
	problem problem
	offsets []Offset
}

// Solve estimates the offsets from coinciding ends and collects the hard
// constraints. It never fails: a clock without evidence has the offset zero,
// and is its own reference.
func Solve(meetings []Meeting, messages []Message, opt Options) *Timeline {
	return new(Solver).Solve(meetings, messages, opt)
}

// Solve is as the function. The timeline is not to be used after the next call.
func (s *Solver) Solve(meetings []Meeting, messages []Message, opt Options) *Timeline {
	p := &s.problem
	p.read(meetings, messages, opt)
	p.components()
	p.countHops()
	p.solve()
	p.learnSigmas()
	p.solve()
	s.offsets = p.offsets(opt, s.offsets[:0])
	return &Timeline{index: p.index, groups: p.group, hard: &p.hard, offsets: s.offsets}
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
