// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"maps"
)

// sign is what the ordinary lines behind an error show: that the process continued, or that they waited in
// the buffer of its standard output until it ended.
type sign int

const (
	signNone     sign = iota // there is no such line
	signUnmarked             // lines without a time or a count, that show that it continued
	signBuffer               // times or counts that are not above those of other processes before the error
	signOwn                  // times before its own last one
	signWentOn               // times or counts above those before the error
)

// maxCounted bounds the kinds of lines that count something in one log.
const maxCounted = 32

// seen is what a log had up to an error.
type seen struct {
	at     place // of the error
	label  string
	counts map[uint64]counted // the highest count of each kind of line
	stamp  moment             // the last time of any process; 0: none
	own    moment             // the last time of the process itself; 0: none
	sign   sign
}

// before keeps what the log had when a process wrote an error.
func (l *reader) before(label string, rec *record, at place) {
	if rec.seen != nil && rec.seen.sign == signNone && rec.seen.at.file == at.file {
		return // an error of the same end
	}
	own := rec.stamped
	if of := l.set.sources[source{l.file, label, -1}]; of != nil && l.alone(label) {
		own = max(own, of.stamped) // its lines without a mark of the rank
	}
	rec.seen = &seen{at: at, label: label, counts: maps.Clone(l.counted), stamp: l.latest, own: own}
	if len(l.ends) < maxLabels || l.ends[label] != nil {
		l.ends[label] = rec.seen
	}
}

// alone reports whether no line shows that several ranks have a label.
func (l *reader) alone(label string) bool {
	o := l.set.origins[source{l.file, label, -1}]
	return o == nil || len(o.ranks) < 2
}

// sees notes the time of a line of a process. Those of libraries may be of another zone.
func (l *reader) sees(rec *record, s []byte) {
	if now := l.set.stamp; now > 0 && !bytes.Contains(s, []byte(".cpp:")) {
		l.latest, rec.stamped = max(l.latest, now), max(rec.stamped, now)
	}
}

// ofBuffer reports whether an ordinary line waited in a buffer since before the error of its process.
func (l *reader) ofBuffer(label string, rank int64, rec *record, s []byte) bool {
	b := rec.seen
	if rank < 0 && l.alone(label) {
		b = l.ends[label]
	}
	key, value, counts := uint64(0), counted{}, false
	if isStep(s) {
		key, value, counts = countOf(s)
	}
	if b != nil && b.at.file == l.file && b.next(rec, l.set.stamp, key, value, counts) {
		return true
	}
	if old, known := l.counted[key]; counts && (known && old.less(value) || !known && len(l.counted) < maxCounted) {
		if l.counted == nil {
			l.counted = map[uint64]counted{}
		}
		l.counted[key] = value
	}
	return false
}

// next takes an ordinary line, and reports whether it waited in a buffer.
func (b *seen) next(rec *record, now moment, key uint64, value counted, counts bool) bool {
	old, known := b.counts[key]
	next := b.of(now, counts && known, value, old)
	buffered := next == signBuffer || next == signOwn
	if buffered && b.sign == signUnmarked {
		rec.retract(b.at)
	}
	b.sign = next
	return buffered
}

// of is the sign that the next ordinary line gives.
func (b *seen) of(now moment, counts bool, value, old counted) sign {
	switch {
	case b.sign == signWentOn:
		return signWentOn
	case now > 0 && b.stamp > 0 && now > b.stamp, (now == 0 || b.stamp == 0) && counts && old.less(value):
		return signWentOn
	case now > 0 && b.own > 0 && now < b.own:
		return signOwn
	case now > 0 && b.stamp > 0, counts:
		return max(b.sign, signBuffer)
	}
	return max(b.sign, signUnmarked)
}

// retract takes back that ordinary lines followed an error: they waited in a buffer.
func (r *record) retract(fault place) {
	for i := range r.ran {
		if at := &r.ran[i]; at.file == fault.file && at.line > fault.line {
			at.line = fault.line - 1
		}
	}
	r.after, r.lines, r.steps.last = 0, 0, nil
}

// maybeBuffered reports whether lines follow the error of a rank that may have waited in a buffer.
func (s *Set) maybeBuffered(r *record) bool {
	if r.seen == nil || r.seen.sign != signBuffer || r.fault.weight == weightNone || r.fault.caught {
		return false
	}
	o := s.origins[source{r.seen.at.file, r.seen.label, -1}]
	return o == nil || len(o.ranks) < 2 // else they may be another rank's
}
