// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"hash/maphash"
	"slices"
)

const (
	enoughSteps = 3   // lines of steps that show that a process goes on
	keptShapes  = 4   // lines that a line of a step may resemble: programs print several a step
	shapeBytes  = 160 // of a line that are compared
)

// steps are the last lines of a process that show that it trains: they are alike but for their
// numbers, and have a word of training. The threads of a process that hangs print others, and so
// does a process that ends.
type steps struct {
	shapes [keptShapes]shape
	next   int
	last   []place // at most enoughSteps, in the order of the log
}

// shape is a line without, and with its numbers.
type shape struct{ letters, all uint64 }

var seed = maphash.MakeSeed()

// stepWords are words of which lines of steps have one, in lower case.
var stepWords = [][]byte{[]byte("step"), []byte("iter"), []byte("epoch"), []byte("loss"), []byte("it/s"), []byte("s/it"), []byte("batch")}

// line takes a line of a process outside a traceback, and reports whether it goes on with steps.
func (s *steps) line(text []byte, at place) (step bool) {
	var buf [shapeBytes]byte
	low := lower(buf[:0], text)
	if !hasStepWord(low) {
		return false
	}
	now := shape{letters: letters(low), all: maphash.Bytes(seed, low)}
	for _, old := range s.shapes {
		if old.letters == now.letters && old.all != now.all {
			s.add(at)
			step = true
			break
		}
	}
	if i := slices.IndexFunc(s.shapes[:], func(old shape) bool { return old.letters == now.letters }); i >= 0 {
		s.shapes[i] = now
		return step
	}
	s.shapes[s.next%keptShapes] = now
	s.next++
	return step
}

// lower appends the beginning of a line in lower case.
func lower(to, text []byte) []byte {
	for _, c := range bytes.TrimRight(text[:min(len(text), shapeBytes)], " ") {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		to = append(to, c)
	}
	return to
}

func hasStepWord(low []byte) bool {
	return slices.ContainsFunc(stepWords, func(w []byte) bool { return bytes.Contains(low, w) })
}

// isStep reports whether a line has a word of training.
func isStep(text []byte) bool {
	var buf [shapeBytes]byte
	return hasStepWord(lower(buf[:0], text))
}

// letters is a hash of the lower-case letters of a text.
func letters(text []byte) uint64 {
	var buf [shapeBytes]byte
	n := 0
	for _, c := range text[:min(len(text), shapeBytes)] {
		if c|0x20 >= 'a' && c|0x20 <= 'z' {
			buf[n] = c | 0x20
			n++
		}
	}
	return maphash.Bytes(seed, buf[:n])
}

func (s *steps) add(at place) {
	if len(s.last) > 0 && s.last[0].file != at.file {
		s.last = s.last[:0]
	}
	if len(s.last) == enoughSteps {
		s.last = append(s.last[:0], s.last[1:]...)
	}
	s.last = append(s.last, at)
}

// follow reports whether steps follow a line of the same log.
func (s *steps) follow(at place) bool {
	return len(s.last) == enoughSteps && s.last[0].file == at.file && s.last[0].line > at.line
}

// join adds the steps that another record of the same process has in the same log: the order of
// lines in several logs is not known.
func (s *steps) join(o *steps) {
	if len(o.last) > 0 && len(s.last) > 0 && s.last[0].file != o.last[0].file {
		return
	}
	s.last = append(s.last, o.last...)
	slices.SortFunc(s.last, func(a, b place) int { return int(a.line - b.line) })
	s.last = s.last[max(0, len(s.last)-enoughSteps):]
}
