package straggler

import (
	"github.com/lockstep-otel/lockstep/internal/model"
)

// candidate is a rank under judgement over the window; seconds are per step.
type candidate struct {
	rank *model.Rank
	link bool // not the rank is suspected, but the link behind it

	top    int // trials in which it stood out
	trials int
	byStep bool    // trials are steps; else single meetings
	early  bool    // more steps may come, and there are too few yet
	oneOf  float64 // what chance alone would make of top
	chance float64 // false alarm probability over all ranks

	in    stretch // where it stands out; what follows is of it
	steps int     // in which it was seen

	caused    float64 // s per step
	waitShare float64 // of all wait, 0 to 1

	excess      own     // ns per step, over its peers
	mean        float64 // the sum of it, or what the link adds to the transfers
	excessShare float64 // of its peers' own time, or of the link's transfers
	typical     float64 // the median step's excess over the mean one's, at most 1
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
	gateLink       = "link"
	gateLate       = "late"
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
		if worst, peers := rec.worst(c, rec.ranks[i].role); worst >= 0 {
			c.trials++
			c.oneOf += 1 / float64(peers)
			if i == worst {
				c.top++
			}
		}
		return
	}
	for _, mr := range rec.meets {
		if k := mr.find(c.rank.Rank); k >= 0 && mr.shown.WaitCaused() > 0 {
			c.trials++
			c.oneOf += 1 / float64(len(mr.members))
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

// excessOf returns what the candidate is judged by, of any rank; false where there
// was nothing to compare: such a rank could not have come out worst.
func (c *candidate) excessOf(r *rankRecord) (excess int64, ok bool) {
	if c.link {
		return r.wire, r.wired
	}
	return r.excess.total(), r.weighed
}

// worst returns the rank of the role with the largest excess of the candidate's
// sort, or -1 where none has any, and how many ranks of the role could have.
func (rec *record) worst(c *candidate, of role) (worst, peers int) {
	worst, excess := -1, int64(0)
	for i := range rec.ranks {
		x, ok := c.excessOf(&rec.ranks[i])
		if !ok || rec.ranks[i].role != of {
			continue
		}
		peers++
		if x > excess {
			worst, excess = i, x
		}
	}
	return worst, peers
}

// failedGate returns the first gate that the candidate fails, "" for none. In
// few steps a rank that computes longer may just have had more to do. The effect
// is asked of the typical step: one long stall does not make a steady straggler
// of a rank that is hardly slower otherwise.
func (c *candidate) failedGate(cfg *Config) (gate string, got, want float64) {
	switch {
	case c.early || !c.byStep && (c.link || c.excess.busy() >= c.excess.idle):
		return gateFewSteps, float64(c.steps), minTrials
	case c.chance > cfg.MaxFalseAlarm:
		return gateFalseAlarm, c.chance, cfg.MaxFalseAlarm
	case c.excessShare*c.typical < cfg.MinExcessShare:
		return gateExcess, c.excessShare * c.typical, cfg.MinExcessShare
	case c.steadiness < minSteadiness:
		return gateSteadiness, c.steadiness, minSteadiness
	case c.costShare*c.typical < cfg.MinCostShare:
		return gateCost, c.costShare * c.typical, cfg.MinCostShare
	}
	return "", 0, 0
}
