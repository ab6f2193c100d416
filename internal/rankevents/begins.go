// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"cmp"
	"slices"
)

// maxBegins is of how many steps the beginning is remembered, for what comes late:
// more than may be open by default.
const maxBegins = 8192

type begun struct {
	at uint64 // MONOTONIC_RAW ns
	n  int64
}

func beganBefore(b begun, at uint64) int { return cmp.Compare(b.at, at) }

// beginTable tells which step was current at a time.
type beginTable struct {
	list []begun // by time
	// forgotten: steps before the first of the list have begun, too.
	forgotten bool
}

// add notes that a step began.
func (t *beginTable) add(n int64, at uint64) {
	if len(t.list) >= maxBegins {
		t.list = t.list[:copy(t.list, t.list[maxBegins/2:])]
		t.forgotten = true
	}
	i := len(t.list)
	for i > 0 && t.list[i-1].at > at {
		i--
	}
	t.list = slices.Insert(t.list, i, begun{at, n})
}

// forget is for steps that are numbered anew.
func (t *beginTable) forget() {
	t.forgotten = t.forgotten || len(t.list) > 0
	t.list = t.list[:0]
}

// of returns the step that was current; unknown before the first, of which forgotten
// says whether it was one that is known no more.
func (t *beginTable) of(at uint64) (n int64, known, forgotten bool) {
	i, found := slices.BinarySearchFunc(t.list, at, beganBefore)
	if !found {
		i--
	}
	if i < 0 {
		return 0, false, t.forgotten
	}
	return t.list[i].n, true, false
}
