// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/straggler/blame"
)

// question asks what a step would take less with so much mended. The key says of whom it is.
type question struct {
	key   string
	mends func(rec *record) []blame.Mend
}

// answer is what a step would be shorter by, s, and what was taken to be mended then.
type answer struct {
	saved float64
	of    uint64
}

// mended asks what mending all of the candidates saves.
func (j *job) mended(of []*candidate) question { return question{"all of " + names(of), j.mendsOf(of)} }

// without returns what steps would take less with so much mended, s; false where not all
// operations of the last walked step are in a graph, or it is none of the stretch's. Where the
// same was asked about in several steps it is their mean.
func (j *job) without(in stretch, q question) (float64, bool) {
	return j.walks.mean(in, j.ask(in, q), func(step *walkedStep) (float64, bool) {
		x, ok := step.without[q.key]
		return x.saved, ok
	})
}

// gained returns what steps would take less with the one mended than with the other, s. Steps
// differ in what they cost by more than the two do, so that both are asked of the same ones.
func (j *job) gained(in stretch, more, less question) (float64, bool) {
	return j.walks.mean(in, j.ask(in, more) && j.ask(in, less), func(step *walkedStep) (float64, bool) {
		x, had := step.without[more.key]
		y, has := step.without[less.key]
		return max(0, x.saved) - max(0, y.saved), had && has
	})
}

// mean returns the mean over the walked steps of the stretch for which it is known.
func (w *walks) mean(in stretch, asked bool, of func(*walkedStep) (float64, bool)) (float64, bool) {
	if !asked {
		return 0, false
	}
	sum, n := 0.0, 0
	for i := range w.steps {
		step := &w.steps[i]
		if x, ok := of(step); ok && step.step >= in[0].step {
			sum, n = sum+x, n+1
		}
	}
	if n == 0 {
		return 0, false
	}
	return max(0, sum/float64(n)), true
}

// ask notes the answer of the last step that was walked; false where it has none. Who is
// asked about again may have other ranks by now, or be slow by more: then the answer is too.
func (j *job) ask(in stretch, q question) bool {
	w := &j.walks
	if len(w.steps) == 0 {
		return false
	}
	last := &w.steps[len(w.steps)-1]
	at := slices.IndexFunc(in, func(rec *record) bool { return rec.step == last.step })
	if at < 0 || !last.replayed {
		return false
	}
	mends := q.mends(in[at])
	of := hashMends(mends)
	if known, ok := last.without[q.key]; ok && known.of == of {
		return true
	}
	if w.last == nil {
		w.last = blame.Build(&w.graph.Step, blame.Options{MaxOps: 2 * walkBudget, Alike: j.keys.alike})
	}
	if last.without == nil {
		last.without = map[string]answer{}
	}
	last.without[q.key] = answer{saved: w.last.Saved(mends...), of: of}
	return true
}

// hashMends tells apart what is mended.
func hashMends(mends []blame.Mend) (h uint64) {
	for i := range mends {
		m := &mends[i]
		h = mix(h, uint64(m.Rank), uint64(m.Peer))
		h = mix(h, uint64(m.Kind), uint64(m.Stage))
		h = mix(h, math.Float64bits(m.Scale), uint64(len(m.Less)))
		if m.Only {
			h = mix(h, uint64(m.Place), 1)
		}
		sum := uint64(0) // in whatever order
		for at, by := range m.Less {
			sum += mix(0, uint64(at), uint64(by))
		}
		h = mix(h, sum, 0)
	}
	return h
}
