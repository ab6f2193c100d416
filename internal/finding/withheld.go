// SPDX-License-Identifier: Apache-2.0

package finding

// maxWithheld bounds the places that are remembered as withheld. What is withheld beyond it counts
// each time that it is found.
const maxWithheld = 1 << 16

// withheld remembers the places that found no room, for as long as they are found.
type withheld struct {
	before, now map[Place]struct{}
}

func newWithheld() *withheld {
	return &withheld{before: map[Place]struct{}{}, now: map[Place]struct{}{}}
}

// add reports whether the place was not withheld in the last look, nor before in this one.
func (w *withheld) add(p Place) (first bool) {
	_, again := w.before[p]
	_, twice := w.now[p]
	if len(w.now) < maxWithheld {
		w.now[p] = struct{}{}
	}
	return !again && !twice
}

// look ends a look.
func (w *withheld) look() {
	if len(w.now) == 0 && len(w.before) == 0 {
		return
	}
	w.before, w.now = w.now, map[Place]struct{}{}
}
