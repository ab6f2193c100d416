// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/stats"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// soakJobs returns how many healthy jobs of each kind are judged: those of the tier, or
// as many as LOCKSTEP_SOAK_JOBS says, which is for measuring rates.
func soakJobs(t *testing.T) int {
	t.Helper()
	text := os.Getenv("LOCKSTEP_SOAK_JOBS")
	if text == "" {
		return tier.N(t, 4, 12)
	}
	jobs, err := strconv.Atoi(text)
	require.NoError(t, err, "read LOCKSTEP_SOAK_JOBS")
	return jobs
}

// healthy is a job of four ranks with steps of some 50 ms, judged at every step.
// Every rank's work varies by up to 2 ms either way, and now and then one is held
// up for 10 ms.
type healthy struct {
	spread float64 // ms, either way, of the part of a step before each collective
	hiccup float64 // share of ranks' steps with one
	waits  bool    // wire waits are recorded
	live   bool
}

func (h healthy) programs(rng *rand.Rand) []program {
	out := make([]program, 4)
	for r := range out {
		host, device := 4.0, 26.0
		if rng.Float64() < h.hiccup {
			if rng.IntN(2) == 0 {
				host += 10
			} else {
				device += 10
			}
		}
		vary := func(x float64) float64 { return max(0, x+h.spread*(2*rng.Float64()-1)) }
		out[r] = fmt.Sprintf("h%.3f:data_loading c%.3f * c%.3f * c5", vary(host), vary(device), vary(12))
		if h.live {
			out[r] = fmt.Sprintf("h%.3f:data_loading c%.3f h1:forward * c%.3f h1:backward * c5 s", vary(host), vary(device), vary(12))
		}
	}
	return out
}

// accused runs the job and returns how many findings opened.
func (h healthy) accused(t *testing.T, seed uint64, steps int64) (opened int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 70))
	w := newWorld(t, 4)
	if h.live {
		w = liveWorld(t, 4)
	}
	for n := range steps {
		if h.waits {
			w.ring = ring(rng, nil)
		}
		w.step(n, h.programs(rng)...)
		for _, v := range w.e.Verdicts() {
			if v.Finding.Status == "open" && v.Finding.Rank.OK {
				opened++
			}
		}
	}
	return opened
}

// The significance gate alone allows 1 % of windows of 64 steps, that is, three in
// a hundred jobs of 200 steps; the effect gates are to leave less of that where
// the noise is below them.
func TestHealthyJobsJudgedAtEveryStep(t *testing.T) {
	const steps = 200
	jobs := soakJobs(t)
	for name, tc := range map[string]struct {
		healthy
		most int // of 50 jobs, those with a finding
	}{
		"recorded":                 {healthy{spread: 2, hiccup: 0.02}, 0},
		"live":                     {healthy{spread: 2, hiccup: 0.02, waits: true, live: true}, 0},
		"live, held up often":      {healthy{spread: 2, hiccup: 0.1, waits: true, live: true}, 1},
		"noise as large as a gate": {healthy{spread: 8, hiccup: 0.1, waits: true, live: true}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			named := 0
			for seed := range jobs {
				if tc.accused(t, uint64(seed), steps) > 0 {
					named++
				}
			}
			t.Logf("jobs with a finding: %d of %d, each judged %d times", named, jobs, steps)
			assert.LessOrEqual(t, named, (tc.most*jobs+49)/50)
		})
	}
}

// Which of four ranks is worst in a step is drawn. Passed is the gate of
// significance alone, judged at every step over the last 64.
func TestRepeatedLooks(t *testing.T) {
	const windows, steps, ranks = 20000, 64, 4
	tail := make([][]float64, steps+1)
	for n := range tail {
		tail[n] = make([]float64, n+1)
		for k := range tail[n] {
			tail[n][k] = stats.BinomialTailSum(k, n, 1.0/ranks)
		}
	}
	passed := func(rng *rand.Rand) bool {
		top := make([]int, ranks)
		for n := 1; n <= steps; n++ {
			r := rng.IntN(ranks)
			top[r]++
			if n >= minTrials && float64(ranks*min(n, maxLooks))*tail[n][top[r]] <= NewDefaultConfig().MaxFalseAlarm {
				return true
			}
		}
		return false
	}
	rng := rand.New(rand.NewPCG(1, 70))
	alarms := 0
	for range windows {
		if passed(rng) {
			alarms++
		}
	}
	t.Logf("false alarms of the significance gate: %d in %d windows of %d steps", alarms, windows, steps)
	// 1 % of the windows, and twice the standard error of that.
	assert.LessOrEqual(t, alarms, 228)
}
