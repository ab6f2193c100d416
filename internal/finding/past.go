// SPDX-License-Identifier: Apache-2.0

package finding

import "container/list"

// maxPast is how many ids a book remembers that are no longer open.
const maxPast = 4096

// past remembers ids with their last revision, and forgets the oldest first.
type past struct {
	at    map[string]*list.Element
	order list.List // of ended
}

type ended struct {
	ID       string `json:"id"`
	Revision int64  `json:"revision"`
}

func newPast() *past { return &past{at: map[string]*list.Element{}} }

func (p *past) add(id string, revision int64) {
	if _, known := p.take(id); !known && p.order.Len() >= maxPast {
		oldest := p.order.Front()
		delete(p.at, p.order.Remove(oldest).(ended).ID)
	}
	p.at[id] = p.order.PushBack(ended{id, revision})
}

// take forgets an id and returns its last revision.
func (p *past) take(id string) (revision int64, known bool) {
	at, known := p.at[id]
	if !known {
		return 0, false
	}
	delete(p.at, id)
	return p.order.Remove(at).(ended).Revision, true
}

func (p *past) list() []ended {
	all := make([]ended, 0, p.order.Len())
	for at := p.order.Front(); at != nil; at = at.Next() {
		all = append(all, at.Value.(ended))
	}
	return all
}

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
