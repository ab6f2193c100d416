// SPDX-License-Identifier: Apache-2.0

package finding

import "container/list"

// DefaultEnded is how many findings a book remembers that are no longer open.
const DefaultEnded = 4096

// identity identifies a finding: two jobs may report one incarnation, from which ids are made.
type identity struct{ job, id string }

// ended remembers findings that are no longer open, and forgets the oldest first.
type ended[D any] struct {
	limit int
	whole bool
	at    map[identity]*list.Element
	order list.List // of *Episode[D]: whole ones, or with nothing but job, id, revision and status
}

func newEnded[D any](limit int, whole bool) *ended[D] {
	return &ended[D]{limit: limit, whole: whole, at: map[identity]*list.Element{}}
}

func identityOf[D any](e *Episode[D]) identity { return identity{e.Place.Job, e.Finding.ID} }

func (l *ended[D]) add(e *Episode[D]) {
	k := identityOf(e)
	l.take(k)
	for l.order.Len() >= l.limit {
		l.take(identityOf(l.order.Front().Value.(*Episode[D])))
	}
	if !l.whole {
		short := &Episode[D]{Place: Place{Job: e.Place.Job}, Received: e.Received}
		short.Finding.ID, short.Finding.Revision, short.Finding.Status = e.Finding.ID, e.Finding.Revision, e.Finding.Status
		e = short
	}
	l.at[k] = l.order.PushBack(e)
}

func (l *ended[D]) get(k identity) *Episode[D] {
	if at, known := l.at[k]; known {
		return at.Value.(*Episode[D])
	}
	return nil
}

// take forgets a finding and returns it; nil for none.
func (l *ended[D]) take(k identity) *Episode[D] {
	at, known := l.at[k]
	if !known {
		return nil
	}
	delete(l.at, k)
	return l.order.Remove(at).(*Episode[D])
}
