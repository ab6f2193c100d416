// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// counter is what a part of a save counts: steps of an optimizer or a scheduler. It need not be the step of
// the save: several optimizer steps may make one step, a scheduler may be stepped by epochs, a loss scaler
// may skip steps, and a job may have begun with an optimizer that had counted before.
type counter struct {
	domain model.Domain
	of     string // what counts, the same in each save
	file   string
	n      int64
	step   int64  // of the save
	want   int64  // the step, less those that are known to be skipped
	skips  bool   // steps may have been skipped that nothing counts
	shard  bool   // it is of one of several ranks, which agree
	every  bool   // the step of the save is the number of the optimizer's, but for the few that a loss scaler skips at first
	job    *hfJob // of the Trainer; nil of others

	optimizer string // which of several of a job, each of which may begin later or pause; "" where none may
}

func (c *counter) exact() bool { return c.n == c.want || c.n == c.step }

// judgeCounters compares what counts in one save with the same in the others. A count that another save
// has, or that falls behind the others' pace, is of another save, or was started anew.
func (s *scan) judgeCounters() {
	of := map[string][]*counter{}
	for i := range s.root.Saves {
		cs := s.root.Saves[i].counters
		for k := range cs {
			of[cs[k].of] = append(of[cs[k].of], &cs[k])
		}
	}
	for _, all := range of {
		slices.SortStableFunc(all, func(a, b *counter) int { return cmp.Compare(a.step, b.step) })
	}
	for i := range s.root.Saves {
		save := &s.root.Saves[i]
		for k := range save.counters {
			c := &save.counters[k]
			if why := c.doubt(of[c.of], save.counters); why != "" && !s.mayPause(save, c, of) {
				s.doubtDomain(save, c.domain, Problem{CheckWitness, Suspect, c.file, fmt.Sprintf("got a count of %d steps; want %s: it is of another save, or was started anew", c.n, why)})
			}
		}
	}
}

// doubt says what a counter should count instead; "" where nothing is wrong with it. all are those of the
// same thing, by step; beside are those of the same save.
func (c *counter) doubt(all []*counter, beside []counter) string {
	if c.exact() {
		return ""
	}
	var older []*counter
	others, exact := 0, true
	for _, o := range all {
		if o.step == c.step {
			continue
		}
		others++
		exact = exact && o.exact()
		if o.step < c.step {
			older = append(older, o)
		}
	}
	switch {
	case others == 0:
		return c.alone(beside)
	case c.domain.Kind != model.DomainOptimizer && stands(all):
		return ""
	case exact && c.lags(all):
		return fmt.Sprintf("%d, as other saves count their steps", c.want)
	}
	return c.behind(older)
}

// scalerSkips is how many steps a loss scaler skips until its scale fits, which begins with 2^16.
const scalerSkips = 16

// alone judges a counter that no other save has. Only one that lags, while what else counts in the save
// does not, is in doubt.
func (c *counter) alone(beside []counter) string {
	if c.job != nil {
		if want := c.job.doubt(c, beside); want != "" {
			return want
		}
	}
	if off := c.want - c.n; c.every && off > max(scalerSkips, c.want/4) {
		return strconv.FormatInt(c.want, 10)
	}
	lags := c.n < c.want && !c.skips && c.domain.Kind == model.DomainOptimizer
	other := slices.ContainsFunc(beside, func(o counter) bool { return o.of != c.of && o.exact() && !o.shard })
	if lags && (other || c.shard) {
		return strconv.FormatInt(c.want, 10)
	}
	return ""
}

// stands reports whether a thing counts the same in each of several saves: it does not count steps.
func stands(all []*counter) bool {
	const several = 3
	return len(all) >= several && all[0].n == all[len(all)-1].n && !slices.ContainsFunc(all, func(o *counter) bool { return o.n != all[0].n })
}

// lags reports whether a counter is off by more than what skipped steps explain: a quarter of the way to the
// nearest save.
func (c *counter) lags(all []*counter) bool {
	way := int64(0)
	for _, o := range all {
		d := max(c.step-o.step, o.step-c.step)
		if d > 0 && (way == 0 || d < way) {
			way = d
		}
	}
	off := c.want - c.n
	if off > 0 && c.skips {
		return false
	}
	const part = 4
	return max(off, -off) > way/part
}

// behind compares a counter with those of older saves: it has gone on since each of them, at their pace.
func (c *counter) behind(older []*counter) string {
	const counts = 2 // steps that a counter must have gone on to tell that it did not
	for _, o := range older {
		ahead := float64(o.n) / float64(max(o.step, 1)) * float64(c.step-o.step)
		switch {
		case c.n < o.n && o.n >= counts:
			return fmt.Sprintf("%d or more, which step %d counts", o.n, o.step)
		case c.n == o.n && ahead >= counts:
			return fmt.Sprintf("more than %d, which step %d counts", o.n, o.step)
		}
	}
	n := len(older)
	if n < counts {
		return ""
	}
	a, b := older[n-2], older[n-1]
	if b.step == a.step {
		return ""
	}
	ahead := float64(b.n-a.n) / float64(b.step-a.step) * float64(c.step-b.step)
	if ahead >= 2*counts && float64(c.n-b.n) < ahead/2 && !c.skips {
		return fmt.Sprintf("%.0f, at the pace of steps %d and %d", float64(b.n)+ahead, a.step, b.step)
	}
	return ""
}
