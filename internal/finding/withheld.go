// SPDX-License-Identifier: Apache-2.0

package finding

import "time"

const (
	// maxWithheld bounds the places that are remembered as withheld. What is withheld beyond it counts
	// each time that it is found.
	maxWithheld = 1 << 16
	// withheldFor is for how long a place that is not found any more is remembered.
	withheldFor = 10 * time.Minute
)

// withheld remembers the places that found no room, and when they were found last.
type withheld struct {
	last  map[Place]time.Time
	swept time.Time
}

func newWithheld() *withheld { return &withheld{last: map[Place]time.Time{}} }

// add reports whether the place is withheld for the first time.
func (w *withheld) add(p Place, now time.Time) (first bool) {
	w.sweep(now)
	last, known := w.last[p]
	if known || len(w.last) < maxWithheld {
		w.last[p] = now
	}
	return !known || now.Sub(last) >= withheldFor
}

// sweep forgets the places that are not found any more.
func (w *withheld) sweep(now time.Time) {
	if now.Sub(w.swept) < withheldFor {
		return
	}
	w.swept = now
	for p, last := range w.last {
		if now.Sub(last) >= withheldFor {
			delete(w.last, p)
		}
	}
}
