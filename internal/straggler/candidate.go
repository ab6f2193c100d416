package straggler

import (
	"github.com/lockstep-otel/lockstep/internal/model"
)

// candidate is a rank under judgement over the window; seconds are per step.
type candidate struct {
	rank *model.Rank

	top    int // trials in which it stood out
	trials int
	byStep bool    // trials are steps; else single meetings
	chance float64 // false alarm probability over all ranks

	in    stretch // where it stands out; what follows is of it
	steps int     // in which it was seen

	caused    float64 // s per step
	waitShare float64 // of all wait, 0 to 1

	excess      own     // ns per step
	excessShare float64 // of its peers' own time
	steadiness  float64 // the excess's median over its standard error

	cost, costShare float64 // s per step, share of the step
	before          float64 // share of the wait caused that precedes the recording
}

// Gates, in the order in which they are tried.
const (
	gateFewSteps   = "few_steps"
	gateFalseAlarm = "false_alarm"
	gateExcess     = "excess_share"
	gateSteadiness = "steadiness"
	gateCost       = "cost_share"
)

// minTrials is the fewest steps that are judged as independent trials. Below
// it single meetings are counted, which within a step are not independent; the
// confidence says so.
const minTrials = 3

// minSteadiness is how many standard errors the median excess must stand above
// zero.
const minSteadiness = 3

// addTrials counts one step's trials. In a step the rank with the largest excess
// stands out, not the one that caused most wait: what a slow rank of a
// tensor-parallel group delays, all of that group delay in turn. Where steps are
// too few, single meetings count, in which somebody was waited for.
func (c *candidate) addTrials(rec *record, i int) {
	if c.byStep {
		if worst := worstExcess(rec.ranks); worst >= 0 {
			c.trials++
			if i == worst {
				c.top++
			}
		}
		return
	}
	for _, mr := range rec.meets {
		if k := mr.find(c.rank.Rank); k >= 0 && mr.shown.WaitCaused() > 0 {
			c.trials++
			if mr.last == k {
				c.top++
			}
		}
	}
}

// samples returns the candidate's excess in one step: one value, or one for each
// meeting where steps are too few.
func (c *candidate) samples(rec *record, i int) (out []float64) {
	if c.byStep {
		return []float64{float64(rec.ranks[i].excess.total())}
	}
	for _, mr := range rec.meets {
		if k := mr.find(c.rank.Rank); k >= 0 && mr.members[k].known {
			out = append(out, float64(mr.members[k].excess.total()))
		}
	}
	return out
}

// worstExcess returns the rank with the largest excess, or -1 where none has any.
func worstExcess(ranks []rankRecord) int {
	best, excess := -1, int64(0)
	for i := range ranks {
		if x := ranks[i].excess.total(); x > excess {
			best, excess = i, x
		}
	}
	return best
}

// failedGate returns the first gate that the candidate fails, "" for none. In
// few steps a rank that computes longer may just have had more to do.
func (c *candidate) failedGate(cfg *Config) (gate string, got, want float64) {
	switch {
	case !c.byStep && c.excess.busy() >= c.excess.idle:
		return gateFewSteps, float64(c.steps), minTrials
	case c.chance > cfg.MaxFalseAlarm:
		return gateFalseAlarm, c.chance, cfg.MaxFalseAlarm
	case c.excessShare < cfg.MinExcessShare:
		return gateExcess, c.excessShare, cfg.MinExcessShare
	case c.steadiness < minSteadiness:
		return gateSteadiness, c.steadiness, minSteadiness
	case c.costShare < cfg.MinCostShare:
		return gateCost, c.costShare, cfg.MinCostShare
	}
	return "", 0, 0
}
