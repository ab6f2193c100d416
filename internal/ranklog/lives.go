// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/torchname"
)

// apart is how far two times are apart at least that are not of one end of a job.
const apart = 60 * second

// stop notes what may end a life in a log, and returns the spell of its lines. by: the watchdog wrote it.
func (l *reader) stop(label string, by bool) int64 {
	if l.moved {
		l.moved = false
		l.set.spells[l.log]++
	}
	seen := l.stops[label]
	if seen == nil {
		if len(l.stops) >= maxLabels {
			return l.set.spells[l.log]
		}
		seen = &stops{}
		l.stops[label] = seen
	}
	seen.n++
	if by {
		if seen.stamp > 0 && l.set.stamp > seen.stamp+apart {
			l.set.spells[l.log]++
		}
		seen.stamp = max(seen.stamp, l.set.stamp)
	}
	return l.set.spells[l.log]
}

// goOn takes a line of a process that is none of an error, and reports whether it is ordinary. Lines of launchers and libraries show no life:
// their numbers are those of processes and threads.
func (l *reader) goOn(label string, rank int64, s []byte, at place) (ordinary bool) {
	if l.kinds.of(behindRank(s, rank)) != lineOrdinary {
		return false
	}
	of := courseOf{label, rank}
	c := l.courses[of]
	if c == nil {
		if len(l.set.courses)+len(l.courses) >= maxRecords {
			return true
		}
		c = &course{file: l.file, label: label, rank: rank}
		l.courses[of] = c
	}
	seen := l.stops[label]
	if seen == nil {
		seen = &stops{}
	}
	l.moved = c.line(s, at, seen) || l.moved
	return true
}

// end ends the reading of a log.
func (l *reader) end() {
	l.endWrapped()
	for _, c := range l.courses {
		if seen := l.stops[c.label]; seen != nil && c.stops == 0 { // it printed nothing afterwards
			c.stop(seen)
		}
		c.end()
		l.set.courses = append(l.set.courses, c)
	}
}

// lives is what is known of the lives of a job before the last one.
type lives struct {
	waits  map[int64]waits // the last of each rank
	all    []pastWait
	errors map[int64]fault
	begins []place
}

func (v *lives) wait(rank int64, w *waits) {
	if v.waits == nil {
		v.waits = map[int64]waits{}
	}
	v.waits[rank] = *w
}

func (v *lives) fail(rank int64, f fault) {
	if f.weight < weightUnclear {
		return
	}
	if v.errors == nil {
		v.errors = map[int64]fault{}
	}
	v.errors[rank] = f
}

func (v *lives) exit(rank int64, e exit) {
	if e.own() {
		v.fail(rank, fault{text: e.text, weight: weightOwn, at: e.at})
	}
}

// part leaves out what is of an earlier life of the job, or of a hang that is over: the last life is
// judged. A life ends for all ranks, since a job is started again as a whole.
func (s *Set) part() {
	later := slices.Concat(s.turned(), s.fallen())
	s.lives.begins = slices.Concat(s.restarts, later)
	begins := s.latest(slices.Concat(s.begins, later))
	for rank, r := range s.ranks {
		s.partRecord(rank, r, begins)
	}
	for _, ends := range []map[int64]exit{s.exits, s.tasks} {
		for rank, e := range ends {
			if s.over(e.at, begins) {
				s.lives.exit(rank, e)
				delete(ends, rank)
			}
		}
	}
	maps.DeleteFunc(s.nameless, func(_ int64, at place) bool { return s.over(at, begins) })
	maps.DeleteFunc(s.heard, func(_ int64, at place) bool { return s.over(at, begins) })
	s.statements = slices.DeleteFunc(s.statements, func(st statement) bool { return s.over(st.at, begins) })
	if s.over(s.ordered, begins) {
		s.ordered = place{}
	}
	if s.over(s.closing, begins) {
		s.closing = place{}
	}
	s.stray = slices.DeleteFunc(s.stray, func(f fault) bool { return s.over(f.at, begins) })
	for _, r := range s.ranks {
		r.partByClock()
	}
	s.partByNumbers()
	for rank, r := range s.ranks {
		s.drop(rank, r)
	}
}

// over reports whether a life begins behind a line of the same log.
func (s *Set) over(at place, begins map[int]place) bool {
	b, ok := begins[s.parts[at.file].log]
	return ok && s.before(at, b)
}

// latest keeps the last line of each log.
func (s *Set) latest(lines []place) map[int]place {
	out := map[int]place{}
	for _, at := range lines {
		log := s.parts[at.file].log
		if old, ok := out[log]; !ok || s.before(old, at) {
			out[log] = at
		}
	}
	return out
}

func (s *Set) partRecord(rank int64, r *record, begins map[int]place) {
	for i := range r.waits {
		if w := &r.waits[i]; s.over(w.at, begins) {
			w.over = outlived
		}
	}
	r.progress = slices.DeleteFunc(r.progress, func(p progress) bool {
		over := s.over(p.at, begins)
		r.parted = r.parted || over
		return over
	})
	if r.isStuck && s.over(r.stuck, begins) {
		r.isStuck, r.parted = false, true
	}
	over := r.fault.weight != weightNone && s.over(r.fault.at, begins)
	for _, f := range r.older {
		switch {
		case s.over(f.at, begins):
			s.lives.fail(rank, f.fault)
			r.parted = true
		case over: // these follow one another
		case r.fault.weight == weightNone || f.weight > r.fault.weight && !f.caught:
			r.fault, r.after, r.seen = f.fault, f.after, nil
		}
	}
	if over {
		s.lives.fail(rank, r.fault)
		r.fault = fault{}
		r.parted = true
	}
	if s.over(r.order.at, begins) {
		r.order = order{}
	}
	r.errors = slices.DeleteFunc(r.errors, func(e ownError) bool { return s.over(e.at, begins) })
}

// turned lists where courses show that a life begins: their first lines come again, or a count falls. A process alone has no later life where others,
// which print the same, show none.
func (s *Set) turned() (out []place) {
	var fallen, started, counting, headed int
	for _, c := range s.courses {
		if c.stops == 0 {
			continue
		}
		if c.counted {
			counting++
		}
		if c.headed {
			headed++
		}
		if slices.ContainsFunc(c.turns, func(t turn) bool { return t.fallen() }) {
			fallen++
		}
		if slices.ContainsFunc(c.turns, func(t turn) bool { return t.started() }) {
			started++
		}
	}
	several := fallen+started > 1
	waiting := s.waitingIn()
	for _, c := range s.courses {
		mixed := slices.ContainsFunc(c.turns, func(t turn) bool {
			return (t.fallen() || t.started()) && waiting[c.file].mixed(t.begin)
		})
		for i := range c.turns {
			t := &c.turns[i]
			if mixed {
				continue
			}
			if t.fallen() && (several || counting < 2) || t.started() && (several || headed < 2) {
				out = append(out, place{c.file, t.begin})
			}
		}
	}
	return out
}

// stretch is from the first to the last of several lines.
type stretch struct{ first, last int64 }

// stretches are the lines with time-outs of a log.
type stretches struct {
	all  stretch
	each []stretch // from the first to the last of each rank that has several, by the first; none overlap
}

// waitingIn lists the time-outs of each file.
func (s *Set) waitingIn() map[int]*stretches {
	out := map[int]*stretches{}
	for _, r := range s.ranks {
		own := map[int]stretch{}
		for i := range r.waits {
			at := r.waits[i].at
			of, ok := own[at.file]
			if !ok {
				of = stretch{at.line, at.line}
			}
			own[at.file] = stretch{min(of.first, at.line), max(of.last, at.line)}
		}
		for file, of := range own {
			to := out[file]
			if to == nil {
				to = &stretches{all: of}
				out[file] = to
			}
			to.all = stretch{min(to.all.first, of.first), max(to.all.last, of.last)}
			if of.first < of.last {
				to.each = append(to.each, of)
			}
		}
	}
	for _, to := range out {
		slices.SortFunc(to.each, func(a, b stretch) int { return cmp.Compare(a.first, b.first) })
		joined := to.each[:0]
		for _, of := range to.each {
			if n := len(joined); n > 0 && of.first <= joined[n-1].last {
				joined[n-1].last = max(joined[n-1].last, of.last)
				continue
			}
			joined = append(joined, of)
		}
		to.each = joined
	}
	return out
}

// mixed reports whether a line parts the time-outs of a log so that no rank has one on either side:
// these are not two lives, but what several processes printed, one after the other.
func (t *stretches) mixed(line int64) bool {
	if t == nil || line <= t.all.first || line > t.all.last {
		return false
	}
	n, _ := slices.BinarySearchFunc(t.each, line, func(of stretch, line int64) int { return cmp.Compare(of.first, line) })
	return n == 0 || t.each[n-1].last < line
}

// fallen lists where lives begin by the numbers of operations, which fall when a job is started again:
// behind the last line that has the numbers of before.
func (s *Set) fallen() (out []place) {
	var falls []fall
	for _, r := range s.ranks {
		falls = append(falls, r.falls...)
	}
	slices.SortFunc(falls, func(a, b fall) int {
		return cmp.Or(cmp.Compare(a.to.file, b.to.file), cmp.Compare(a.to.line, b.to.line))
	})
	for i := 0; i < len(falls); {
		first := falls[i].to
		begin := place{first.file, 0}
		for ; i < len(falls) && falls[i].to.file == first.file; i++ {
			from := falls[i].from
			if from.file == first.file && from.line >= first.line {
				break
			}
			if from.file == first.file {
				begin.line = max(begin.line, from.line+1)
			}
		}
		out = append(out, begin)
	}
	return out
}

// partByClock ends waits in what the rank waits in again, longer afterwards than an operation takes to
// time out.
func (r *record) partByClock() {
	for i := range r.waits {
		w := &r.waits[i]
		if w.over == open && w.stamp > 0 && w.timeout > 0 && slices.ContainsFunc(r.waits, func(o waits) bool {
			return o.log == w.log && o.group == w.group && o.seq == w.seq && o.stamp > w.stamp+moment(w.timeout)+2*apart
		}) {
			w.over = outlived
		}
	}
}

// waited names an operation over all ranks.
type waited struct {
	group
	seq int64
}

// partByNumbers ends waits in operations that others waited in before, and in which nobody is known to
// wait since: these ranks wrote nothing in the last life.
func (s *Set) partByNumbers() {
	old, late := map[waited]ending{}, map[waited]bool{}
	for _, r := range s.ranks {
		for i := range r.waits {
			w := &r.waits[i]
			of := waited{w.group, w.seq}
			if w.over != open {
				old[of] = max(old[of], w.over)
				r.parted = true
			}
		}
	}
	if len(old) == 0 {
		return
	}
	for _, r := range s.ranks {
		for i := range r.waits {
			if w := &r.waits[i]; w.over == open && r.parted {
				late[waited{w.group, w.seq}] = true
			}
		}
	}
	alike, times, printed := s.alike(), s.times(), s.printed()
	for rank, r := range s.ranks {
		for i := range r.waits {
			w := &r.waits[i]
			of := waited{w.group, w.seq}
			switch over := old[of]; {
			case w.over != open || over == open || r.parted, over == passed && alike[w.group]:
			case !late[of], isEarlier(w, times[of], printed(rank, w.at.file)):
				w.over = over
			}
		}
	}
}

// alike are the groups of one name that are several.
func (s *Set) alike() map[group]bool {
	out := map[group]bool{}
	for g, list := range s.seats() {
		in := map[int64]bool{}
		for _, at := range list {
			out[g] = out[g] || in[at.in]
			in[at.in] = true
		}
	}
	return out
}

// timesOf are when ranks began to say that an operation timed out: the last in the earlier life, the
// first in the later one; 0: unknown.
type timesOf struct{ before, since moment }

func (s *Set) times() map[waited]timesOf {
	out := map[waited]timesOf{}
	for _, r := range s.ranks {
		for i := range r.waits {
			w := &r.waits[i]
			of := waited{w.group, w.seq}
			at := out[of]
			switch {
			case w.stamp == 0:
			case w.over != open:
				at.before = max(at.before, w.stamp)
			case r.parted && (at.since == 0 || w.stamp < at.since):
				at.since = w.stamp
			}
			out[of] = at
		}
	}
	return out
}

// isEarlier reports whether a wait, in an operation that two lives have, is of the first one: by its
// time, or since its process went on afterwards.
func isEarlier(w *waits, at timesOf, printed []*course) bool {
	if w.stamp > 0 && at.before > 0 && at.since > at.before+apart {
		return w.stamp < at.before+(at.since-at.before)/2
	}
	return slices.ContainsFunc(printed, func(c *course) bool {
		n := len(c.turns)
		return n > 0 && c.turns[n-1].begin > w.at.line && c.turns[n-1].steps >= enoughSteps
	})
}

// printed lists the courses of a rank in a file.
func (s *Set) printed() func(rank int64, file int) []*course {
	by := map[int][]*course{}
	for _, c := range s.courses {
		by[c.file] = append(by[c.file], c)
	}
	return func(rank int64, file int) (out []*course) {
		if s.files[file].Rank == rank {
			return by[file]
		}
		for _, c := range by[file] {
			if c.rank == rank {
				out = append(out, c)
			}
		}
		return out
	}
}

// drop takes out what is over.
func (s *Set) drop(rank int64, r *record) {
	var last *waits
	for i := range r.waits {
		if w := &r.waits[i]; w.over == outlived {
			last = w
			if len(s.lives.all) < maxRecords {
				s.lives.all = append(s.lives.all, pastWait{rank, *w})
			}
		}
	}
	if last != nil {
		s.lives.wait(rank, last)
		s.past++
	}
	over := func(p *progress) bool {
		return slices.ContainsFunc(r.waits, func(w waits) bool {
			return w.group == p.group && (w.over == outlived || w.over == passed && w.seq > p.completed)
		})
	}
	had := len(r.waits)
	waiting := slices.ContainsFunc(r.waits, func(w waits) bool { return w.over == open })
	if !waiting {
		r.progress = slices.DeleteFunc(r.progress, func(p progress) bool { return over(&p) })
	}
	r.waits = slices.DeleteFunc(r.waits, func(w waits) bool { return w.over != open })
	if len(r.waits) < had {
		r.parted = true
	}
	for i := len(r.waits) - 1; i > 0; i-- { // two spells of one life
		w := r.waits[i]
		if k := slices.IndexFunc(r.waits[:i], func(o waits) bool {
			return o.group == w.group && o.seq == w.seq && (o.op == w.op || o.op == "" || w.op == "")
		}); k >= 0 {
			o := &r.waits[k]
			if o.op == "" {
				o.work = w.work
			}
			o.ran, o.groupRank, o.at = max(o.ran, w.ran), max(o.groupRank, w.groupRank), w.at
			r.waits = slices.Delete(r.waits, i, i+1)
		}
	}
}

// doubtLives notes the errors of which nothing tells whether they are of the last life: of logs without a
// sign of a life that other logs show.
func (s *Set) doubtLives() {
	several := len(s.lives.waits) > 0
	for rank, r := range s.ranks {
		_, waitedBefore := s.lives.waits[rank]
		r.doubtful = several && !r.parted && !waitedBefore && r.fault.weight >= weightUnclear
	}
}

// named names an operation for people.
func (w *waits) named() string {
	name := torchname.Collective(w.op)
	if name == "" {
		name = strings.ToLower(strings.Trim(w.op, "_"))
	}
	text := strings.TrimSpace(fmt.Sprintf("%s %d", name, w.seq))
	if w.unnamed() {
		return text
	}
	return text + " of " + cmp.Or(w.desc, w.name)
}
