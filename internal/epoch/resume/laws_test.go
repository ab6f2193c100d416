// SPDX-License-Identifier: Apache-2.0

package resume

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// cases is how many random cases each law is tried on.
func cases(t *testing.T) int {
	t.Helper()
	return tier.N(t, 5_000, 100_000)
}

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 85)) }

func randomLife(r *rand.Rand) life {
	l := life{name: "p", first: int64(r.IntN(3)), host: fmt.Sprint(r.IntN(2))}
	for range r.IntN(3) { // 0: it has told nothing; 2: it may contradict itself
		v := told(0, 0, int64(r.IntN(2)), number(int64(1+r.IntN(3))))
		if r.IntN(2) == 0 {
			updates(int64(r.IntN(2)))(v)
		}
		if r.IntN(2) == 0 {
			data(fmt.Sprint(r.IntN(2)), fmt.Sprint(r.IntN(2)), fmt.Sprint(r.IntN(2)))(v)
		}
		l.loaded = l.loaded.join(loadedOf(v))
	}
	return l
}

// TestLawsOfLives: the join of what a process told is commutative, associative and idempotent, never
// below what it joins, and the zero value is the least.
func TestLawsOfLives(t *testing.T) {
	r := source(1)
	join := func(a, b life) life { a.join(&b); return a }
	for range cases(t) {
		a, b, c := randomLife(r), randomLife(r), randomLife(r)
		require.Equal(t, join(a, b), join(b, a), "commutative: %v %v", a, b)
		require.Equal(t, join(join(a, b), c), join(a, join(b, c)), "associative: %v %v %v", a, b, c)
		require.Equal(t, a, join(a, a), "idempotent: %v", a)
		require.Equal(t, join(a, b), join(a, join(a, b)), "monotone: %v %v", a, b)
		require.Equal(t, a.loaded, loaded{}.join(a.loaded), "the least: %v", a)
		require.Equal(t, join(a, b) != a, a.join(&b), "changes are noticed")
	}
}

// history is what some ranks told in some of their lives.
func history(r *rand.Rand) []*model.Resume {
	out := make([]*model.Resume, r.IntN(16))
	for i := range out {
		n := int64(r.IntN(4))
		out[i] = told(n, int64(r.IntN(2)*4), int64(r.IntN(2)), number(int64(1+r.IntN(2))),
			process(fmt.Sprint("process ", n, r.IntN(2)), int64(r.IntN(3))), data(fmt.Sprint(r.IntN(2)), fmt.Sprint(r.IntN(2)), ""))
	}
	return out
}

func TestOrderAndDuplicatesAreNothing(t *testing.T) {
	r := source(2)
	mixed := 0
	for range cases(t) {
		all := history(r)
		straight := judged(all...)
		again := append([]*model.Resume{}, all...)
		for range r.IntN(4) {
			if len(all) > 0 {
				again = append(again, all[r.IntN(len(all))])
			}
		}
		r.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		require.Equal(t, straight, judged(again...))
		if straight.Verdict == epoch.MixedEpoch {
			mixed++
		}
	}
	require.Greater(t, mixed, cases(t)/20, "the test tries too few that are mixed")
}

// TestLossAccusesNobody: of a job whose ranks have loaded what they have, whatever part is heard,
// mixed is said only where they differ, converged only where all were heard and agree, and who is
// named holds what most do not.
func TestLossAccusesNobody(t *testing.T) {
	r := source(3)
	converged, named := 0, 0
	for range cases(t) {
		n := int64(1 + r.IntN(6))
		truth, count := make([]int64, n), map[int64]int64{}
		for i := range truth {
			if r.IntN(5) == 0 {
				truth[i] = 1 + int64(r.IntN(2))
			}
			count[truth[i]]++
		}
		e, heard := New(Config{}), map[int64]bool{}
		for range r.IntN(4 * int(n)) {
			i := int64(r.IntN(int(n)))
			heard[i] = true
			e.Observe(told(i, n, truth[i]))
		}
		seen := map[int64]bool{}
		for i := range heard {
			seen[truth[i]] = true
		}
		j := e.Judge(key)
		require.Equal(t, len(seen) > 1, j.Verdict == epoch.MixedEpoch, "%v heard %v", truth, heard)
		require.Equal(t, len(heard) == int(n) && len(count) == 1, j.Verdict == epoch.Converged, "%v heard %v", truth, heard)
		if j.Verdict == epoch.Converged {
			converged++
		}
		for _, i := range j.Minority {
			named++
			require.Less(t, 2*count[truth[i]], n, "rank %d of %v", i, truth)
		}
		if len(heard) == int(n) { // and all of them, where most agree
			for v, c := range count {
				if 2*c > n {
					require.Len(t, j.Minority, int(n-c), "%v: most hold %d", truth, v)
				}
			}
		}
	}
	require.Greater(t, converged, cases(t)/20)
	require.Greater(t, named, cases(t)/20)
}

func BenchmarkJudge(b *testing.B) {
	e := New(Config{})
	for i := range int64(16384) {
		e.Observe(told(i, 16384, 7+i/16383, updates(7), data(fmt.Sprint(i/8), "1", fmt.Sprintf("%032x", i/8))))
	}
	b.ReportAllocs()
	for b.Loop() {
		if e.Judge(key).MinorityCount != 1 {
			b.Fatal("the last rank loaded another step")
		}
	}
}
