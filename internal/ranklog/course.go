// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"hash/maphash"
)

// Limits of what is kept of the course of a process.
const (
	headLines = 3  // first lines, by which its next start is known
	enoughOf  = 2  // first lines that a start repeats at least
	maxCounts = 8  // kinds of lines that count
	maxTurns  = 16 // turns, the last ones
)

// stops counts what may end a life in one log: lines of the watchdog, and errors.
type stops struct {
	n     int64
	stamp moment // of the last line of the watchdog
}

// course is what a process prints in one log, but for errors and the lines of the watchdog. It tells a
// new life from lines that were printed before and waited in a buffer: a buffer repeats nothing.
type course struct {
	file    int
	label   string
	rank    int64 // -1: the lines name none
	head    []uint64
	counts  map[uint64]*count
	stops   int64 // those that were seen
	turns   []turn
	now     *turn // since the last stop
	counted bool  // it counted before the first stop
	headed  bool  // it had enough first lines before that
}

// count is a kind of lines that count something: "step 40".
type count struct {
	last   counted
	steady bool  // it never fell but at the beginning of a turn
	turn   int64 // stops, when it was last seen
}

// counted are the first two whole numbers of a line.
type counted [2]int64

func (c counted) less(o counted) bool { return c[0] < o[0] || c[0] == o[0] && c[1] < o[1] }

// turn is what follows a stop.
type turn struct {
	begin   int64 // line
	matched int   // first lines that were repeated
	steps   int   // lines that count
	fell    bool
	again   bool // it fell later, too
}

// fallen reports whether a count began again at a lower number than before: the process was started
// from an earlier point.
func (t *turn) fallen() bool { return t.fell && !t.again && t.steps >= enoughSteps }

// started reports whether the first lines of the process came again.
func (t *turn) started() bool { return t.matched >= enoughOf && !t.again }

// line takes a line, and reports whether the turn has enough to be a life.
func (c *course) line(s []byte, at place, seen *stops) bool {
	if len(bytes.TrimSpace(s)) == 0 {
		return false
	}
	if c.stops != seen.n {
		c.stop(seen)
	}
	c.first(letters(s), at)
	if isStep(s) {
		if key, value, ok := countOf(s); ok {
			c.count(key, value, at)
		}
	}
	return c.now != nil && (c.now.steps >= enoughSteps || c.now.started())
}

// stop ends the turn, and begins another one.
func (c *course) stop(seen *stops) {
	if c.stops == 0 {
		c.headed = len(c.head) >= enoughOf
		c.counted = len(c.counts) > 0
	}
	c.end()
	c.stops = seen.n
	c.now = &turn{}
}

// end keeps the turn, if it tells anything.
func (c *course) end() {
	if t := c.now; t != nil && (t.steps >= enoughSteps || t.started()) {
		if len(c.turns) == maxTurns {
			c.turns = append(c.turns[:0], c.turns[1:]...)
		}
		c.turns = append(c.turns, *t)
	}
	c.now = nil
}

// first takes a line as one of the first, or as the repetition of one. What comes again without a stop
// is no sign of a start.
func (c *course) first(line uint64, at place) {
	if c.now == nil {
		for i, h := range c.head {
			if h == line {
				c.head = c.head[:i:i]
				return
			}
		}
		if len(c.head) < headLines && cap(c.head) != len(c.head) || c.head == nil {
			if c.head == nil {
				c.head = make([]uint64, 0, headLines)
			}
			c.head = append(c.head, line)
		}
		return
	}
	if c.headed && c.now.matched == len(c.head) && c.head[0] == line {
		c.now.again = true // several processes start, or had it in their buffers
	}
	if c.headed && c.now.matched < len(c.head) && c.head[c.now.matched] == line {
		c.now.from(at)
		c.now.matched++
	}
}

func (t *turn) from(at place) {
	if t.begin == 0 {
		t.begin = at.line
	}
}

func (c *course) count(key uint64, value counted, at place) {
	k := c.counts[key]
	if k == nil {
		if len(c.counts) >= maxCounts {
			return
		}
		if c.counts == nil {
			c.counts = map[uint64]*count{}
		}
		c.counts[key] = &count{last: value, steady: true, turn: c.stops}
		return
	}
	old := k.last
	first := k.turn != c.stops
	k.last, k.turn = value, c.stops
	if old == value {
		return
	}
	if c.now == nil {
		k.steady = k.steady && !value.less(old)
		return
	}
	c.now.from(at)
	c.now.steps++
	switch fell := value.less(old); {
	case fell && first:
		c.now.fell = c.now.fell || k.steady
	case fell:
		c.now.again, k.steady = true, false
	}
}

// countOf reads the first whole numbers of a line: "step 40 loss 2.1" counts steps, and
// " 1%|  | 24/1752" what has 1752. Fractions, times, dates and percentages count nothing.
func countOf(s []byte) (key uint64, value counted, ok bool) {
	s = s[:min(len(s), shapeBytes)]
	value = counted{-1, -1}
	found := 0
	for i := 0; i < len(s) && found < len(value); i++ {
		if s[i] < '0' || s[i] > '9' {
			continue
		}
		n, end, whole := wholeNumber(s, i)
		if whole {
			if found == 0 {
				key = letters(s[:i])
				if total, _, ok := number(s[min(end+1, len(s)):]); ok && end < len(s) && s[end] == '/' {
					key ^= maphash.Comparable(seed, total)
				}
			}
			value[found] = n
			found++
		}
		i = end
	}
	return key, value, found > 0
}

// wholeNumber reads a number at a digit, and where it ends; ok is false where it is a part of a
// fraction, a time, a date or a word.
func wholeNumber(s []byte, at int) (n int64, end int, ok bool) {
	digit := func(i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }
	letter := func(i int) bool {
		return i >= 0 && i < len(s) && (s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z' || s[i] == '_')
	}
	joint := func(i int) bool { return i >= 0 && i < len(s) && bytes.IndexByte([]byte(".:-,/"), s[i]) >= 0 }
	n, length, ok := number(s[at:])
	end = at + length
	if !ok {
		end = at
		for digit(end) {
			end++
		}
		return 0, end, false
	}
	for end+3 < len(s)+1 && end < len(s) && s[end] == ',' && digit(end+1) && digit(end+2) && digit(end+3) && !digit(end+4) && n < 1e12 { // thousands
		n, end = n*1000+int64(s[end+1]-'0')*100+int64(s[end+2]-'0')*10+int64(s[end+3]-'0'), end+4
	}
	ok = !letter(at-1) && (!joint(at-1) || !digit(at-2) && !letter(at-2)) && !letter(end) && (end >= len(s) || s[end] != '%')
	ok = ok && (!joint(end) || s[end] == '/' || !digit(end+1))
	return n, end, ok
}
