// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"math"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// watch turns what is wrong with clocks into findings.
type watch struct {
	opt    *Options
	book   *finding.Book[struct{}]
	counts map[countKey]*count // each is of a clock that is known, or has an open finding
	seen   map[string]observed // what was judged last of each clock
	raws   map[*scale]rawRates // of all raw clocks together, for one look
}

type observed struct {
	until, steps int64
	untrusted    bool
}

// classes in the order in which findings of one clock are given out.
var classes = []string{model.ClassSkew, model.ClassDrift, model.ClassStep, model.ClassUntrusted}

func newWatch(opt *Options) *watch {
	return &watch{opt: opt, book: newBook(opt), counts: map[countKey]*count{}, seen: map[string]observed{}}
}

// fault is what is wrong with a clock in one window.
type fault struct {
	size     float64
	evidence evidence.Clock
	action   string
}

// look judges every clock of which there is news: some at a time, so that nothing
// waits for it. The caller holds solving.
func (w *watch) look(t *Timeline, ids []string, now time.Time) []model.Finding {
	w.raws = t.rawRates(ids)
	for part := range slices.Chunk(ids, chunk) {
		t.mu.RLock()
		for _, id := range part {
			w.lookAt(t, id, now)
		}
		t.mu.RUnlock()
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	w.forget(t, now)
	return w.book.Take()
}

func (w *watch) lookAt(t *Timeline, id string, now time.Time) {
	tr := t.tracks[id]
	if tr == nil || tr.foreign || tr.doubt != nil && !tr.untrusted || tr.unproved() {
		return
	}
	saw := observed{until: tr.last().last().until, steps: tr.steps, untrusted: tr.untrusted}
	before, known := w.seen[id]
	if known && !tr.untrusted && before.steps == saw.steps && !before.untrusted && distance(before.until, saw.until) < apart {
		return
	}
	w.seen[id] = saw
	faults := w.judge(tr, tr.steps > before.steps)
	if f := faults[model.ClassStep]; f != nil && f.evidence.Undecided {
		f.evidence.Other = t.steppedInstead(tr)
	}
	for _, class := range classes {
		w.follow(countKey{class, id}, faults[class], tr, now)
	}
}

// judge returns what is wrong with the clock in its last window, by class.
func (w *watch) judge(tr *track, stepped bool) map[string]*fault {
	faults := map[string]*fault{}
	seg := tr.last()
	if tr.untrusted {
		faults[model.ClassUntrusted] = untrusted(tr)
		return faults
	}
	if stepped {
		faults[model.ClassStep] = &fault{
			size:     math.Abs(float64(tr.leapt)),
			evidence: evidence.Clock{Timeline: seg.scale.name, Jump: float64(-tr.leapt) / 1e9, Steps: tr.steps},
			action:   "find what sets the clock in steps (ntpdate, chronyd makestep, a hypervisor); let it slew instead",
		}
		if tr.unsure {
			faults[model.ClassStep].evidence.Undecided = true
			faults[model.ClassStep].action = "this clock was set, or the one that it is compared with, and nothing tells which: see what sets either in steps"
		}
	}
	if seg.last().bound == model.NoBound || !seg.scale.anchored {
		return faults
	}
	faults[model.ClassSkew] = w.skew(tr)
	faults[model.ClassDrift] = w.drift(tr)
	return faults
}

// steppedInstead is the clock that may have been stepped where a step is told of this one: the
// one that it was read together with, or that it stands against.
func (t *Timeline) steppedInstead(tr *track) (other string) {
	on := tr.last().scale
	switch {
	case tr.readAt == tr.steps:
		return tr.readWith
	case on.reference != tr.id:
		return on.reference
	}
	for id, o := range t.tracks {
		if o == tr || o.foreign || o.last().scale != on || o.name.raw != tr.name.raw {
			continue
		}
		if other != "" {
			return ""
		}
		other = id
	}
	return other
}

// skew: a real-time clock that is farther from the median of them than both bounds
// and the threshold together. The timeline itself may be on its way to the median.
// Only where more than half agree is it said of one clock that it is off.
func (w *watch) skew(tr *track) *fault {
	seg := tr.last()
	v, last := seg.scale.vote, seg.last()
	if !tr.name.realtime || v == nil {
		return nil
	}
	if other, ok := v.other(tr.id); ok {
		return w.differ(tr, v, other)
	}
	off := -last.offset - v.median.at(last.at+last.offset)
	bound := plus(last.bound, v.bound)
	certain := distance(off, 0) - bound
	if bound == model.NoBound || certain <= w.opt.Skew.Nanoseconds() || !v.against(certain) {
		return nil
	}
	f := w.off(seg, off, bound)
	f.action = "check the time service of the host (chronyc tracking, timedatectl) and which server it follows"
	return f
}

// differ: of two clocks nothing tells which one is off, so both are named.
func (w *watch) differ(tr *track, v *vote, other wall) *fault {
	seg := tr.last()
	last := seg.last()
	off := -last.offset - (&knot{x: v.median.x, off: other.offset, slope: other.drift}).at(last.at+last.offset)
	bound := plus(last.bound, other.bound)
	if bound == model.NoBound || distance(off, 0)-bound <= w.opt.Skew.Nanoseconds() {
		return nil
	}
	f := w.off(seg, off, bound)
	f.evidence.Other, f.evidence.Undecided = other.clock, true
	f.action = "one of two real-time clocks is off, and nothing tells which: check the time services of both hosts"
	return f
}

func (w *watch) off(seg *segment, off, bound int64) *fault {
	return &fault{
		size: math.Abs(float64(off)),
		evidence: evidence.Clock{
			Timeline: seg.scale.name, Offset: float64(off) / 1e9, Bound: float64(bound) / 1e9,
			Threshold: w.opt.Skew.Seconds(), Walls: seg.scale.walls(),
		},
	}
}

func plus(a, b int64) int64 {
	if a == model.NoBound || b == model.NoBound || a > model.NoBound-b {
		return model.NoBound
	}
	return a + b
}

// drift: a clock that runs faster or slower than the median of its kind by more than an
// oscillator may, or a real-time clock by more than it is slewed. Oscillators are compared
// with oscillators: the time service of a site may slew all its real-time clocks alike.
// The timeline's own pace is not used: it too is slewed.
func (w *watch) drift(tr *track) *fault {
	seg := tr.last()
	last, v := seg.last(), seg.scale.vote
	if tr.name.daemon || last.until <= last.from {
		return nil
	}
	limit, action := w.opt.Drift, "the oscillator is defective, or the clock source of the kernel is wrong"
	if tr.name.realtime {
		action = "the time service slews the clock at more than 500 ppm: see what made it so wrong (chronyc tracking)"
	}
	var median float64
	switch raws := w.raws[seg.scale]; {
	case tr.name.raw && raws.decides():
		median = raws.median
	case v != nil && v.againstRate():
		median, limit = v.median.slope, limit+maxSlew
	default:
		return nil
	}
	drift := -last.drift - median
	// Both ends of the window are within the bound.
	bound := 2 * float64(last.bound) / float64(last.until-last.from)
	if math.Abs(drift) <= bound+limit {
		return nil
	}
	return &fault{
		size: math.Abs(drift),
		evidence: evidence.Clock{
			Timeline: seg.scale.name, Drift: drift * 1e6, DriftBound: bound * 1e6, Limit: limit * 1e6,
			Walls: seg.scale.walls(), Raws: w.raws[seg.scale].clocks,
		},
		action: action,
	}
}

// unproved reports whether a clock was untrusted before a restart, and was not compared with others since:
// what its open finding says stays.
func (t *track) unproved() bool {
	return t.restored && t.untrusted && len(t.evidence) == 0 && !t.restless()
}

func untrusted(tr *track) *fault {
	f := &fault{action: "compare the clock's stamps with those of its neighbours; until they agree its spans stay where they are"}
	if tr.restless() {
		f.evidence.Steps = tr.steps
		f.action = "a clock that nobody sets went back and forth: see whether two machines bear this host and boot id"
	}
	for _, e := range tr.evidence {
		f.size = max(f.size, float64(e.Excess))
		f.evidence.Contradicts = append(f.evidence.Contradicts, evidence.Contradiction{Clock: e.Other, Source: e.Source, Excess: float64(e.Excess) / 1e9})
	}
	return f
}
