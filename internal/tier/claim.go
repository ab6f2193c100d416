// SPDX-License-Identifier: Apache-2.0

package tier

import (
	"math"
	"testing"
)

// Claim is a statement about the share of trials that succeed.
type Claim struct {
	// Full is the share, 0 to 1, that the full tier requires of all its trials.
	Full float64
	// Holds and Fails are the shares between which the quick tier decides, Fails < Holds:
	// a true share of Holds or more passes, one of Fails or less fails. That the test decides
	// before the trials run out and is wrong has a probability of Error/(1-Error) at most, by
	// Wald's bounds, where the trials are independent.
	Holds, Fails float64
	// Error sets the probability of a wrong decision, 0 to 0.5.
	Error float64
}

// Check runs trials 0 to n-1 in the full tier and requires the share Full of them.
// In the quick tier it runs as many of them, one after the other, as Wald's sequential
// probability ratio test needs (Annals of Mathematical Statistics 16, 1945). Where all n
// do not decide, the share of all n decides against Full.
func (c Claim) Check(tb testing.TB, n int, trial func(i int) bool) {
	tb.Helper()
	if !(0 < c.Fails && c.Fails < c.Holds && c.Holds < 1 && c.Fails < c.Full && c.Full <= 1 && 0 < c.Error && c.Error < 0.5) {
		tb.Fatalf("check claim: got %+v; want 0 < Fails < Holds < 1, Fails < Full <= 1 and 0 < Error < 0.5", c)
	}
	if n < 1 {
		tb.Fatalf("check claim: got %d trials; want at least 1", n)
	}
	passed, tried, decided := c.run(n, Full(tb), trial)
	switch {
	case decided > 0:
	case decided < 0:
		tb.Errorf("check claim: %d of %d trials succeeded, which refutes a share of %g (error %g)", passed, tried, c.Holds, c.Error)
	case passed < atLeast(c.Full, tried):
		tb.Errorf("check claim: got %d of %d trials that succeeded; want a share of %g", passed, tried, c.Full)
	}
}

// atLeast returns how many of n are a share, whatever the product's last bits.
func atLeast(share float64, n int) int { return int(math.Ceil(share*float64(n) - 1e-9)) }

// run counts the trials that succeeded and those that ran. decided is 1 where the
// sequential test accepts the claim, -1 where it refutes it, 0 where it never decides.
func (c Claim) run(n int, all bool, trial func(i int) bool) (passed, tried, decided int) {
	accept := math.Log((1 - c.Error) / c.Error)
	success := math.Log(c.Holds / c.Fails)
	failure := math.Log((1 - c.Holds) / (1 - c.Fails))
	ratio := 0.0
	for i := range n {
		tried++
		if trial(i) {
			passed++
			ratio += success
		} else {
			ratio += failure
		}
		switch {
		case all:
		case ratio >= accept:
			return passed, tried, 1
		case ratio <= -accept:
			return passed, tried, -1
		}
	}
	return passed, tried, 0
}
