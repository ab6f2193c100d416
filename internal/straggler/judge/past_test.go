// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// looks runs the job, and asks from a step on every few steps.
func (j *testJob) looks(from int, f func(step int, got Judgement)) {
	judge := New(Config{}, j.place)
	for step := range j.steps {
		judge.Add(j.step(step))
		if step >= from && step%10 == 0 {
			f(step, judge.Judge())
		}
	}
}

// A rank without peers becomes slower for good: what it does then never becomes what is
// usual. Once it is as before, it is over.
func TestWhatLastsIsNotUsual(t *testing.T) {
	const from, to = 40, 300
	for name, of := range map[string]struct {
		class  string
		change func(row *testRow)
	}{
		"device": {model.ClassCompute, func(row *testRow) { row.slow = 1.2 }},
		"host":   {model.ClassHost, func(row *testRow) { row.idle["forward"] += 15e-3 }},
	} {
		t.Run(name, func(t *testing.T) {
			job := pipelined(1, 8, 1, 1)
			job.kernels, job.steps = unshaped(), to+100
			job.with(func(step int, rows []testRow) {
				if step >= from && step < to {
					of.change(&rows[3])
				}
			})
			job.looks(from+40, func(step int, got Judgement) {
				switch {
				case step < to:
					expect(t, got, what{of.class, 3})
				case step >= to+defaultWindow:
					expect(t, got)
				}
			})
		})
	}
}

// What has lasted for longer than anything is remembered is usual by then: a finding ends that
// only the past tells.
func TestWhatLastsForVeryLongIsUsual(t *testing.T) {
	const from, usual = 40, 40 + lastingSteps
	for name, change := range map[string]func(row *testRow){
		"device": func(row *testRow) { row.slow = 1.2 },
		"host":   func(row *testRow) { row.idle["forward"] += 15e-3 },
	} {
		t.Run(name, func(t *testing.T) {
			job := pipelined(1, 4, 1, 1)
			job.kernels, job.steps = unshaped(), usual+8*defaultWindow
			job.with(func(step int, rows []testRow) {
				if step >= from {
					change(&rows[2])
				}
			})
			job.looks(from+40, func(step int, got Judgement) {
				named := slices.ContainsFunc(got.Conclusions, func(c Conclusion) bool { return c.Rank == 2 })
				if now := step >= usual+4*defaultWindow; named && now || step < usual && !named {
					t.Errorf("got named %v in step %d, want %v", named, step, !now)
				}
			})
		})
	}
}

// A job that changes as a whole is learnt anew: nobody is accused, then or later, not even
// where some stages change by more.
func TestAJobThatChangedIsNobodys(t *testing.T) {
	for _, by := range []float64{0, 0.1} {
		job := pipelined(1, 8, 1, 1)
		job.kernels, job.steps = unshaped(), 300
		job.with(func(step int, rows []testRow) {
			for r := range rows {
				if step >= 100 {
					rows[r].slow = 1.2 + by*float64(r)/8
				}
			}
		})
		job.looks(40, func(step int, got Judgement) {
			for _, c := range got.Conclusions {
				if c.Rank >= 0 && (by == 0 || step >= 100+2*defaultWindow) {
					t.Errorf("got %s of rank %d in step %d, want nobody accused", c.Class, c.Rank, step)
				}
			}
		})
	}
}

// Of one rank without peers nobody knows whether it or the job is slower for good.
func TestTheOnlyOneWithoutPeersIsLearntAnew(t *testing.T) {
	job := newTestJob(1, 1)
	job.steps = 200
	job.with(func(step int, rows []testRow) {
		if step >= 60 {
			rows[0].slow = 1.3
		}
	})
	job.looks(190, func(_ int, got Judgement) {
		for _, c := range got.Conclusions {
			if c.Rank >= 0 {
				t.Errorf("got %s of rank %d, want nobody accused", c.Class, c.Rank)
			}
		}
	})
}

func TestAPastIsBounded(t *testing.T) {
	job := pipelined(1, 4, 1, 1)
	job.steps = 400
	judge := New(Config{Window: 16}, job.place)
	for step := range job.steps {
		judge.Add(job.step(step))
	}
	for i := range judge.history.members {
		if u := judge.history.members[i].usual; u == nil || len(u.host.s) != 16 || len(u.device.s) != 16 {
			t.Errorf("got %+v of rank %d, want 16 steps of each part", u, i)
		}
	}
}

// Noise that lasts, as a fault does, becomes what is usual: kept out of it, it would seem
// the longer the more.
func TestNoiseThatLastsBecomesUsual(t *testing.T) {
	const jobs = 10
	memories, sizes := []float64{0.9, 0.98, 0.995}, []int{2, 4, 8}
	alone := tier.Claim{Full: 0.966, Holds: 0.97, Fails: 0.8, Error: 0.05} // 3 of 90 may be accused
	alone.Check(t, len(memories)*len(sizes)*jobs, func(i int) bool {
		memory, ranks, seed := memories[i%3], sizes[i/3%3], uint64(i/9)
		job := pipelined(1, ranks, 1, 1)
		job.rng = rand.New(rand.NewPCG(seed, 1))
		job.kernels, job.steps = unshaped(), 300
		n, _ := accusations(job.with(remembering(seed+77, ranks, 0.05, memory)), 8)
		return n == 0
	})
}
