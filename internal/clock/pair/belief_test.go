// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Stamps whose error lasts for a second: even and odd cells have it alike. Sigma
// must not be much less than the error, nor much more.
func TestSigmaOfStampsThatAreWrongForLong(t *testing.T) {
	for _, wrong := range []float64{0, 40, 400} {
		r := rand.New(rand.NewPCG(5, 5))
		tr := &truth{base: 3_700_000, origin: origin, changes: []change{{origin, 20e-6, 0}}}
		errors := make([]int64, 130)
		for i := range errors {
			errors[i] = int64(wrong * (2*r.Float64() - 1))
		}
		e, width := New(Config{}), int64(wrong)
		var scores []float64
		for window := range int64(60) {
			for n := range int64(1000) {
				at := origin + window*2*second + n*2_000_000
				by := errors[(at-origin)/second]
				e.Upper(at, tr.dst(at+veth(r))+by, width)
				e.Lower(at+20_000+veth(r), tr.dst(at+20_000)+by, width)
			}
			for _, o := range e.Close(origin + (window+1)*2*second) {
				if o.Provisional || window < 20 {
					continue
				}
				require.Zero(t, tr.outside(o, o.At))
				scores = append(scores, float64(o.Offset-tr.offset(o.At))/o.Sigma)
			}
		}
		require.Greater(t, len(scores), 30)
		sum := 0.0
		for _, z := range scores {
			sum += z * z
		}
		score := math.Sqrt(sum / float64(len(scores)))
		t.Logf("wrong by %v ns: errors of %.2f sigmas", wrong, score)
		assert.Less(t, score, 2.0, "wrong by %v ns", wrong)
		assert.Greater(t, score, 0.1, "wrong by %v ns", wrong)
	}
}

// Two stamps in whole units of 1 us leave the offset open by that much, whatever
// agrees.
func TestSigmaOfCoarseStamps(t *testing.T) {
	const unit = 1000
	e, n := New(Config{Resolution: unit}), 0
	for window := range int64(20) {
		for k := range int64(200) {
			at := origin + window*2*second + k*10_000_000
			e.Upper(at, at+5*unit, 0)
			e.Lower(at+2*unit, at-3*unit, 0)
		}
		for _, o := range e.Close(origin + (window+1)*2*second) {
			if !o.Provisional {
				n++
				assert.GreaterOrEqual(t, o.Sigma, unit/math.Sqrt(6))
			}
		}
	}
	assert.Positive(t, n)
}

// One sample among however few is dropped, and of several no more than one in
// twenty.
func TestShareOfLiars(t *testing.T) {
	for _, tt := range []struct {
		samples, lies int
		want          int64
	}{
		{9, 1, 1}, {60, 1, 1}, {60, 2, 2}, {60, 3, 3}, {60, 4, 0},
	} {
		e := New(Config{})
		// Lies are upper samples, each amid lower ones that contradict it.
		truthful := tt.samples - tt.lies
		for i := range truthful {
			at := origin + int64(i)*10_000_000
			e.Lower(at, at-500, 0)
		}
		for i := range tt.lies {
			at := origin + int64(4+i*(truthful-8)/max(tt.lies, 1))*10_000_000 - 1
			e.Upper(at, at-90_000, 0)
		}
		e.Close(origin + 2*second)
		assert.Equal(t, tt.want, e.Stats().Liars, "%d of %d", tt.lies, tt.samples)
	}
}
