// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
)

const (
	// maxWithheld bounds the places that are remembered as withheld. What is withheld beyond it counts
	// each time that it is found.
	maxWithheld = 1 << 16
	// withheldFor is for how long a place that is not found any more is remembered.
	withheldFor = 10 * time.Minute
)

// withheld remembers the places that found no room, and when they were found last.
type withheld struct {
	last *bounded.Map[Place, time.Time]
}

func newWithheld() withheld {
	return withheld{bounded.NewMap(bounded.MapConfig[Place, time.Time]{Entries: maxWithheld, Order: bounded.ByUse})}
}

// add reports whether the place is withheld for the first time.
func (w withheld) add(p Place, now time.Time) (first bool) {
	w.last.DropOldest(func(_ Place, last time.Time) bool { return now.Sub(last) >= withheldFor })
	last, known := w.last.Get(p)
	if w.last.Fits(p, now) {
		w.last.Set(p, now)
	}
	return !known || now.Sub(last) >= withheldFor
}
