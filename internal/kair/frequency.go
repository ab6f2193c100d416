// SPDX-License-Identifier: Apache-2.0

package kair

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Frequency counts how often each operation occurs over the step, and at how many
// workers. It holds the most frequent operations; all others are one.
type Frequency struct {
	windows, shown, span int
	now, before          counted
	slots                []uint16 // by key; 0 where the key counts among the others
	totals               []uint32 // by key, of operations among the others
	marks                []uint32 // by cell, the worker that was counted there last
	mark                 uint32
}

// counted is what a span of steps showed.
type counted struct {
	keys    []uint32 // by slot
	cells   []occurs // slot after slot, windows of each
	steps   int
	workers int // summed over the steps
	ns      int64
}

// occurs counts an operation in one window: how often, and at how many workers.
type occurs struct{ count, workers uint32 }

// NewFrequency returns an empty count of so many windows, of at most shown operations
// and the others, that forgets span steps at a time.
func NewFrequency(windows, shown, span int) *Frequency {
	f := &Frequency{windows: max(1, windows), shown: min(max(0, shown), 1<<15), span: max(1, span)}
	f.now = f.empty(nil)
	return f
}

// empty returns a count of these keys, after the others.
func (f *Frequency) empty(keys []uint32) counted {
	clear(f.slots)
	clear(f.totals)
	f.marks = nil
	c := counted{}
	f.slot(&c, 0)
	for _, k := range keys {
		f.give(&c, k)
	}
	return c
}

// slot appends one for the key, and returns its number.
func (f *Frequency) slot(c *counted, key uint32) uint16 {
	c.keys = append(c.keys, key)
	c.cells = append(c.cells, make([]occurs, f.windows)...)
	f.marks = append(f.marks, make([]uint32, f.windows)...)
	return uint16(len(c.keys) - 1)
}

// give returns the key's slot, 0 where there is none left. Key 0 is that of keys for
// which its giver had no room.
func (f *Frequency) give(c *counted, key uint32) uint16 {
	if n := int(key) + 1; n > len(f.slots) {
		f.slots = append(f.slots, make([]uint16, n-len(f.slots))...)
		f.totals = append(f.totals, make([]uint32, n-len(f.totals))...)
	}
	if f.slots[key] == 0 && key != 0 && len(c.keys) <= f.shown {
		f.slots[key] = f.slot(c, key)
	}
	return f.slots[key]
}

// Begin begins a step of such a length.
func (f *Frequency) Begin(ns int64) {
	if f.now.steps == f.span {
		top := f.top()
		f.before = f.now
		f.now = f.empty(top)
	}
	f.now.steps++
	f.now.ns += ns
}

// Worker begins the operations of the step's next worker.
func (f *Frequency) Worker() {
	f.now.workers++
	if f.mark++; f.mark == 0 {
		clear(f.marks)
		f.mark = 1
	}
}

// Add counts an operation of the worker.
func (f *Frequency) Add(key uint32, window int) {
	slot := uint16(0)
	if int(key) < len(f.slots) {
		slot = f.slots[key]
	}
	if slot == 0 {
		if slot = f.give(&f.now, key); slot == 0 {
			f.totals[key]++
		}
	}
	i := int(slot)*f.windows + window
	f.now.cells[i].count++
	if f.marks[i] != f.mark {
		f.marks[i] = f.mark
		f.now.cells[i].workers++
	}
}

// top returns the most frequent keys of the span, shown at most.
func (f *Frequency) top() []uint32 {
	type often struct {
		key   uint32
		count int
	}
	var list []often
	for s, key := range f.now.keys[1:] {
		list = append(list, often{key, f.now.total(s+1, f.windows)})
	}
	for key, n := range f.totals {
		if n > 0 {
			list = append(list, often{uint32(key), int(n)})
		}
	}
	slices.SortFunc(list, func(a, b often) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.key, b.key))
	})
	var out []uint32
	for _, o := range list[:min(f.shown, len(list))] {
		if o.count > 0 {
			out = append(out, o.key)
		}
	}
	return out
}

func (c *counted) total(slot, windows int) (n int) {
	for _, o := range c.cells[slot*windows : (slot+1)*windows] {
		n += int(o.count)
	}
	return n
}

// FrequencyView is how often operations occur over the step, as a panel can draw it.
type FrequencyView struct {
	Windows int         `json:"windows"`
	Steps   int         `json:"steps"`   // that it is of
	Workers float64     `json:"workers"` // in a step, on average
	Seconds float64     `json:"seconds"` // of a step, on average
	Ops     []OpWindows `json:"ops"`     // the most frequent first, all others last
}

// OpWindows is one operation over the windows of the step.
type OpWindows struct {
	Op string `json:"op"`
	// Counts are operations per step, over all workers; Share the part of the workers
	// at which it occurs.
	Counts []float32 `json:"counts"`
	Share  []float32 `json:"share"`
}

// View returns what the recent steps showed; name gives the name of a key.
func (f *Frequency) View(name func(uint32) string) FrequencyView {
	spans := []*counted{&f.before, &f.now}
	v := FrequencyView{Windows: f.windows}
	sums := map[uint32][]occurs{}
	workers, ns := 0, int64(0)
	for _, c := range spans {
		v.Steps += c.steps
		workers += c.workers
		ns += c.ns
		for slot, key := range c.keys {
			if int(key) >= len(f.slots) || f.slots[key] == 0 {
				key = 0 // it is among the others by now
			}
			if sums[key] == nil {
				sums[key] = make([]occurs, f.windows)
			}
			for w, o := range c.cells[slot*f.windows : (slot+1)*f.windows] {
				sums[key][w].count += o.count
				sums[key][w].workers += o.workers
			}
		}
	}
	if v.Steps == 0 {
		return v
	}
	v.Workers, v.Seconds = float64(workers)/float64(v.Steps), float64(ns)/float64(v.Steps)/1e9
	for _, key := range byCount(sums) {
		v.Ops = append(v.Ops, windowsOf(name(key), sums[key], v.Steps, workers))
	}
	return v
}

// byCount returns the keys that occur, the most frequent first and 0, which stands
// for the others, last.
func byCount(sums map[uint32][]occurs) []uint32 {
	total := map[uint32]int{}
	var keys []uint32
	for key, cells := range sums {
		for _, o := range cells {
			total[key] += int(o.count)
		}
		if total[key] > 0 {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b uint32) int {
		if a == 0 || b == 0 {
			return cmp.Compare(b, a)
		}
		return cmp.Or(cmp.Compare(total[b], total[a]), cmp.Compare(a, b))
	})
	return keys
}

func windowsOf(op string, cells []occurs, steps, workers int) OpWindows {
	if op == "" {
		op = model.OpOther
	}
	o := OpWindows{Op: op, Counts: make([]float32, len(cells)), Share: make([]float32, len(cells))}
	for w, c := range cells {
		o.Counts[w] = float32(c.count) / float32(steps)
		// Several operations among the others may be at one worker.
		o.Share[w] = min(1, float32(c.workers)/float32(max(1, workers)))
	}
	return o
}
