// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// maxRan bounds the files in which the last ordinary line of a process is kept.
const maxRan = 64

// runs notes an ordinary line.
func (r *record) runs(at place) {
	i := slices.IndexFunc(r.ran, func(old place) bool { return old.file == at.file })
	switch {
	case i >= 0:
		r.ran[i].line = max(r.ran[i].line, at.line)
	case len(r.ran) < maxRan:
		r.ran = append(r.ran, at)
	}
}

// ranTo is the last ordinary line in a file, as far as lines were looked at; 0: none.
func (r *record) ranTo(file int) int64 {
	if i := slices.IndexFunc(r.ran, func(old place) bool { return old.file == file }); i >= 0 {
		return r.ran[i].line
	}
	return 0
}

// wentOn reports whether an ordinary line follows the fault in its log: the process caught that.
func (r *record) wentOn() bool {
	return r.fault.weight != weightNone && slices.ContainsFunc(r.ran, func(at place) bool {
		return at.file == r.fault.at.file && at.line > r.fault.at.line
	})
}

// order is an order to end that a process, or a whole log, has got.
type order struct {
	got   bool
	at    place
	lines int64 // ordinary ones that follow
}

// grace is how many ordinary lines a process may still write that was ordered to end. One that
// writes more continued, or is of a later life of the job.
const grace = 100

func (o *order) given() bool { return o.got && o.lines <= grace }

// before reports whether a process had the order when it wrote a line of the same log.
func (o *order) before(at place) bool {
	return o.given() && o.at.file == at.file && o.at.line < at.line
}

// obey takes the order that another record of the same process has got. No later error
// is its own cause.
func (r *record) obey(other order) {
	if other.given() {
		r.order = other
	}
	if r.order.before(r.fault.at) {
		r.fault.weight = min(r.fault.weight, weightResult)
	}
}

// ordered notes an order to end, and reports whether the line is one.
func (l *reader) ordered(tag label, rank int64, rec *record, s []byte, at place) bool {
	if !ordersEnd(s) {
		return false
	}
	rec.order = order{got: true, at: at}
	if rank < 0 && tag.text == "" {
		l.order = rec.order
	}
	return true
}

// noteOrdinary notes an ordinary line.
func (l *reader) noteOrdinary(rec *record, rank int64, s []byte, at place, moved bool) {
	if rec.ranTo(at.file) >= l.faulty && !l.order.given() && !rec.order.given() {
		return // no error and no order is open
	}
	switch kind := l.kinds.of(behindRank(s, rank)); {
	case moved:
	case hasBar(s), kind == lineOfStack, kind == lineOfEnd && !rec.repeats(s):
		l.noteEnd(at)
		return
	}
	rec.most = weightNone
	rec.lines++
	rec.after++
	rec.order.lines++
	l.order.lines++
	rec.runs(at)
}

// repeats reports whether a line is like the last one but for its numbers: a program prints such
// lines while it runs, whatever their words.
func (r *record) repeats(s []byte) bool {
	old, now := r.lastEnd, shape{letters: letters(s), all: maphash.Bytes(seed, s)}
	r.lastEnd = now
	return old.letters == now.letters && old.all != now.all
}

// behindRank is a line without the space that follows the mark of its rank.
func behindRank(s []byte, rank int64) []byte {
	if rank >= 0 && len(s) > 0 && s[0] == ' ' {
		return s[1:]
	}
	return s
}

// task takes the end of a task that srun reports. A task that ends after an order to end, or
// that srun itself killed with others, is no cause.
func (l *reader) task(e exit) {
	if old, known := l.set.tasks[e.rank]; known && (old.at.file != l.file || old.at.line > l.began) || l.order.given() || len(l.set.tasks) >= maxRecords {
		return
	}
	if e.killed {
		if l.killed >= 0 {
			e.root = false
			first := l.set.tasks[l.killed]
			first.root = false
			l.set.tasks[l.killed] = first
		} else {
			l.killed = e.rank
		}
	}
	l.set.tasks[e.rank] = e
}

// bars are the counts of the last progress bars of a process: one that ends writes its bars once
// more with the same counts.
type bars struct {
	counts [keptShapes]uint64
	next   int
}

// moved notes a progress bar, and reports whether it has another count than before.
func (b *bars) moved(line []byte) bool {
	if !hasBar(line) {
		return false
	}
	if i := bytes.LastIndexByte(line, '|'); i >= 0 {
		line, _, _ = bytes.Cut(line[i:], []byte("[")) // in brackets are times
	}
	now := maphash.Bytes(seed, bytes.TrimSpace(line))
	if slices.Contains(b.counts[:], now) {
		return false
	}
	b.counts[b.next%keptShapes] = now
	b.next++
	return b.next > 1
}
