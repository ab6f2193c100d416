// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// longerFrom makes the step longer from a step on.
func longerFrom(from int) func(int) float64 {
	return func(step int) float64 {
		if step >= from {
			return 0.165 + 1e-4*float64(step%3)
		}
		return 0.15 + 1e-4*float64(step%3)
	}
}

// unshaped takes away what tells that kernels of different stages do the same.
func unshaped() []kernel {
	out := append([]kernel(nil), testKernels...)
	for k := range out {
		out[k].shape = ""
	}
	return out
}

// What befalls all ranks of a job at once is the job's, though each has only its own past
// to be compared with.
func TestAChangeOfAllIsNobodys(t *testing.T) {
	for _, look := range []int{12, 20, 24} {
		for _, kernels := range [][]kernel{testKernels, unshaped()} {
			for name, change := range map[string]func(row *testRow){
				"device":       func(row *testRow) { row.slow = 1.2 },
				"host":         func(row *testRow) { row.idle["data_loading"] += 15e-3 },
				"host by half": func(row *testRow) { row.idle["data_loading"] *= 2 },
			} {
				t.Run(fmt.Sprint(name, kernels[0].shape, look), func(t *testing.T) {
					job := pipelined(1, 8, 1, 1)
					job.kernels, job.seconds, job.steps = kernels, longerFrom(40), 40+look
					job.with(func(step int, rows []testRow) {
						for r := range rows {
							rows[r].idle["data_loading"] *= 1 + float64(r)/2
							if step >= 40 {
								change(&rows[r])
							}
						}
					})
					expect(t, job.judged(), what{model.ClassJobWide, -1})
				})
			}
		}
	}
}

func TestOneOfTheLonelyIsNamed(t *testing.T) {
	job := pipelined(1, 8, 1, 1)
	job.steps = 60
	job.with(func(step int, rows []testRow) {
		if step >= 40 {
			rows[3].idle["forward"] += 15e-3
		}
	})
	got := job.judged()
	expect(t, got, what{model.ClassHost, 3})
	if len(got.Conclusions) == 1 {
		if c := got.Conclusions[0]; c.Rung != RungHistory || c.Peers != 0 || c.Confidence > RungConfidence(RungHistory) {
			t.Errorf("got rung %q, %d peers and confidence %g, want what own history is worth", c.Rung, c.Peers, c.Confidence)
		}
	}
}

// Half of the ranks without peers are slower: nobody knows which half is as it should be.
func TestHalfOfTheLonelyIsNobody(t *testing.T) {
	job := pipelined(1, 8, 1, 1).with(func(_ int, rows []testRow) {
		for r := range rows {
			if rows[r].host = ""; r%2 == 0 {
				rows[r].slow = 1.3
			}
		}
	})
	expect(t, job.judged())
}

// Of rank 5 nobody knows which of its idleness is the host's: it is compared by all of it,
// and the others as ever.
func TestIdlenessThatIsNotDividedIsComparedWhole(t *testing.T) {
	for held, want := range map[float64][]what{0: nil, 20e-3: {{model.ClassHost, 5}}} {
		job := newTestJob(8, 1)
		judge := New(Config{}, job.place)
		for step := range job.steps {
			s := job.step(step)
			for i := range s.Rows {
				idle := float32(0)
				for k := range s.Rows[i].Cells {
					c := &s.Rows[i].Cells[k]
					if job.places[c.Place].Kind != Host {
						continue
					}
					if i == 5 { // with 20 ms that others spend waiting for their own devices
						c.Own += float32(10e-3 + held/2)
					}
					idle += c.Own
				}
				if s.Rows[i].Undivided = i == 5; i != 5 {
					idle += 20e-3
				}
				s.Rows[i].Idle = idle
			}
			judge.Add(s)
		}
		expect(t, judge.Judge(), want...)
	}
}

// Rank 0 and its one sibling differ, since rank 0's host is less idle than all others.
func TestAHostIsNotAccusedByOneSibling(t *testing.T) {
	job := pipelined(2, 4, 1, 1)
	job.hostNoise = 0.02
	job.with(func(_ int, rows []testRow) {
		for r := range rows {
			if r != 0 {
				rows[r].idle["forward"] += 8e-3
			}
		}
	})
	got := job.judged()
	expect(t, got)
	if got.Abstained == nil || got.Abstained.Gate != gatePair {
		t.Errorf("got %+v, want an abstention for %s", got.Abstained, gatePair)
	}
}
