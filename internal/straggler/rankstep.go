// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func (rs *rankStep) add(op *model.Op, j *job) {
	if op.Kind == model.KindStep {
		rs.start, rs.end, rs.marked, rs.phase, rs.want = op.Start, op.End, true, op.Phase, op.StepOps.Or(0)
		return
	}
	rs.came++
	rs.tidied = false
	if op.Kind != model.KindScope && op.Kind != model.KindHost { // these may span many steps
		rs.longest = max(rs.longest, op.Duration())
	}
	switch {
	case op.Kind.IsComm():
		if !rs.addComm(op, j) {
			j.e.stats.PlacesOverflowed++
			return
		}
	default:
		kind, ok := activityKind(op.Kind)
		if !ok {
			return
		}
		rs.addActivity(op, kind, j)
	}
	if !rs.marked {
		if rs.size() == 1 {
			rs.start, rs.end = op.Start, op.End
		}
		rs.start, rs.end = min(rs.start, op.Start), max(rs.end, op.End)
	}
}

// addComm adds a communication operation; false where it is one too many of its job.
func (rs *rankStep) addComm(op *model.Op, j *job) bool {
	var c *commOp
	rs.comms, c = oneMore(rs.comms)
	form := j.forms.of(op, c.form)
	if form == nil {
		rs.comms = rs.comms[:len(rs.comms)-1]
		return false
	}
	before := len(c.clock)
	form.reduce(op, c)
	rs.clocks += int64(len(c.clock) - before)
	return true
}

// addActivity adds what else the rank did.
func (rs *rankStep) addActivity(op *model.Op, kind actKind, j *job) {
	var a *activity
	rs.acts, a = oneMore(rs.acts)
	// One by one in place: it is done for each operation.
	a.cause, a.work = byContext, 0
	switch kind {
	case actScope, actHost:
		rs.scopes, rs.hosts = rs.scopes || kind == actScope, rs.hosts || kind == actHost
		a.key = j.keys.id(op.ComparisonKey(), a.key, &j.e.stats)
		if kind == actScope {
			a.cause = causeOf(op)
		}
	default:
		a.key = j.keys.exact(op, a.key, &j.e.stats)
		a.work = float32(max(0, op.WorkTokens.Or(op.WorkBytes.Or(0))))
	}
	a.start, a.end, a.launch, a.lane = op.Start, max(op.Start, op.End), launchOf(op), op.Lane()
	a.seq, a.microbatch, a.kind = uint32(op.Seq), microbatchOf(op), kind
}

// oneMore lengthens a slice by one element and returns it, with what it held last: where the
// room is that of the rank's step before, most likely the same operation of its program.
func oneMore[T any](s []T) ([]T, *T) {
	n := len(s)
	if n == cap(s) {
		var zero T
		s = append(s, zero)
	} else {
		s = s[:n+1]
	}
	return s, &s[n]
}

func microbatchOf(op *model.Op) int16 {
	if m := op.Microbatch; m.OK && m.V >= 0 && m.V < math.MaxInt16 {
		return int16(m.V)
	}
	return -1
}

func activityKind(k model.OpKind) (actKind, bool) {
	switch k {
	case model.KindCompute:
		return actCompute, true
	case model.KindCopy:
		return actCopy, true
	case model.KindScope:
		return actScope, true
	case model.KindHost:
		return actHost, true
	}
	return 0, false
}
