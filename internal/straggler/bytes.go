// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// What entries hold beside the texts in them, bytes. Sizes of types are the compiler's; the others
// are estimates of maps, of what an analysis keeps per rank over the window, and of the garbage
// that growing leaves.
const (
	jobBytes      = 16 << 10
	rhythmBytes   = 80 << 10 // with the first step
	rankBytes     = 5 << 10
	rankStepBytes = int64(unsafe.Sizeof(rankStep{})) + 64
	openStepBytes = 256
	activityBytes = int64(unsafe.Sizeof(activity{}))
	commOpBytes   = int64(unsafe.Sizeof(commOp{}))
	opKnownBytes  = 2*int64(unsafe.Sizeof(opKnown{})) + 64
	commFormBytes = 3*int64(unsafe.Sizeof(commForm{})) + 128
	recordBytes   = int64(unsafe.Sizeof(record{}))
	inRecordBytes = int64(unsafe.Sizeof(rankRecord{})) + 64
	meetBytes     = int64(unsafe.Sizeof(meetingRecord{}))
	memberBytes   = int64(unsafe.Sizeof(memberRecord{})+unsafe.Sizeof(shownSpan{})+unsafe.Sizeof(wire{})) + 8
	ownTimeBytes  = 2 * int64(unsafe.Sizeof(keyTime{}))
	// scratchBytes is what the analysis of a step takes for each of its operations; it is kept
	// for the next step.
	scratchBytes = 160
)

// sizes are the bytes that a job holds, by what holds them.
type sizes struct {
	ranks   int64 // processes, and the data kept of each over the window
	open    int64 // steps that are not closed
	spare   int64 // room of closed steps
	window  int64
	scratch int64
	counted int64 // of all, as the engine knows it, as whether the job is young
	young   bool
}

// bytes returns about how many bytes the job holds.
func (j *job) bytes() int64 {
	s := &j.sizes
	return j.base() + j.keys.bytes + j.forms.bytes + s.ranks + s.open + s.spare + s.window + s.scratch
}

// base returns what any job holds.
func (j *job) base() int64 {
	if j.steps == 0 {
		return jobBytes
	}
	return jobBytes + rhythmBytes
}

// rankText returns the bytes of a rank's texts.
func rankText(r *model.Rank) int64 {
	return int64(len(r.JobName) + len(r.JobID) + len(r.Incarnation) + len(r.HostName) + len(r.HostID) + len(r.HWID) + len(r.ClockID))
}

// room returns the bytes of what one rank delivered of a step.
func (rs *rankStep) room() int64 {
	return rankStepBytes + int64(cap(rs.acts))*activityBytes + int64(cap(rs.comms))*commOpBytes + rs.clocks + rs.text
}

// endTaking counts what the rank's step that is being taken has grown by.
func (j *job) endTaking() {
	if rs := j.taking.rank; rs != nil {
		now := rs.room()
		j.sizes.open += now - rs.counted
		rs.counted = now
	}
	j.taking = taking{}
}

// bytes returns about how many bytes the record holds.
func (rec *record) bytes() int64 {
	n := recordBytes + int64(len(rec.ranks))*inRecordBytes
	for i := range rec.ranks {
		n += int64(len(rec.ranks[i].computeBy)+len(rec.ranks[i].idleBy)) * ownTimeBytes
	}
	for _, mr := range rec.meets {
		n += meetBytes + int64(len(mr.members))*memberBytes
	}
	return n
}

// letSpareGo frees the room of closed steps; false where there is none.
func (j *job) letSpareGo() bool {
	if j.sizes.spare == 0 && j.sizes.scratch == 0 {
		return false
	}
	clear(j.spare)
	j.letGo()
	j.sizes.spare, j.sizes.scratch = 0, 0
	return true
}

// giveWay frees some of what the job holds, and what takes the least from its judgement first: the
// room of closed steps, then open steps or the window's oldest, whichever is more. It returns false
// where only the job as a whole is left.
func (j *job) giveWay() ([]*StepReport, bool) {
	switch s := &j.sizes; {
	case j.letSpareGo():
		return nil, true
	case len(j.open) > 0 && (s.open >= s.window || len(j.window) <= minTrials):
		return j.closeOne(), true
	case len(j.window) > minTrials:
		j.forget(max(1, (len(j.window)-minTrials)/4))
		return nil, true
	}
	return nil, false
}

// closeOne analyses the oldest of the complete steps that wait for their turn, which loses nothing by it; where there is
// none, the oldest open step.
func (j *job) closeOne() []*StepReport {
	if j.e.cfg.Reorder > 0 {
		for _, n := range j.openSteps() {
			if s := j.open[n]; j.complete(s) {
				return j.close(s)
			}
		}
	}
	return j.closeOldest()
}

// closeOldest analyses the oldest open step, complete or not.
func (j *job) closeOldest() []*StepReport {
	oldest := j.openSteps()[0]
	j.e.stats.StepsEvicted++
	return j.closeWhere(func(s *openStep) bool { return s.step == oldest })
}

// forget drops so many of the window's oldest steps.
func (j *job) forget(n int) {
	j.e.stats.StepsForgotten += int64(n)
	j.dropOldest(n)
}

// count brings what the engine knows of the job's bytes up to date.
func (e *Engine) count(j *job) {
	e.uncount(j)
	j.sizes.counted, j.sizes.young = j.bytes(), j.young()
	e.bytes += j.sizes.counted
	if j.sizes.young {
		e.young += j.sizes.counted
	}
}

// uncount takes the job out of what the engine counts.
func (e *Engine) uncount(j *job) {
	e.bytes -= j.sizes.counted
	if j.sizes.young {
		e.young -= j.sizes.counted
	}
	j.sizes.counted, j.sizes.young = 0, false
}

// young reports whether the job has not shown enough steps yet to be judged.
func (j *job) young() bool { return j.steps < minTrials }

// shrink frees memory while the jobs hold more than they may: the largest gives way first, so that
// no job takes the room of the others, and young ones where they hold more than half, so that many
// that come once do not either.
func (e *Engine) shrink() (out []*StepReport) {
	for e.cfg.MaxMemory > 0 && e.bytes > e.cfg.MaxMemory {
		j := e.largest(e.young > e.cfg.MaxMemory/2)
		reports, gave := j.giveWay()
		out = append(out, reports...)
		if gave {
			e.count(j)
		} else {
			e.evict(j)
		}
	}
	return out
}

// largest returns the largest job among those that are young or not, of equal ones the first by its names;
// there is one, since those that are hold more than half, or less.
func (e *Engine) largest(young bool) (out *job) {
	for _, j := range e.jobs {
		if j.sizes.young == young && (out == nil || cmp.Or(cmp.Compare(j.sizes.counted, out.sizes.counted), out.compare(j)) > 0) {
			out = j
		}
	}
	return out
}

// compare compares jobs by their names.
func (j *job) compare(o *job) int {
	return cmp.Or(cmp.Compare(j.incarnation, o.incarnation), cmp.Compare(j.id, o.id))
}
