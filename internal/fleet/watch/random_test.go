// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// message is an observation on its way.
type message struct {
	at time.Time
	o  model.VersionObservation
}

// unreliable is a way on which what nodes tell is late, now and then for hours, lost, for long too,
// out of order, and told again at any time.
type unreliable struct {
	rng *rand.Rand
	cut []time.Time     // until when a node can not be heard
	lag []time.Duration // of all that a node tells, as of a queue
	way []message
	// calm: there are no queues.
	calm bool
}

func (u *unreliable) send(node int, o *model.VersionObservation, now time.Time) {
	if u.rng.IntN(40) == 0 {
		u.cut[node] = now.Add(time.Duration(u.rng.Int64N(int64(time.Hour))))
	}
	if !u.calm && u.rng.IntN(20) == 0 {
		u.lag[node] = time.Duration(u.rng.Int64N(2)) * time.Duration(u.rng.Int64N(int64(time.Hour)))
	}
	if now.Before(u.cut[node]) || u.rng.IntN(10) == 0 {
		return
	}
	o.Time = now.UnixNano()
	late := []time.Duration{time.Second, 5 * time.Minute, 20 * time.Minute, 3 * time.Hour}
	for {
		u.way = append(u.way, message{now.Add(u.lag[node] + time.Duration(u.rng.Int64N(int64(late[u.rng.IntN(len(late))])))), *o})
		if u.rng.IntN(4) > 0 {
			return
		}
	}
}

// arrived takes what has come, in any order.
func (u *unreliable) arrived(now time.Time) (out []message) {
	u.way = slices.DeleteFunc(u.way, func(m message) bool {
		if m.at.After(now) {
			return false
		}
		out = append(out, m)
		return true
	})
	u.rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// fleet are nodes of communicators, which are updated together: none ever spans two versions.
type fleet struct {
	*rig
	*unreliable
	lives    []int64
	looks    []int64     // of this life
	updated  []time.Time // by communicator
	versions []string
	beside   func(o *model.VersionObservation) // what came with an observation; nil: nothing
}

const (
	inEach   = 4
	ofComms  = 3
	quickest = 30 * time.Minute // nobody updates and rolls back within less
)

func newFleet(seed uint64) *fleet {
	r := newRig(nil)
	f := &fleet{rig: r, unreliable: &unreliable{rng: rand.New(rand.NewPCG(seed, 5)), cut: make([]time.Time, inEach*ofComms), lag: make([]time.Duration, inEach*ofComms)}}
	for c := range ofComms {
		p := plan{name: string(rune('a' + c)), comms: [][]int64{{}}}
		for i := range inEach {
			p.nodes = append(p.nodes, c*inEach+i)
			p.comms[0] = append(p.comms[0], int64(i))
		}
		r.jobs = append(r.jobs, p)
		f.updated, f.versions = append(f.updated, r.now), append(f.versions, oldDriver)
	}
	f.lives, f.looks = slices.Repeat([]int64{1}, inEach*ofComms), make([]int64, inEach*ofComms)
	return f
}

// minute lets one pass: some communicators are updated, nodes tell, and what has come is heard.
func (f *fleet) minute() []model.Finding {
	f.now = f.now.Add(time.Minute)
	for c := range f.versions {
		if f.now.Sub(f.updated[c]) >= quickest && f.rng.IntN(60) == 0 {
			f.updated[c] = f.now
			f.versions[c] = []string{oldDriver, newDriver, "590.1"}[f.rng.IntN(3)]
			for i := range inEach { // they reboot
				if f.rng.IntN(2) == 0 {
					f.lives[c*inEach+i]++
					f.looks[c*inEach+i] = 0
				}
			}
		}
	}
	for n := range f.lives {
		if f.rng.IntN(4) == 0 {
			f.looks[n]++
			o := version(n, model.VersionKernelDriver, f.versions[n/inEach], f.looks[n])
			o.Life = f.lives[n]
			f.send(n, &o, f.now)
		}
	}
	for _, m := range f.arrived(f.now) {
		f.Observe(&m.o, f.now)
		if f.beside != nil {
			f.beside(&m.o)
		}
	}
	for i := range f.jobs {
		f.states(&f.jobs[i])
	}
	return f.Tick(f.now)
}

// Order, delay, repetition and loss of what is told never make up that a communicator is mixed.
func TestNothingIsMadeUp(t *testing.T) {
	t.Parallel()
	for seed := range uint64(tier.N(t, 40, 300)) {
		f := newFleet(seed)
		for range 8 * 60 {
			require.Empty(t, f.minute(), "seed %d", seed)
		}
		require.Positive(t, f.Stats().Late)
	}
}

// What is so for long is found all the same, without queues; and then again what is not. The quick
// tier takes as many fleets as it needs to tell 99 of 100 from 85 of 100, and errs once in 100.
func TestWhatIsSoIsFound(t *testing.T) {
	t.Parallel()
	type outcome struct{ found, ended bool }
	seen := map[int]outcome{}
	at := func(seed int) outcome {
		if _, ran := seen[seed]; !ran {
			var o outcome
			o.found, o.ended = mixedForHours(t, uint64(seed))
			seen[seed] = o
		}
		return seen[seed]
	}
	claim := tier.Claim{Full: 0.95, Holds: 0.99, Fails: 0.85, Error: 0.01}
	claim.Check(t, 100, func(seed int) bool { return at(seed).found })
	claim.Check(t, 100, func(seed int) bool { return at(seed).ended })
}

// mixedForHours has one node of a communicator run another driver for six hours. It reports whether
// that was found, and whether it had ended six hours after.
func mixedForHours(t *testing.T, seed uint64) (found, ended bool) {
	t.Helper()
	f := newFleet(seed)
	f.calm = true
	f.updated = slices.Repeat([]time.Time{f.now.Add(1e6 * time.Hour)}, ofComms) // nothing changes by itself
	for range 6 * 60 {
		f.looks[0]++
		odd := version(0, model.VersionKernelDriver, newDriver, f.looks[0])
		odd.Life = 2
		f.observe(&odd)
		f.lives[0] = 2
		f.cut[0] = f.now.Add(time.Hour) // it is heard by this alone
		f.minute()
	}
	for _, e := range f.Standing(f.now) {
		require.Equal(t, "a", e.JobID, "seed %d", seed)
		found = true
	}
	f.cut[0] = time.Time{}
	for range 6 * 60 {
		f.minute()
	}
	return found, len(f.Standing(f.now)) == 0
}

// What is known does not depend on the order in which it came, as far as it came at once.
func TestOrder(t *testing.T) {
	for seed := range uint64(tier.N(t, 10, 50)) {
		rng := rand.New(rand.NewPCG(seed, 6))
		var want []Count
		for try := range 4 {
			r := newRig(nil)
			var obs []model.VersionObservation
			for n := range 5 {
				for rev := range int64(4) {
					for unit := range int64(3) {
						o := version(n, model.VersionNICFirmware, string(rune('1'+(int64(n)+rev*unit)%3)), rev+1)
						o.Unit, o.Model, o.Of = string(rune('a'+unit)), "board", 3
						obs = append(obs, o)
					}
				}
			}
			obs = append(obs, obs[:20]...)
			if try > 0 {
				rng.Shuffle(len(obs), func(i, j int) { obs[i], obs[j] = obs[j], obs[i] })
			}
			for i := range obs {
				r.observe(&obs[i])
			}
			got := r.Counts(r.now)
			if try == 0 {
				want = got
			}
			require.Equal(t, want, got)
		}
	}
}

// Whatever nodes tell of NCCL with the rest, all that is said is the same as if they had not.
func TestWhatNodesTellOfNCCLDecidesNothing(t *testing.T) {
	t.Parallel()
	versions, said, told := []string{"2.19.3", "2.20.5", "2.28.7"}, 0, 0
	for seed := range uint64(tier.N(t, 6, 20)) {
		rng := rand.New(rand.NewPCG(seed, 7))
		with, without := newFleet(seed), newFleet(seed)
		with.beside = func(o *model.VersionObservation) {
			nccl := *o
			nccl.Domain, nccl.Version = model.VersionNCCL, versions[rng.IntN(3)]
			with.Observe(&nccl, with.now)
		}
		for minute := range 6 * 60 {
			if minute%10 == 0 {
				with.recorded(without, func() string { return versions[min(rng.IntN(8), 1)] })
			}
			want, got := without.minute(), with.minute()
			require.Equal(t, want, got, "seed %d", seed)
			require.Equal(t, without.Stats().Abstained, with.Stats().Abstained, "seed %d", seed)
			said += len(got)
		}
		told += len(with.Counts(with.now)) - len(without.Counts(with.now))
	}
	require.Positive(t, said)
	require.Positive(t, told)
}

// recorded has both fleets hear of the same records of processes, of any version each.
func (f *fleet) recorded(other *fleet, version func() string) {
	for i := range f.jobs {
		for n := range int64(inEach) {
			s := state(&f.jobs[i], n)
			s.Source, s.LibVersion = model.StateFlightRecorder, version()
			again := s
			f.AddState(&s, f.now)
			other.AddState(&again, other.now)
		}
	}
}
