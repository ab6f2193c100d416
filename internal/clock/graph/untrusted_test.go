// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// lied returns the edge as it comes out if clock liar tells the other one a time
// that is lie ns later than its own.
func (w *world) lied(e model.ClockEdge, liar int, lie float64) model.ClockEdge {
	by := int64(lie)
	if e.Src == w.names[liar] {
		by = -by
	}
	e.Offset, e.Lower, e.Upper = e.Offset+by, e.Lower+by, e.Upper+by
	return e
}

func untrustedOf(sol *Solution) (names []string) {
	for _, m := range sol.Models() {
		if m.Untrusted {
			names = append(names, m.Clock)
		}
	}
	return names
}

// others is the root mean square error of all clocks but some, about their own
// mean: the reference's error is in all of them.
func (w *world) others(t *testing.T, sol *Solution, but ...string) float64 {
	t.Helper()
	var errs []float64
	sum := 0.0
	skip := map[string]bool{}
	for _, b := range but {
		skip[b] = true
	}
	for _, m := range sol.Models() {
		if skip[m.Clock] {
			continue
		}
		require.False(t, m.Untrusted, m.Clock)
		e := w.errorOf(t, m, m.At)
		if m.Clock != m.Reference {
			require.LessOrEqual(t, math.Abs(e), float64(m.Bound), m.Clock)
		}
		errs = append(errs, e)
		sum += e
	}
	for i := range errs {
		errs[i] -= sum / float64(len(errs))
	}
	return rms(errs)
}

// A clock that tells different peers different times is marked, and nobody else;
// the others' error grows by less than a tenth. That holds from where the lies
// differ by more than the bounds on the way round: with bounds of h to either side
// on every edge, and peers two edges apart, 4h; five here.
func TestTellsPeersDifferentTimes(t *testing.T) {
	const n, k, half = 64, 10, 1000.0
	var honest, lying []float64
	for seed := range uint64(20) {
		for _, lie := range []float64{0, 5 * half, 1e4 * half} {
			w := newWorld(seed, n)
			s := New(Options{Prefer: []string{w.names[1]}})
			turn := 0.0
			const liar = 0
			for _, p := range w.choices(n, k/2) {
				e := w.edge(p[0], p[1], 1e9, w.noise(half), half)
				if p[0] == liar || p[1] == liar {
					turn++
					e = w.lied(e, liar, lie*math.Mod(turn, 4))
				}
				mustAdd(t, s, e)
			}
			sol := s.Solve()
			require.Empty(t, sol.Undecided(), "seed %d lie %v", seed, lie)
			if lie == 0 {
				require.Empty(t, untrustedOf(sol))
				honest = append(honest, w.others(t, sol, w.names[liar]))
				continue
			}
			require.Equal(t, []string{w.names[liar]}, untrustedOf(sol), "seed %d lie %v", seed, lie)
			lying = append(lying, w.others(t, sol, w.names[liar]))
			m, _ := sol.Model(w.names[liar])
			require.GreaterOrEqual(t, len(m.Evidence), 3)
		}
	}
	assert.Less(t, rms(lying), 1.1*rms(honest))
	t.Logf("others: %.1f ns honest, %.1f ns with a liar", rms(honest), rms(lying))
}

// A lie that the bounds could hide is a delay as far as anybody can tell.
func TestSmallLiesAccuseNobody(t *testing.T) {
	const n, half = 64, 1000.0
	for seed := range uint64(10) {
		w := newWorld(seed, n)
		s := New(Options{})
		for _, p := range w.choices(n, 5) {
			// Within the bounds with the lie and all.
			e := w.edge(p[0], p[1], 1e9, w.noise(half/2), half)
			if p[0] == 0 || p[1] == 0 {
				e = w.lied(e, 0, (w.rng.Float64()*2-1)*half/2)
			}
			mustAdd(t, s, e)
		}
		sol := s.Solve()
		require.Empty(t, untrustedOf(sol))
		require.Empty(t, sol.Undecided())
		w.others(t, sol)
	}
}

// Several liars at once, of ten thousand or of a few, some next to one another.
func TestSeveralLiars(t *testing.T) {
	const n, half = 200, 1000.0
	for seed := range uint64(10) {
		w := newWorld(seed, n)
		s := New(Options{Prefer: []string{w.names[n-1]}})
		want := w.names[:12]
		for _, p := range w.choices(n, 5) {
			e := w.edge(p[0], p[1], 1e9, w.noise(half), half)
			for _, c := range p {
				if c < len(want) {
					e = w.lied(e, c, w.rng.Float64()*1e6)
				}
			}
			mustAdd(t, s, e)
		}
		sol := s.Solve()
		require.Equal(t, want, untrustedOf(sol), "seed %d", seed)
	}
}

// A clock that all others probe lies to all of them, and was the reference.
func TestReferenceLies(t *testing.T) {
	const n, half = 300, 1000.0
	w := newWorld(1, n)
	s := New(Options{Prefer: []string{w.names[0]}})
	pairs := w.choices(n, 2)
	for i := 1; i < n; i++ {
		pairs = append(pairs, [2]int{0, i})
	}
	for _, p := range pairs {
		mustAdd(t, s, w.edge(p[0], p[1], 1e9, w.noise(half), half))
	}
	require.Equal(t, w.names[0], s.Solve().Components()[0].Reference)
	for _, p := range pairs {
		e := w.edge(p[0], p[1], 3e9, w.noise(half), half)
		if p[0] == 0 {
			e = w.lied(e, 0, 1e6*w.rng.Float64())
		}
		mustAdd(t, s, e)
	}
	sol := s.Solve()
	require.Equal(t, []string{w.names[0]}, untrustedOf(sol))
	require.Len(t, sol.Components(), 1)
	assert.NotEqual(t, w.names[0], sol.Components()[0].Reference)
	w.others(t, sol, w.names[0])
}

// A constant delay of one NIC is the same for all its peers: nothing can be seen,
// nobody is accused, and the bound contains the truth because the delay widens it.
func TestConstantAsymmetryIsNoAccusation(t *testing.T) {
	const n, half, delay = 64, 2000.0, 100e3
	w := newWorld(3, n)
	s := New(Options{Prefer: []string{w.names[1]}})
	for _, p := range w.choices(n, 5) {
		e := w.edge(p[0], p[1], 1e9, w.noise(half), half)
		// What clock 0 sends arrives later: at its peer the upper bound rises, where it
		// is the source.
		if p[0] == 0 {
			e.Upper, e.Offset = e.Upper+delay, e.Offset+delay/2
		} else if p[1] == 0 {
			e.Lower, e.Offset = e.Lower-delay, e.Offset-delay/2
		}
		mustAdd(t, s, e)
	}
	sol := s.Solve()
	require.Empty(t, untrustedOf(sol))
	require.Empty(t, sol.Undecided())
	w.others(t, sol)
	m, _ := sol.Model(w.names[0])
	assert.InDelta(t, delay/2, math.Abs(w.errorOf(t, m, m.At)), half)
}

// A clock with two NICs, one of them with a constant delay: its edges differ, and
// all bounds still hold.
func TestOneSlowNICOfTwo(t *testing.T) {
	const n, half, delay = 64, 2000.0, 100e3
	w := newWorld(4, n)
	s := New(Options{Prefer: []string{w.names[1]}})
	turn := 0
	for _, p := range w.choices(n, 5) {
		e := w.edge(p[0], p[1], 1e9, w.noise(half), half)
		if p[0] == 0 || p[1] == 0 {
			turn++
		}
		if p[0] == 0 && turn%2 == 0 {
			e.Upper, e.Offset = e.Upper+delay, e.Offset+delay/2
		} else if p[1] == 0 && turn%2 == 0 {
			e.Lower, e.Offset = e.Lower-delay, e.Offset-delay/2
		}
		mustAdd(t, s, e)
	}
	sol := s.Solve()
	require.Empty(t, untrustedOf(sol))
	require.Empty(t, sol.Undecided())
	w.others(t, sol)
	m, _ := sol.Model(w.names[0])
	assert.Less(t, m.Bound, int64(10*half), "the other NIC bounds it")
}

// One wrong edge says nothing of who is wrong.
func TestContradictionOfTwoIsUndecided(t *testing.T) {
	const n, half = 64, 1000.0
	w := newWorld(5, n)
	s := New(Options{Prefer: []string{w.names[1]}})
	var pair [2]int
	for i, p := range w.choices(n, 5) {
		e := w.edge(p[0], p[1], 1e9, w.noise(half), half)
		if i == 7 {
			pair = p
			e = w.lied(e, p[0], 1e6)
		}
		mustAdd(t, s, e)
	}
	sol := s.Solve()
	require.Empty(t, untrustedOf(sol))
	require.Len(t, sol.Undecided(), 1)
	u := sol.Undecided()[0]
	assert.Equal(t, [2]string{w.names[pair[0]], w.names[pair[1]]}, [2]string{u.A, u.B})
	w.others(t, sol)
	for _, c := range pair {
		m, _ := sol.Model(w.names[c])
		assert.True(t, m.Undecided)
	}
}

// Of three clocks that contradict one another nobody can be accused.
func TestThreeClocksAccuseNobody(t *testing.T) {
	w := newWorld(6, 3)
	s := New(Options{})
	mustAdd(t, s, w.edge(0, 1, 1e9, 0, 1000))
	mustAdd(t, s, w.edge(1, 2, 1e9, 0, 1000))
	mustAdd(t, s, w.lied(w.edge(0, 2, 1e9, 0, 1000), 0, 1e6))
	sol := s.Solve()
	require.Empty(t, untrustedOf(sol))
	require.NotEmpty(t, sol.Undecided())
}

// The clock of the probes is not the clock of the spans: host 0's realtime clock
// is tied to its raw clock by pairs, and by traces to others, that put it 50 ms
// elsewhere.
func TestSpanClockIsNotProbeClock(t *testing.T) {
	const n, half = 16, 1000.0
	for _, peers := range []int{2, 3, 6} {
		w := newWorld(7, n)
		s := New(Options{Prefer: []string{w.names[1]}})
		for i := range n {
			w.clock("host:"+w.names[i]+"/realtime", 1_780_000_000_000_000_000+w.rng.Int64N(1e9), 10e-6)
		}
		for _, p := range w.choices(n, 4) {
			mustAdd(t, s, w.edge(p[0], p[1], 1e9, w.noise(half), half))
		}
		for i := range n {
			e := w.edge(i, n+i, 1e9, w.noise(50), 50)
			e.Source = model.EdgePair
			mustAdd(t, s, e)
		}
		for i := 1; i < n; i++ {
			e := w.edge(n+i, n+(i+1)%n, 1e9, w.noise(1e6), 1e6)
			if i == n-1 {
				continue
			}
			e.Source, e.Stamps = model.EdgeCall, model.StampApplication
			mustAdd(t, s, e)
		}
		for i := 1; i <= peers; i++ {
			e := w.lied(w.edge(n, n+2*i, 1e9, w.noise(1e6), 1e6), n, 50e6)
			e.Source, e.Stamps = model.EdgeCall, model.StampApplication
			mustAdd(t, s, e)
		}
		sol := s.Solve()
		require.Equal(t, []string{w.names[n]}, untrustedOf(sol), "%d peers: %+v", peers, sol.Undecided())
		w.others(t, sol, w.names[n])
	}
}

// Stamps that let messages arrive before they were sent, with every peer.
func TestCrossedBoundsAccuse(t *testing.T) {
	const n, half = 16, 1000.0
	w := newWorld(8, n)
	s := New(Options{Prefer: []string{w.names[1]}})
	for _, p := range w.choices(n, 4) {
		e := w.edge(p[0], p[1], 1e9, w.noise(half), half)
		if p[0] == 0 || p[1] == 0 {
			e.Lower, e.Upper = e.Upper, e.Lower
			require.Error(t, s.Add(e))
			continue
		}
		mustAdd(t, s, e)
	}
	sol := s.Solve()
	require.Equal(t, []string{w.names[0]}, untrustedOf(sol))
	w.others(t, sol, w.names[0])
}
