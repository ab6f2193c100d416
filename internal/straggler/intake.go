// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// maxOpTime bounds how long an operation or a step that is believed lasts. What is
// longer has a broken stamp, and would outweigh all others.
const maxOpTime = 24 * time.Hour

// faults is what was wrong with a job's input, for its report.
type faults struct {
	unsound                    int64
	firstBad                   string // the first of these, in words
	absurd                     int64  // operations that are longer than anything in their step can be
	firstAbsurd                string
	astray                     int64 // steps of ranks far from those of all others
	lastAstray, lastAstrayStep int64
	twins                      map[int64]*twin
	launches                   contradicted
	badLaunches                int64  // launches that cannot be true
	firstLaunch                string // the first of these, in words
	impossible                 impossible
	mixed                      mixed
	worlds                     worlds
	marks                      misplaced
	units                      otherUnit
	unended                    int64 // steps that some rank had not ended when they were judged
	lastStep                   int64
	lastRank                   int64
	unlisted                   int64 // operations of twins of further ranks
	miscounts                  map[int64]*miscounted
	recounts                   int64   // steps in which somebody may count differently
	unlistedCounts             int64   // steps of further ranks that count differently
	lost, told                 float64 // communication that is missing by its numbers, of so much that they tell of
}

// twin is a second process that calls itself the same rank of the same job.
type twin struct {
	first, second string
	ops           int64 // of the second, left out
}

// maxTwins bounds the ranks that are told of as having come twice.
const maxTwins = 16

// believable reports whether the operation's stamps can be true.
func believable(op *model.Op) bool {
	return op.Start >= 0 && op.End >= op.Start && op.End-op.Start <= int64(maxOpTime)
}

// refuse reports whether the operation is left out for its stamps, and counts it. A step
// whose own operation is left out counts as one that never ended.
func (j *job) refuse(r *model.Rank, op *model.Op) bool {
	if believable(op) {
		return false
	}
	j.e.stats.OpsUnsound++
	if j.faults.unsound++; j.faults.firstBad == "" {
		j.faults.firstBad = fmt.Sprintf("%q of rank %d in step %d, %v long", op.Name, r.Rank, op.Step.V, time.Duration(op.End-op.Start).Round(time.Second))
	}
	return true
}

// leaveOut counts operations that cannot be as long as they say.
func (f *faults) leaveOut(n int64, what string) {
	if f.absurd += n; f.firstAbsurd == "" {
		f.firstAbsurd = what
	}
}

// goAstray counts a step that ranks begin far from all others.
func (f *faults) goAstray(rec *record, ranks map[int]bool) {
	for i := range rec.ranks {
		if ranks[i] {
			f.astray++
			f.lastAstray, f.lastAstrayStep = rec.ranks[i].rank.Rank, rec.step
		}
	}
}

// process is who a rank was in the latest of its steps that was recorded.
type process struct {
	rank model.Rank
	step int64
}

// who returns the process whose operations a recorded step has of a rank. From its step
// on the rank is that process, so that what is left out of a second one names nobody.
func (j *job) who(r *model.Rank, step int64) *model.Rank {
	p := j.ranks[r.Rank]
	switch {
	case p.rank.MayBe(r):
		p.step = max(p.step, step)
	case step < p.step:
		before := *r
		return &before
	default:
		j.sizes.ranks += rankText(r) - rankText(&p.rank)
		p = &process{rank: *r, step: step} // records refer to the other
		j.ranks[r.Rank] = p
	}
	return &p.rank
}

// twice reports whether another process delivers this rank's step already, and counts
// what the second delivers. One that takes over with a later step has moved.
func (j *job) twice(rs *rankStep, r *model.Rank) bool {
	if rs.rank.MayBe(r) {
		return false
	}
	j.e.stats.OpsOfTwins++
	t := j.faults.twins[r.Rank]
	if t == nil {
		if len(j.faults.twins) >= maxTwins {
			j.faults.unlisted++
			return true
		}
		if j.faults.twins == nil {
			j.faults.twins = map[int64]*twin{}
		}
		t = &twin{first: processName(&rs.rank), second: processName(r)}
		j.faults.twins[r.Rank] = t
	}
	t.ops++
	return true
}

func processName(r *model.Rank) string {
	name := "host " + r.HostName
	if r.HostName == "" {
		name = "host " + r.HostID
	}
	if r.PID.OK {
		name += fmt.Sprintf(" pid %d", r.PID.V)
	}
	return name
}

// noteUnended counts a step that is judged although a rank never ended it.
func (j *job) noteUnended(s *openStep) {
	if s.ready == len(s.ranks) {
		return
	}
	for _, rank := range sorted(s.ranks) {
		if !s.ranks[rank].marked {
			j.e.stats.StepsUnended++
			j.faults.unended++
			j.faults.lastStep, j.faults.lastRank = s.step, rank
			return
		}
	}
}

func sorted[T any](of map[int64]T) []int64 { return slices.Sorted(maps.Keys(of)) }

// problems says in words what was wrong with the job's input.
func (j *job) problems() (out []string) {
	f := &j.faults
	for _, rank := range sorted(f.twins) {
		t := f.twins[rank]
		out = append(out, fmt.Sprintf("rank %d came from two processes in the same step: %s and %s. %d operations of the second were left out: do two runs bear one job id?",
			rank, t.first, t.second, t.ops))
	}
	for _, rank := range sorted(f.miscounts) {
		out = append(out, f.miscounts[rank].say(rank))
	}
	say := func(n int64, format string, args ...any) {
		if n > 0 {
			out = append(out, fmt.Sprintf(format, append([]any{n}, args...)...))
		}
	}
	say(f.unlisted, "%d operations of further ranks came from a second process, too")
	say(f.unlistedCounts, "%d times further ranks counted collectives differently from the others, too")
	say(f.unsound, "operations left out: %d, since they end before they start or last longer than %v; the first: %s", maxOpTime, f.firstBad)
	say(f.absurd, "operations left out: %d, since nothing in their step lasts so long; the first: %s", f.firstAbsurd)
	say(f.astray, "%d times a rank began a step minutes or more from all others, and counts for no step's length; the last: rank %d in step %d. Was its clock set?", f.lastAstray, f.lastAstrayStep)
	say(f.badLaunches, "%d launches were left out, since they are more than %v from what they launched, or negative; the first: %s", maxOpTime, f.firstLaunch)
	say(f.launches.steps, "in %d steps of ranks operations begin before they were launched: their launches were left out, and nothing tells idleness of their hosts from other idleness; the last: rank %d in step %d, by %v. Do two clocks stamp them?",
		f.launches.rank, f.launches.step, f.launches.by())
	if text := j.sayWorld(); text != "" {
		out = append(out, text)
	}
	if f.mixed.steps > 0 {
		out = append(out, f.mixed.say())
	}
	if text := f.units.say(); text != "" {
		out = append(out, text)
	}
	if f.marks.steps > 0 {
		out = append(out, f.marks.say())
	}
	if f.impossible.meetings > 0 {
		out = append(out, f.impossible.say())
	}
	say(f.unended, "%d steps were judged although a rank had not ended them; the last: step %d of rank %d", f.lastStep, f.lastRank)
	if lost := f.sayLost(); lost != "" {
		out = append(out, lost)
	}
	if len(j.keys.ops) >= maxKeys {
		out = append(out, fmt.Sprintf("more than %d distinct operations: further ones are told apart no more. Do their names hold numbers that count up?", maxKeys))
	}
	return out
}
