// SPDX-License-Identifier: Apache-2.0

package epoch

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// cases is how many random cases each law is tried on.
func cases(t *testing.T) int {
	t.Helper()
	return tier.N(t, 5_000, 100_000)
}

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 8)) }

func randomRegister(r *rand.Rand) register {
	v := value{state: state(r.IntN(int(withdrawn) + 1))}
	if v.state == silent || v.state == conflict {
		if v.state == silent {
			return register{}
		}
		return register{int64(r.IntN(3)), v}
	}
	if r.IntN(2) == 0 && (v.state == absent || v.state == committed) {
		v.epoch, v.known = int64(r.IntN(3)), true
	}
	return register{int64(r.IntN(3)), v}
}

// TestLawsOfRegisters: the join is commutative, associative and idempotent, and never below
// what it joins.
func TestLawsOfRegisters(t *testing.T) {
	r := source(1)
	for range cases(t) {
		a, b, c := randomRegister(r), randomRegister(r), randomRegister(r)
		require.Equal(t, a.join(b), b.join(a), "commutative: %v %v", a, b)
		require.Equal(t, a.join(b).join(c), a.join(b.join(c)), "associative: %v %v %v", a, b, c)
		require.Equal(t, a, a.join(a), "idempotent: %v", a)
		require.Equal(t, a.join(b), a.join(b).join(a), "monotone: %v %v", a, b)
		require.Equal(t, register{}.join(a), a, "the least: %v", a)
	}
}

// TestLawsOfViews: in which order observers are heard is nothing, and one who does not confirm
// is not overruled.
func TestLawsOfViews(t *testing.T) {
	r := source(2)
	for range cases(t) {
		values := make([]value, 1+r.IntN(4))
		for i := range values {
			for values[i].state == silent {
				values[i] = randomRegister(r).value
			}
		}
		var a, b view
		for _, v := range values {
			a.add(v)
		}
		r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		for _, v := range values {
			b.add(v)
		}
		b.add(values[0])
		require.Equal(t, a, b)
		confirms := true
		for _, v := range values {
			confirms = confirms && v.confirms() && v.epoch == values[0].epoch
		}
		require.Equal(t, confirms, a.confirms(), "%v", values)
	}
}

// history is what observers saw while a job saved, in the order in which they saw it.
func history(r *rand.Rand) []model.EpochObservation {
	states := []model.DomainState{model.DomainTentative, model.DomainReflecting, model.DomainCommitted, model.DomainAbsent, model.DomainWithdrawn}
	obs := make([]model.EpochObservation, r.IntN(24))
	for i := range obs {
		o := tell(int64(100*(1+r.IntN(2))), r.IntN(3), int64(r.IntN(4)), states[r.IntN(len(states))])
		o.Observer = fmt.Sprint("observer ", r.IntN(2))
		o.Of = int64(r.IntN(2) * 3)
		if r.IntN(4) == 0 {
			o.Domain.Kind, o.Parts = model.DomainPlace, int64(r.IntN(4))
		}
		if r.IntN(2) == 0 {
			o.Epoch = model.Some(int64(100 * (1 + r.IntN(2))))
		}
		obs[i] = o
	}
	return obs
}

// TestOrderAndDuplicatesAreNothing (P6, P8, P9): any order, any duplicates, any split over two
// engines that are merged, and any restart in between, come to the same.
func TestOrderAndDuplicatesAreNothing(t *testing.T) {
	r := source(3)
	for range cases(t) {
		obs := history(r)
		straight := New(Config{})
		observe(straight, obs...)
		again := append([]model.EpochObservation{}, obs...)
		for range r.IntN(4) {
			if len(obs) > 0 {
				again = append(again, obs[r.IntN(len(obs))])
			}
		}
		r.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		cut := r.IntN(len(again) + 1)
		one, two := New(Config{}), New(Config{})
		observe(one, again[:cut]...)
		observe(two, again[cut:]...)
		require.NoError(t, two.Merge(one))
		require.Equal(t, straight.Observations(), two.Observations())
		for _, save := range []int64{100, 200} {
			require.Equal(t, straight.Judge(testJob, testGen, save), two.Judge(testJob, testGen, save))
		}
		require.Equal(t, straight.Frontier(testJob, testGen), two.Frontier(testJob, testGen))
	}
}

// TestLossNeverConfirms (P2 to P5): of a save whose domains hold what they hold, whatever part
// of the observations arrives, converged is said only where all hold the save's epoch, and all
// were heard; mixed only where they differ.
func TestLossNeverConfirms(t *testing.T) {
	r := source(4)
	converged, mixed := 0, 0
	for range cases(t) {
		n := 1 + r.IntN(5)
		truth := make([]int64, n) // 0: not written
		uniform, whole := true, true
		for i := range truth {
			truth[i] = 100
			switch r.IntN(8) {
			case 0:
				truth[i] = 0
			case 1:
				truth[i] = 99
			}
			whole = whole && truth[i] == 100
			uniform = uniform && (truth[i] == 0 || truth[i] == 100)
		}
		e := New(Config{})
		heard := map[int]bool{}
		for range r.IntN(4 * n) {
			i := r.IntN(n)
			heard[i] = true
			o := tell(100, i, 1, model.DomainAbsent)
			if truth[i] != 0 {
				o = tell(100, i, 1, model.DomainCommitted, truth[i])
			}
			o.Of = int64(n)
			observe(e, o)
		}
		switch got := e.Judge(testJob, testGen, 100).Verdict; got {
		case Converged:
			converged++
			require.True(t, whole && len(heard) == n, "%v heard %v", truth, heard)
		case MixedEpoch:
			mixed++
			require.False(t, uniform, "%v heard %v", truth, heard)
		default:
			require.False(t, whole && len(heard) == n, "%s: %v heard %v", got, truth, heard)
		}
	}
	t.Logf("%d cases: %d converged, %d mixed", cases(t), converged, mixed)
	require.Greater(t, converged, cases(t)/20, "the test tries too few that converge")
	require.Greater(t, mixed, cases(t)/20)
}

// TestLawsOfAgreement: the join on the flat lattice is commutative, associative and idempotent, and
// never below what it joins; unknown is the least, mixed the greatest.
func TestLawsOfAgreement(t *testing.T) {
	r := source(6)
	random := func() Agreement {
		switch n := r.IntN(6); n {
		case 0:
			return Agreement{}
		case 1:
			return Holds(1).Join(Holds(2))
		default:
			return Holds(int64(n))
		}
	}
	below := func(a, b Agreement) bool { return a.Join(b) == b }
	for range cases(t) {
		a, b, c := random(), random(), random()
		require.Equal(t, a.Join(b), b.Join(a), "commutative")
		require.Equal(t, a.Join(b).Join(c), a.Join(b.Join(c)), "associative")
		require.Equal(t, a, a.Join(a), "idempotent")
		require.True(t, below(a, a.Join(b)), "not below")
		require.True(t, !below(a, b) || below(a.Join(c), b.Join(c)), "monotone")
		require.True(t, below(Agreement{}, a) && below(a, Holds(1).Join(Holds(2))))
		require.Equal(t, a.Mixed() || b.Mixed() || a.level == one && b.level == one && a != b, a.Join(b).Mixed())
	}
}

// TestNothingThatWasHeardOfIsMissed: with small limits, so that saves, observers and registers
// leave, with observers that are forgotten and restarts in between, and where nobody says how many
// domains there are, converged is said only of what all domains hold that were ever heard of.
func TestNothingThatWasHeardOfIsMissed(t *testing.T) {
	r := source(7)
	converged, left := 0, int64(0)
	for range cases(t) {
		cfg := Config{Saves: 1 + r.IntN(3), Registers: 2 + r.IntN(12), Observers: 1 + r.IntN(3)}
		n := 1 + r.IntN(4)
		truth := map[int64][]int64{} // by save: what domains hold; 0: nothing
		for _, save := range []int64{100, 200, 300, 400} {
			holds := make([]int64, n)
			for i := range holds {
				if holds[i] = save; r.IntN(10) == 0 {
					holds[i] = []int64{0, save - 1}[r.IntN(2)]
				}
			}
			truth[save] = holds
		}
		e, heard := New(cfg), map[int]bool{}
		for range r.IntN(40) {
			save, i := int64(100*(1+r.IntN(4))), r.IntN(n)
			o := tell(save, i, 1, model.DomainAbsent)
			if h := truth[save][i]; h != 0 {
				o = tell(save, i, 1, model.DomainCommitted, h)
			}
			o.Observer = fmt.Sprint(i, " life ", r.IntN(3))
			heard[i] = true
			e.Observe(&o)
			switch r.IntN(12) {
			case 0:
				e.Forget(fmt.Sprint(r.IntN(n), " life ", r.IntN(3)))
			case 1:
				data, err := e.Snapshot()
				require.NoError(t, err)
				left += e.Stats().SavesLost
				e = New(cfg)
				require.NoError(t, e.Restore(data))
			}
			for _, at := range e.Saves(testJob, testGen) {
				if e.Judge(testJob, testGen, at).Verdict != Converged {
					continue
				}
				converged++
				for d := range heard {
					require.Equal(t, at, truth[at][d], "save %d of domain %d", at, d)
				}
			}
			require.LessOrEqual(t, e.Stats().Registers, cfg.Registers)
			held := 0
			for _, g := range e.Generations(testJob) {
				held += e.find(testJob, g).registers
			}
			require.Equal(t, e.Stats().Registers, held)
		}
		requireObservers(t, e)
		left += e.Stats().SavesLost
	}
	t.Logf("%d cases: %d times converged, %d saves left", cases(t), converged, left)
	require.Greater(t, converged, cases(t))
	require.Greater(t, left, int64(cases(t)))
}

// TestSnapshotOrder: two engines that hold the same are written the same, in whichever order their
// observers came.
func TestSnapshotOrder(t *testing.T) {
	tell := func(save int64, by string) model.EpochObservation {
		return model.EpochObservation{
			JobID: testJob, Generation: fmt.Sprint(save), Save: save, Domain: model.Domain{Kind: model.DomainModel},
			State: model.DomainCommitted, Epoch: model.Some(save), Observer: by, Revision: 1,
		}
	}
	one, other := New(Config{}), New(Config{Saves: 1})
	observe(one, tell(3, "b"), tell(5, "a"))
	left := tell(2, "c") // whose save has to leave
	left.Generation = "3"
	observe(other, tell(5, "a"), left, tell(3, "b"))
	require.Equal(t, int64(1), other.Stats().SavesLost)
	for _, e := range []*Engine{one, other} {
		e.Forget("b")
	}
	want, err := one.Snapshot()
	require.NoError(t, err)
	got, err := other.Snapshot()
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
	again := New(Config{})
	require.NoError(t, again.Restore(want))
	got, err = again.Snapshot()
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

// FuzzRestore: whatever a snapshot holds, it is refused or taken; what was taken comes back the
// same, and no limit is passed.
func FuzzRestore(f *testing.F) {
	for seed := range uint64(4) {
		e := New(Config{})
		observe(e, history(source(seed))...)
		e.Forget("observer 1")
		data, err := e.Snapshot()
		require.NoError(f, err)
		f.Add(data)
	}
	cfg := Config{Jobs: 2, Generations: 2, Saves: 3, Domains: 8, Observers: 4, Registers: 16}
	f.Fuzz(func(t *testing.T, data []byte) {
		e := New(cfg)
		if e.Restore(data) != nil {
			require.Empty(t, e.Jobs())
			return
		}
		require.LessOrEqual(t, e.Stats().Registers, cfg.Registers)
		requireObservers(t, e)
		once, err := e.Snapshot()
		require.NoError(t, err)
		again := New(cfg)
		require.NoError(t, again.Restore(once))
		twice, err := again.Snapshot()
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
		for _, id := range e.Jobs() {
			for _, g := range e.Generations(id) {
				for _, n := range e.Saves(id, g) {
					require.Equal(t, e.Judge(id, g, n), again.Judge(id, g, n))
				}
			}
		}
	})
}

// TestTimesDecideNothing (P11).
func TestTimesDecideNothing(t *testing.T) {
	r := source(5)
	for range tier.N(t, 1_000, 10_000) {
		obs := history(r)
		a, b := New(Config{}), New(Config{})
		observe(a, obs...)
		for i := range obs {
			obs[i].Time = r.Int64() - r.Int64()
		}
		observe(b, obs...)
		require.Equal(t, a.Observations(), b.Observations())
		require.Equal(t, a.Judge(testJob, testGen, 100), b.Judge(testJob, testGen, 100))
	}
}
