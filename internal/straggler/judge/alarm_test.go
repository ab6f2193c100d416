package judge

import (
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestAllThatAccusesSharesTheFalseAlarms(t *testing.T) {
	if sum := rankAlarm + linkAlarm + hostAlarm + heldAlarm + stageHostAlarm; sum > 1+1e-12 {
		t.Errorf("got parts of %g, want at most the whole", sum)
	}
}

// What has as much of a chance as all may have together has too much of it.
func TestEachSortHasItsPartOfTheFalseAlarms(t *testing.T) {
	for name, of := range map[string]struct {
		job  func() *testJob
		part float64
	}{
		model.ClassCompute: {func() *testJob { return newTestJob(8, 1).with(slowRank(3, 1.1)) }, rankAlarm},
		model.ClassLink: {func() *testJob {
			job := newTestJob(8, 1)
			job.links = mesh(8, func(s, d int64) float64 { return when(s == 2 && d == 5, 1.5) })
			return job
		}, linkAlarm},
	} {
		t.Run(name, func(t *testing.T) {
			told := func(limit float64) (c Conclusion, ok bool) {
				job := of.job()
				job.steps = 24
				judge := New(Config{MaxFalseAlarm: limit}, job.place)
				for step := range job.steps {
					judge.Add(job.step(step))
				}
				got := judge.Judge()
				for _, c := range got.Conclusions {
					if c.Class == name {
						return c, true
					}
				}
				return Conclusion{}, false
			}
			c, ok := told(0.5)
			if !ok || c.Chance <= 0 {
				t.Fatalf("got %+v, want one of class %s", c, name)
			}
			if _, ok := told(0.9 * c.Chance / of.part); ok {
				t.Errorf("got it told with a limit of %g, want its part of that asked", 0.9*c.Chance/of.part)
			}
			if _, ok := told(1.1 * c.Chance / of.part); !ok {
				t.Errorf("got nothing with a limit of %g", 1.1*c.Chance/of.part)
			}
		})
	}
}
