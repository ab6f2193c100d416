// SPDX-License-Identifier: Apache-2.0

package bilateral

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// What is counted step by step is what there is to be counted, whatever is told in whatever order.
func TestCountsAreThoseOfWhatWasToldLast(t *testing.T) {
	const domains = 3
	r := rand.New(rand.NewPCG(1, 8))
	for range tier.N(t, 1_000, 10_000) {
		b := New(limits)
		last, used := map[string]Tell{}, map[string][]string{}
		for range 1 + r.IntN(40) {
			told := randomTell(r, domains)
			was, known := last[told.Domain]
			former := slices.Contains(used[told.Domain], told.Life) && told.Life != was.Life
			a, err := b.Tell(&told, Until{}, time.Now())
			require.Equal(t, former, err != nil, "%v", err)
			if former {
				continue
			}
			if !known || told.Life != was.Life || told.Sequence > was.Sequence {
				last[told.Domain] = told
			}
			used[told.Domain] = append(used[told.Domain], told.Life)
			requireCounted(t, last, &a, domains)
		}
		for _, j := range b.jobs.All() {
			for at, n := range j.far {
				want := recount(last, at)
				require.Equal(t, want, Count{at, n[Tentative], n[Reflecting], n[Committed]})
			}
		}
	}
}

func requireCounted(t *testing.T, last map[string]Tell, a *Answer, domains int) {
	t.Helper()
	for i := range a.Saves {
		require.Equal(t, recount(last, a.Saves[i].Attempt), a.Saves[i])
	}
	joined := 0
	for _, o := range last {
		if o.Session == a.Session && a.Session != "" {
			joined++
		}
	}
	require.Equal(t, joined, a.Joined)
	require.Equal(t, len(last) == domains, a.Session != "")
}

func randomTell(r *rand.Rand, domains int) Tell {
	token := func(of string) string { at := r.IntN(len(of)); return of[at : at+1] }
	told := Tell{
		Job: "job", Domain: fmt.Sprint(r.IntN(domains)), Domains: domains, Life: token("abc"), Sequence: 1 + r.Int64N(9),
	}
	if r.IntN(3) > 0 {
		told.Session = token("ef")
	}
	for e := range int64(3) {
		if state := r.IntN(int(Committed) + 1); state > 0 {
			told.Slots = append(told.Slots, slot(e, token("ef"), State(state)))
		}
	}
	return told
}

func recount(last map[string]Tell, at Attempt) Count {
	c := Count{Attempt: at}
	for _, o := range last {
		for _, s := range o.Slots {
			if s.Attempt != at {
				continue
			}
			c.Tentative++
			if s.State >= Reflecting {
				c.Reflecting++
			}
			if s.State >= Committed {
				c.Committed++
			}
		}
	}
	return c
}

// BenchmarkCommit is one save of 16,384 domains, from the first that is tentative to the last that is
// committed, as far as it is the board's.
func BenchmarkCommit(b *testing.B) {
	const domains = 1 << 14
	board := New(Config{MaxJobs: 1, MaxDomains: domains, Silent: time.Hour})
	all := make([]Tell, domains)
	for i := range all {
		all[i] = Tell{Job: "job", Domain: fmt.Sprint("rank ", i), Domains: domains, Life: fmt.Sprintf("%x", i)}
	}
	now := time.Now()
	for epoch := int64(1); b.Loop(); epoch++ {
		for state := Tentative; state <= Committed; state++ {
			for i := range all {
				t := &all[i]
				t.Sequence++
				t.Slots = []Slot{slot(epoch, "e", state)}
				if _, err := board.Tell(t, Until{State: min(state+1, Committed), Epoch: epoch}, now); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*3*domains), "µs/tell")
}

// BenchmarkBegin is a job of 4,096 domains that begins anew within a second, on a board that knows its lives of
// before: how many answers each domain is given until all have met.
func BenchmarkBegin(b *testing.B) {
	const domains = 1 << 12
	board := New(Config{MaxJobs: 1, MaxDomains: domains, Silent: time.Hour})
	var answers atomic.Int64
	begin := func(i, n int) {
		t := Tell{Job: "job", Domain: fmt.Sprint("rank ", i), Domains: domains, Life: fmt.Sprintf("%x", n<<16|i)}
		for {
			t.Sequence++
			a, err := board.Wait(b.Context(), &t, Until{})
			if err != nil {
				b.Error(err)
				return
			}
			answers.Add(1)
			if a.Joined == domains {
				return
			}
			t.Session = a.Session
		}
	}
	n := 1
	for ; b.Loop(); n++ {
		var all sync.WaitGroup
		for i := range domains {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Second / domains)
				begin(i, n)
			})
		}
		all.Wait()
	}
	b.ReportMetric(float64(answers.Load())/float64((n-1)*domains), "answers/domain")
}
