// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// An engine that looks at every open step after each message closes the same steps at the same messages.
func TestCloseDue_AnyOrder_ClosesWhatLookingAtAllDoes(t *testing.T) {
	for seed := range uint64(tier.N(t, 60, 2000)) {
		random := rand.New(rand.NewPCG(seed, 1))
		now := time.Unix(2000, 0)
		cfg := NewDefaultConfig()
		cfg.JudgeEvery, cfg.Reorder, cfg.MaxOpenSteps = 1, time.Duration(random.IntN(3))*time.Second, 3+random.IntN(20)
		cfg.Deadline = 5 * time.Second
		clock := func() time.Time { return now }
		some, all := New(cfg, clock), New(cfg, clock)
		var got, want []string
		note := func(to *[]string, reports []*StepReport) {
			for _, r := range reports {
				*to = append(*to, fmt.Sprintf("step %d over %d at %v", r.Step, len(r.Ranks), now.Sub(time.Unix(2000, 0))))
			}
		}
		for i := range int64(400) {
			now = now.Add(time.Duration(random.IntN(100)) * time.Millisecond)
			if random.IntN(20) == 0 {
				now = now.Add(time.Duration(random.IntN(3000)) * time.Millisecond)
				note(&got, some.Expire())
				note(&want, all.Expire())
			}
			if random.IntN(50) == 0 {
				some.Touch()
				all.Touch()
			}
			step := func() int64 { return i/8 + random.Int64N(6) }
			rank, ops := partOf(random.Int64N(4), step())
			if seed%3 == 0 && i < 60 {
				rank.WorldSize = model.Optional[int64]{}
			}
			if random.IntN(4) == 0 { // in two messages
				ops = ops[random.IntN(len(ops)):]
			}
			if random.IntN(4) == 0 { // of two steps
				_, more := partOf(rank.Rank, step())
				ops = append(ops, more...)
			}
			note(&got, some.Add(rank, ops))
			for _, j := range all.jobs {
				for n := range j.open {
					j.look[n] = true
				}
			}
			note(&want, all.Add(rank, ops))
		}
		note(&got, some.Flush())
		note(&want, all.Flush())
		require.Equal(t, want, got, "seed %d", seed)
	}
}

// A message costs as much however many complete steps wait for their turn: the clock, which is read at each step that
// is looked at, is read as often.
func TestCloseDue_WaitingSteps_AreNotLookedAt(t *testing.T) {
	reads := 0
	cfg := NewDefaultConfig()
	cfg.Reorder = 20 * time.Second
	e := New(cfg, func() time.Time {
		reads++
		return time.Unix(2000, 0)
	})
	readsOf := func(rank, step int64) int {
		before := reads
		r, ops := partOf(rank, step)
		require.Empty(t, e.Add(r, ops))
		return reads - before
	}
	var first int
	for s := int64(2); s < 100; s++ { // steps 0 and 1 do not come
		switch n := readsOf(0, s); s {
		case 2: // nothing waits yet
		case 3:
			first = n
		default:
			assert.Equal(t, first, n, "step %d", s)
		}
		for r := int64(1); r < 4; r++ {
			readsOf(r, s)
		}
	}
}
