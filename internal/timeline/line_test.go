// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever models come, a line increases, does not move up to what is frozen, and
// meets the model.
func TestLine(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var l line
		at := rng.Int64N(1e15)
		size := []float64{100, 1e6, 1e9, 5e10}[seed%4]
		for range 30 {
			at += sec + rng.Int64N(windowN)
			frozen := at + rng.Int64N(4*sec) - 2*sec
			if len(l.knots) == 0 {
				l.follow(at, epoch, 0, frozen, 40)
				continue
			}
			before := map[int64]int64{}
			for range 20 {
				x := max(frozen, l.settled) - rng.Int64N(5*sec)
				before[x] = l.offset(x)
			}
			offset, drift := epoch+int64(rng.NormFloat64()*size), rng.NormFloat64()*1e-5
			l.follow(at, offset, drift, frozen, 40)
			for x, y := range before {
				require.Equal(t, y, l.offset(x), "what was placed stays")
			}
			for range 50 {
				x := at + rng.Int64N(8*sec) - 4*sec
				require.LessOrEqual(t, x+l.offset(x), x+1+l.offset(x+1))
				require.LessOrEqual(t, x+l.offset(x), x+1000+l.offset(x+1000))
			}
			far := at + int64(1e12)
			model := knot{x: at, off: offset, slope: drift}
			require.InDelta(t, float64(model.at(far)-offset), float64(l.offset(far)-offset), 2, "it meets the model")
			require.LessOrEqual(t, len(l.knots), 40)
		}
	}
}

func TestLineInverse(t *testing.T) {
	l := line{knots: []knot{{x: 1000, off: epoch, slope: 4e-4}, {x: 1e9, off: epoch + 4e5, slope: -4e-4}}}
	for _, x := range []int64{0, 1000, 5e8, 1e9, 3e9, 1e13} {
		assert.InDelta(t, 0, float64(l.inverse(x+l.offset(x))-x), 1)
	}
}

// What was asked for stays where it was on the scale too, and what comes is steered.
func TestScaleStays(t *testing.T) {
	var s scale
	opt := DefaultOptions()
	s.follow(0, elect(0, []wall{{offset: epoch}}, &opt))
	s.asked.Store(5 * sec)
	before := s.time(5 * sec)
	s.follow(2*sec, elect(2*sec, []wall{{offset: epoch + 20_000_000}}, &opt))
	assert.Equal(t, before, s.time(5*sec))
	assert.InDelta(t, 500_000, float64(s.time(6*sec)-before-sec), 1, "20 ms are steered at 500 ppm")
}

// TestSteerBeforeTheFirstKnot: what is known is from the future; what stands up to now
// stays, and what is saved can be restored.
func TestSteerBeforeTheFirstKnot(t *testing.T) {
	l := line{}
	l.follow(1000*sec, 5000, 1e-6, 1000*sec, maxScaleKnots)
	before := l.offset(90 * sec)
	l.settled = 0
	l.steer(100*sec, -1e-6, maxScaleKnots)
	assert.Equal(t, before, l.offset(90*sec))
	assert.Equal(t, l.offset(100*sec)-200_000, l.offset(300*sec))
	assert.Equal(t, l.offset(100*sec)-1_000_000, l.offset(1100*sec))
	l.steer(200*sec, 0, maxScaleKnots)
	assert.Equal(t, before, l.offset(90*sec))
	assert.Equal(t, l.offset(200*sec), l.offset(900*sec))
	_, err := readKnots(saveKnots(&l), saveSettled(&l), maxSlew)
	assert.NoError(t, err)
}

// TestRefine: a better estimate of the same time is followed by a share of its noise,
// however wide the bound, as long as there are knots to spare.
func TestRefine(t *testing.T) {
	const bound, sigma = 1_000_000, 16_000
	seg := newSegment(&scale{anchored: true})
	w := window{until: 1000, at: 500, bound: bound, sigma: sigma}
	seg.windows = []window{w}
	seg.line.follow(w.at, 0, 0, w.at, mostKnots(1))
	frozen := int64(0)
	refine := func(offset int64) (now int64) {
		frozen += 2 * catchUp
		w.offset = offset
		seg.refine(w, frozen, 1)
		return seg.line.offset(frozen + catchUp)
	}
	assert.Zero(t, refine(sigma/16), "noise is not followed")
	assert.EqualValues(t, sigma/8, refine(sigma/8))
	now := int64(sigma / 8)
	for len(seg.line.knots)+2 <= mostKnots(1) {
		next := sigma - now
		now = refine(next)
		require.Equal(t, next, now)
	}
	assert.Equal(t, now, refine(sigma-now), "no knots to spare")
	assert.EqualValues(t, bound, refine(bound), "what matters to the bound is followed")
	assert.LessOrEqual(t, len(seg.line.knots), mostKnots(1))
}

// TestSigmaOnTheWay: what stands between two estimates errs by more than either.
func TestSigmaOnTheWay(t *testing.T) {
	seg := newSegment(&scale{foreign: true})
	seg.windows = []window{{until: 1000, at: 500, offset: 40_000, bound: 1_000_000, sigma: 30_000}}
	seg.line.follow(500, 0, 0, 500, mostKnots(1))
	assert.InDelta(t, 50_000, seg.place(500).sigma, 1)
	seg.line.follow(500, 40_000, 0, 1000, mostKnots(1))
	assert.InDelta(t, 30_000, seg.place(1000+2*catchUp).sigma, 0)
}

// TestPiece: a piece begins at its knot, the first one before all of them.
func TestPiece(t *testing.T) {
	l := line{knots: []knot{{x: 10}, {x: 20}, {x: 30}}}
	for x, want := range map[int64]int64{-5: 10, 10: 10, 19: 10, 20: 20, 29: 20, 30: 30, 99: 30} {
		assert.Equal(t, want, l.piece(x).x, "at %d", x)
	}
}
