// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"slices"
	"time"
)

// complete reports whether every rank of the world has delivered all of the step.
func (j *job) complete(s *openStep) bool {
	if j.world == 0 || int64(len(s.ranks)) < j.world || s.ready < len(s.ranks) {
		return false
	}
	if s.whole {
		return true
	}
	for _, rs := range s.ranks {
		if !rs.marked || !j.allCame(rs) {
			return false
		}
	}
	s.whole = true
	return true
}

// due reports whether a step is complete, and its turn has come.
func (j *job) due(s *openStep) bool {
	if !j.complete(s) {
		return false
	}
	if s.done.IsZero() {
		s.done = j.e.now()
	}
	if j.inTurn(s) {
		return true
	}
	if over := s.done.Add(j.e.cfg.Reorder); j.waits.IsZero() || over.Before(j.waits) {
		j.waits = over
	}
	return false
}

// inTurn reports whether the step before one was closed, or had its time to come. The first step of all is 0.
func (j *job) inTurn(s *openStep) bool {
	wait := j.e.cfg.Reorder
	return wait == 0 || s.step == 0 || j.closed.Seen(s.step-1) || !s.done.IsZero() && j.e.now().Sub(s.done) >= wait
}

// closeDue closes the steps that are due. Until the wait of a complete step is over, only these can have become so:
// a step of which something came, and one whose step before was closed.
func (j *job) closeDue() (out []*StepReport) {
	defer clear(j.look)
	if !j.waits.IsZero() && !j.e.now().Before(j.waits) {
		j.waits = time.Time{}
		return j.closeWhere(j.due)
	}
	for _, n := range sorted(j.look) {
		for s := j.open[n]; s != nil && j.due(s); s = j.open[n] {
			out = append(out, j.close(s)...)
			n++
		}
	}
	return out
}

// lookAtAll has closeDue look at every open step.
func (j *job) lookAtAll() {
	for n := range j.open {
		j.look[n] = true
	}
}

// marked reports whether the step operation of every rank was seen.
func (j *job) marked(s *openStep) bool {
	for _, rs := range s.ranks {
		if !rs.marked {
			return false
		}
	}
	return j.world > 0 && int64(len(s.ranks)) >= j.world
}

// allCame reports whether as many operations came as the step operation
// announced, not counting those that came twice.
func (j *job) allCame(rs *rankStep) bool {
	if rs.came < rs.want {
		return false
	}
	before := rs.size()
	rs.tidy()
	rs.came -= int64(before - rs.size())
	j.held -= before - rs.size()
	return rs.came >= rs.want
}

func (j *job) openSteps() []int64 {
	steps := make([]int64, 0, len(j.open))
	for n := range j.open {
		steps = append(steps, n)
	}
	slices.Sort(steps)
	return steps
}

// closeWhere closes the open steps for which a condition holds, in their order.
func (j *job) closeWhere(when func(*openStep) bool) (out []*StepReport) {
	for _, n := range j.openSteps() {
		if s := j.open[n]; when(s) {
			out = append(out, j.close(s)...)
		}
	}
	return out
}

// close analyses an open step, of which nothing may be left.
func (j *job) close(s *openStep) []*StepReport {
	delete(j.open, s.step)
	j.closed.Add(s.step)
	if j.open[s.step+1] != nil {
		j.look[s.step+1] = true
	}
	j.sizes.open -= openStepBytes
	j.noteUnended(s)
	for rank, rs := range s.ranks {
		j.held -= rs.size()
		j.sizes.open -= rs.counted
		if !rs.marked && rs.size() == 0 {
			delete(s.ranks, rank) // all of it was left out, so that it has no times
		}
	}
	if len(s.ranks) == 0 {
		return nil
	}
	return []*StepReport{j.analyse(s)}
}
