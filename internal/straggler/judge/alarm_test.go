// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestAllThatAccusesSharesTheFalseAlarms(t *testing.T) {
	if sum := rankAlarm + linkAlarm + hostAlarm + heldAlarm + stageHostAlarm; sum > 1+1e-12 {
		t.Errorf("got parts of %g, want at most the whole", sum)
	}
}

// alarm is a job that is told for one thing, of which chance is not out of the question.
type alarm struct {
	class string
	job   func() *testJob
	part  float64 // of the false alarms
	wide  float64 // a limit at which it is told for that
}

var alarms = map[string]alarm{
	"a rank": {model.ClassCompute, func() *testJob { return newTestJob(8, 1).with(slowRank(3, 1.1)) }, rankAlarm, 0.9},
	"a link": {model.ClassLink, func() *testJob {
		job := newTestJob(8, 1)
		job.links = mesh(8, func(s, d int64) float64 { return when(s == 2 && d == 5, 1.5) })
		return job
	}, linkAlarm, 0.9},
	// Ranks differ by so much that none of the host stands out alone.
	"a host": {model.ClassNode, func() *testJob {
		job := newTestJob(64, 1)
		job.lottery = 0.04
		return job.with(func(_ int, rows []testRow) {
			for r := 8; r < 16; r++ {
				rows[r].slow = 1.12
			}
		})
	}, hostAlarm, 0.01},
	"a rank that is held up": {model.ClassHost, func() *testJob { return newTestJob(8, 1).with(pausingAt(3, 0.5, 2, 6, 15, 20)) }, heldAlarm, 0.9},
	"a stage": {model.ClassStageImbalance, func() *testJob {
		job := pipelined(4, 4, 2, 1).with(moreLayers(1, 1.09))
		job.noise = 0.1
		return job
	}, stageAlarm, 0.9},
	// Its stage is all the more certain.
	"a host that holds a stage": {model.ClassNode, func() *testJob {
		return pipelined(2, 4, 4, 1).with(func(_ int, rows []testRow) {
			for r := range rows {
				if rows[r].pp == 2 {
					rows[r].slow = 1.06
				}
			}
		})
	}, stageHostAlarm, 0.9},
}

// told returns what is told of the class, where so many false alarms are allowed.
func (a *alarm) told(limit float64) (Conclusion, bool) {
	job := a.job()
	judge := New(Config{MaxFalseAlarm: limit}, job.place)
	for step := range 24 {
		judge.Add(job.step(step))
	}
	for _, c := range judge.Judge().Conclusions {
		if c.Class == a.class {
			return c, true
		}
	}
	return Conclusion{}, false
}

// What has as much of a chance as all may have together has too much of it.
func TestEachSortHasItsPartOfTheFalseAlarms(t *testing.T) {
	for name, of := range alarms {
		t.Run(name, func(t *testing.T) {
			c, ok := of.told(of.wide)
			if !ok || c.Chance <= 0 {
				t.Fatalf("got %+v, want one of class %s", c, of.class)
			}
			if got, ok := of.told(0.9 * c.Chance / of.part); ok {
				t.Errorf("got %+v told with a limit of %g, want its part of that asked", got, 0.9*c.Chance/of.part)
			}
			if _, ok := of.told(1.1 * c.Chance / of.part); !ok {
				t.Errorf("got nothing with a limit of %g", 1.1*c.Chance/of.part)
			}
		})
	}
}

// Who only just passes its own gate is told with less confidence than who passes it by far.
func TestConfidenceGoesByTheLimitThatWasAsked(t *testing.T) {
	for name, of := range alarms {
		t.Run(name, func(t *testing.T) {
			c, ok := of.told(of.wide)
			if !ok {
				t.Fatalf("got nothing of class %s", of.class)
			}
			near, _ := of.told(1.1 * c.Chance / of.part)
			far, _ := of.told(min(of.wide, 20*c.Chance/of.part))
			want := atLeast(1.1, byChance) / atLeast(min(20, of.wide*of.part/c.Chance), byChance)
			if got := near.Confidence / far.Confidence; math.Abs(got-want) > 1e-9 {
				t.Errorf("chance %g: got %g of the confidence, want %g", c.Chance, got, want)
			}
		})
	}
}
