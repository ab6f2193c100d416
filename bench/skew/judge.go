// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// tolerance is by how much an asynchronous span may stand further from the truth
// than its own clock had put it without having been moved wrongly: a hundredth of
// what clocks are off by, and as much as a message may come late.
const tolerance = 100 * us

// placement is how far from the truth spans stand. A span's error is that of its
// start against its trace's root: what the whole trace is off by, nobody can see
// in it.
type placement struct {
	mean, p50, p99, max float64 // µs, of the absolute error
	settled             float64 // the mean of spans that began after settling
	// moved are asynchronous spans that stand further from the truth than they came,
	// by more than the tolerance, movedLate those that began after settling; of async.
	moved, movedLate, async int
}

// settling is how long clocks are given to get known; what is before counts in
// all but placement.settled.
const settling = 20 * second

// errors returns what each span's start is off by, ns, against its trace's root.
func (w *world) errors(batches []ptrace.Traces) []int64 {
	off := make([]int64, len(w.events))
	each(batches, func(s ptrace.Span) {
		i := eventOf(s)
		off[i] = int64(s.StartTimestamp()) - epoch - w.events[i].start
	})
	root := int64(0)
	for i := range w.events { // a trace's root comes first
		if w.events[i].parent < 0 {
			root = off[i]
		}
		off[i] -= root
	}
	return off
}

// judge compares errors with those that the spans came with.
func (w *world) judge(off, raw []int64) placement {
	var p placement
	var all, late []float64
	for i := range w.events {
		e := &w.events[i]
		if e.parent < 0 {
			continue
		}
		a := math.Abs(float64(off[i])) / float64(us)
		all = append(all, a)
		if e.start > settling {
			late = append(late, a)
		}
		if e.async {
			p.async++
			if abs(off[i]) > abs(raw[i])+tolerance {
				p.moved++
				if e.start > settling {
					p.movedLate++
				}
			}
		}
	}
	slices.Sort(all)
	p.mean, p.settled, p.max = mean(all), mean(late), all[len(all)-1]
	p.p50, p.p99 = stats.MedianHigh(all), stats.QuantileHigh(all, 0.99)
	return p
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(max(1, len(x)))
}

func abs(x int64) int64 { return max(x, -x) }

// outside counts the spans that stand further from the truth than the bounds of
// their clock and their root's allow, of those that have one.
func (w *world) outside(batches []ptrace.Traces, off []int64) (outside, bounded int) {
	bound := make([]float64, len(w.events))
	each(batches, func(s ptrace.Span) {
		i := eventOf(s)
		bound[i] = math.NaN()
		if v, ok := s.Attributes().Get(semconv.ClockBound); ok {
			bound[i] = v.Double() * float64(second)
		}
	})
	root := 0
	for i := range w.events {
		if w.events[i].parent < 0 {
			root = i
			continue
		}
		both := bound[i] + bound[root]
		if math.IsNaN(both) || w.events[i].host == w.events[root].host {
			continue
		}
		bounded++
		if float64(abs(off[i])) > both+1 { // a ns for seconds as float64
			outside++
		}
	}
	return outside, bounded
}
