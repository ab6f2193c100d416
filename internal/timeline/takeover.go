// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// takeOver returns a timeline that goes on from the models of the leader before.
func (t *Timeline) takeOver() *Timeline {
	opt := t.opt
	opt.Shared, opt.steered = false, true
	solver := New(opt)
	t.mu.RLock()
	defer t.mu.RUnlock()
	now := opt.Now()
	s := snapshot{Taken: now.UnixNano()}
	r := restored{growth: solver.growth, now: now, forget: opt.Forget, history: opt.History, scales: map[string]*scale{}, tracks: map[string]*track{}, hosts: map[string]string{}}
	for _, sc := range t.scales {
		if saved, ok := t.continued(sc); ok && r.scale(&saved) == nil {
			s.Scales = append(s.Scales, saved)
		}
	}
	for _, tr := range t.tracks {
		if saved, ok := tr.continued(&r); ok {
			if err := r.clock(&saved); err != nil {
				t.stats.Refused.Add(1)
			}
		}
	}
	solver.adopt(&s, &r, newWatch(&solver.opt))
	return solver
}

// restsOn returns the clock that a timeline rests on, and how often it was set anew.
func restsOn(timeline string) (clock string, epoch int) {
	clock, _ = strings.CutPrefix(timeline, Prefix)
	if at := strings.LastIndexByte(clock, '#'); at >= 0 {
		n := 0
		for _, c := range clock[at+1:] {
			if c < '0' || c > '9' || n > maxEpochs/10 {
				return clock, 0
			}
			n = 10*n + int(c-'0')
		}
		if n > 1 {
			return clock[:at], n - 1
		}
	}
	return clock, 0
}

// continued returns a scale of the leader before as one that is solved here. Its line is that of the clock that it
// rests on: where nothing is known of that one, clocks begin anew, on a scale of another name. The caller holds mu.
func (t *Timeline) continued(sc *scale) (savedScale, bool) {
	reference, epoch := restsOn(sc.name)
	ref := t.tracks[reference]
	if !sc.foreign || ref == nil || ref.untrusted || len(ref.segments) == 0 || ref.last().scale != sc {
		return savedScale{}, false
	}
	w := ref.last().last()
	return savedScale{
		Reference: reference, Name: sc.name, Anchored: sc.anchored, Epoch: epoch, Asked: w.until, Settled: w.at,
		Knots: []savedKnot{{At: w.at, Offset: w.offset, Slope: clamp(w.drift)}},
	}, true
}

// continued returns a clock as its last model has it, against the reference of its scale. The caller holds mu.
func (t *track) continued(r *restored) (savedClock, bool) {
	if len(t.segments) == 0 || !t.foreign {
		return savedClock{}, false
	}
	reference, _ := restsOn(t.last().scale.name)
	sc := r.scales[reference]
	if sc == nil || sc.name != t.last().scale.name || sc.anchored != t.last().scale.anchored {
		return savedClock{}, false
	}
	w := t.last().last()
	at := sc.reading(w.at + w.offset)
	offset, drift := at-w.at, (1+w.drift)/(1+sc.pace(at))-1
	saved := savedClock{
		Clock: t.id, Scale: reference, Heard: t.heard.UnixNano(), Asked: w.until, Settled: w.at,
		Knots: []savedKnot{{At: w.at, Offset: offset, Slope: max(leastSlope, min(maxLineSlope, drift))}}, Untrusted: t.untrusted, Steps: t.steps,
		Window: savedWindow{From: w.from, Until: w.until, At: w.at, Offset: offset, Drift: drift, Growth: w.growth, Sigma: w.sigma},
	}
	if w.bound != model.NoBound {
		saved.Window.Bound = &w.bound
	}
	return saved, true
}
