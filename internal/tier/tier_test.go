// SPDX-License-Identifier: Apache-2.0

package tier

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorder is a testing.TB that keeps failures instead of reporting them.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Fatalf(string, ...any) { r.failed = true }

func TestN_EachTier_ReturnsItsNumber(t *testing.T) {
	for value, want := range map[string]int{"": 3, "quick": 3, "full": 50} {
		t.Setenv(Env, value)
		assert.Equal(t, want, N(t, 3, 50), "%s=%q", Env, value)
	}
}

func TestN_UnknownTier_Fails(t *testing.T) {
	t.Setenv(Env, "ful")
	r := &recorder{TB: t}

	N(r, 3, 50)

	require.True(t, r.failed)
}

var claim = Claim{Full: 0.9, Holds: 0.95, Fails: 0.8, Error: 0.01}

// outcomes returns a trial that succeeds with the given probability.
func outcomes(seed uint64, share float64) func(int) bool {
	random := rand.New(rand.NewPCG(seed, 1))
	return func(int) bool { return random.Float64() < share }
}

// Of 2,000 claims at each of the two shares 20 may be decided wrongly; 34 is three standard
// deviations of that count above. By Wald's formula (1-2e)*ln((1-e)/e)/drift a true claim
// takes 48 trials on average and a false one 32, with drifts of 0.094 and 0.140 a trial; the
// last trial overshoots, by a quarter at most here.
func TestClaim_TrueShareAtItsEnds_ErrsAndStopsAsStated(t *testing.T) {
	const claims = 2000
	for _, end := range []struct {
		share   float64
		decided int
		trials  float64
	}{{claim.Holds, 1, 48}, {claim.Fails, -1, 32}} {
		wrong, trials := 0, 0
		for seed := range uint64(claims) {
			_, n, decided := claim.run(100_000, false, outcomes(seed, end.share))
			if decided != end.decided {
				wrong++
			}
			trials += n
		}
		assert.LessOrEqual(t, float64(wrong), claims*claim.Error*1.7, "share %g", end.share)
		assert.InDelta(t, end.trials, float64(trials)/claims, end.trials/4, "share %g", end.share)
	}
}

func TestClaim_Full_RunsAllAndHoldsThemAgainstFull(t *testing.T) {
	t.Setenv(Env, "full")
	ran := 0
	r := &recorder{TB: t}

	claim.Check(r, 100, func(i int) bool { ran++; return i >= 11 })

	require.Equal(t, 100, ran)
	require.True(t, r.failed, "89 of 100 are less than 0.9")

	r = &recorder{TB: t}
	claim.Check(r, 100, func(i int) bool { return i >= 10 })
	require.False(t, r.failed, "90 of 100 are 0.9")
}

func TestClaim_Quick_StopsWhereItIsDecided(t *testing.T) {
	t.Setenv(Env, "")
	for _, share := range []float64{0, 1} {
		ran := 0
		r := &recorder{TB: t}

		claim.Check(r, 1000, func(int) bool { ran++; return share == 1 })

		assert.Less(t, ran, 50)
		assert.Equal(t, share == 0, r.failed)
	}
}

func TestClaim_QuickUndecided_HoldsAllAgainstFull(t *testing.T) {
	t.Setenv(Env, "")
	r := &recorder{TB: t}

	claim.Check(r, 2, func(i int) bool { return i == 0 })

	require.True(t, r.failed, "one of two is less than 0.9")
}

func TestClaim_Nonsense_Fails(t *testing.T) {
	t.Setenv(Env, "full")
	succeeds := func(int) bool { return true }
	for name, c := range map[string]Claim{
		"holds less than fails":     {Full: 0.95, Holds: 0.8, Fails: 0.9, Error: 0.01},
		"full that nothing refutes": {Holds: 0.95, Fails: 0.8, Error: 0.01},
		"full above one":            {Full: 1.1, Holds: 0.95, Fails: 0.8, Error: 0.01},
		"error of a coin":           {Full: 0.9, Holds: 0.95, Fails: 0.8, Error: 0.5},
	} {
		r := &recorder{TB: t}
		c.Check(r, 10, succeeds)
		require.True(t, r.failed, name)
	}
	r := &recorder{TB: t}
	claim.Check(r, 0, succeeds)
	require.True(t, r.failed, "no trial")
}

// 0.28 times 100 is 28.000000000000004.
func TestAtLeast_ExactShare_IsEnough(t *testing.T) {
	require.Equal(t, 28, atLeast(0.28, 100))
	require.Equal(t, 29, atLeast(0.281, 100))
	require.Equal(t, 10, atLeast(1, 10))
}
