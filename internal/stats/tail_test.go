// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBinomialTail_ByHand_IsExact(t *testing.T) {
	for name, tail := range map[string]func(k, n int, p float64) float64{"fraction": BinomialTail, "sum": BinomialTailSum} {
		// P(X>=5 of 8, p=1/8) = (56*7^3 + 28*7^2 + 8*7 + 1) / 8^8.
		assert.InDelta(t, (56*343+28*49+8*7+1)/16777216.0, tail(5, 8, 0.125), 1e-12, name)
		assert.InDelta(t, 1, tail(0, 8, 0.125), 0, name)
		assert.InDelta(t, 1, tail(3, 3, 1), 0, name)
		assert.InDelta(t, 0, tail(4, 3, 0.5), 0, name)
		assert.InDelta(t, 0, tail(1, 3, 0), 0, name)
		assert.InDelta(t, math.Pow(0.5, 60), tail(60, 60, 0.5), 1e-28, name)
	}
}

func TestBinomialTail_BothForms_Agree(t *testing.T) {
	for _, n := range []int{1, 2, 7, 64, 1000} {
		for k := 0; k <= n; k += max(1, n/16) {
			for _, p := range []float64{0.001, 0.125, 0.5, 0.9} {
				want := BinomialTailSum(k, n, p)
				require.InDelta(t, want, BinomialTail(k, n, p), 1e-9*want+1e-300, "P(X >= %d of %d) at %g", k, n, p)
			}
		}
	}
}

// With one degree of freedom the tail is 1/2 - atan(t)/pi, with two (1 - t/sqrt(2+t^2))/2.
func TestStudentTail_OfFewDegrees_IsThatOfTheClosedForm(t *testing.T) {
	for _, x := range []float64{0.1, 1, 2.5, 30} {
		assert.InEpsilon(t, 0.5-math.Atan(x)/math.Pi, StudentTail(x, 1), 1e-9, "%g", x)
		assert.InEpsilon(t, (1-x/math.Sqrt(2+x*x))/2, StudentTail(x, 2), 1e-9, "%g", x)
	}
	assert.InDelta(t, 0.5, StudentTail(0, 3), 0)
	assert.InDelta(t, 0.5, StudentTail(math.NaN(), 3), 0)
	assert.Zero(t, StudentTail(math.Inf(1), 3))
}
