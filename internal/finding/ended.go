// SPDX-License-Identifier: Apache-2.0

package finding

import "github.com/lockstep-otel/lockstep/internal/bounded"

// DefaultEnded is how many findings a book remembers that are no longer open.
const DefaultEnded = 4096

// identity identifies a finding: two jobs may report one incarnation, from which ids are made.
type identity struct{ job, id string }

// ended remembers findings that are no longer open, and forgets the oldest first.
type ended[D any] struct {
	whole bool
	known *bounded.Map[identity, *Episode[D]] // whole ones, or with nothing but job, id, revision and status
}

func newEnded[D any](limit int, whole bool) *ended[D] {
	return &ended[D]{whole, bounded.NewMap(bounded.MapConfig[identity, *Episode[D]]{Entries: limit})}
}

func identityOf[D any](e *Episode[D]) identity { return identity{e.Place.Job, e.Finding.ID} }

func (l *ended[D]) add(e *Episode[D]) {
	k := identityOf(e)
	l.take(k) // it is the newest now
	if !l.whole {
		short := &Episode[D]{Place: Place{Job: e.Place.Job}, Received: e.Received}
		short.Finding.ID, short.Finding.Revision, short.Finding.Status = e.Finding.ID, e.Finding.Revision, e.Finding.Status
		e = short
	}
	l.known.Set(k, e)
}

// get returns a finding; nil for none.
func (l *ended[D]) get(k identity) *Episode[D] {
	e, _ := l.known.Get(k)
	return e
}

// take forgets a finding and returns it; nil for none.
func (l *ended[D]) take(k identity) *Episode[D] {
	e, _ := l.known.Delete(k)
	return e
}
