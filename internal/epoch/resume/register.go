// SPDX-License-Identifier: Apache-2.0

package resume

import (
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// loaded is what one process of a rank told last. It is a lattice: the order is that of numbers,
// and where two have one number, each of their values is joined. What contradicts itself so is
// mixed, and confirms nothing. The zero value has told nothing.
type loaded struct {
	number          int64
	step, optimizer epoch.Agreement
	cursor, rng     epoch.Flat[string]
	replica         epoch.Flat[string]
}

func loadedOf(v *model.Resume) loaded {
	l := loaded{number: v.Number, step: epoch.Holds(v.Step)}
	if v.OptimizerStep.OK {
		l.optimizer = epoch.Holds(v.OptimizerStep.V)
	}
	said := func(s string) (f epoch.Flat[string]) {
		if s != "" {
			f = epoch.Of(s)
		}
		return f
	}
	l.cursor, l.rng, l.replica = said(v.DataCursor), said(v.RNGDigest), said(v.Replica)
	return l
}

// join returns the least that is not below l nor o.
func (l loaded) join(o loaded) loaded {
	switch {
	case o.number > l.number:
		return o
	case l.number > o.number:
		return l
	}
	return loaded{
		number: l.number, step: l.step.Join(o.step), optimizer: l.optimizer.Join(o.optimizer),
		cursor: l.cursor.Join(o.cursor), rng: l.rng.Join(o.rng), replica: l.replica.Join(o.replica),
	}
}

// life is one process of a rank: what it told last, and when it was first heard to tell anything.
// All of it only rises but the time, which only falls.
type life struct {
	name       string
	first      int64
	host, hwid string
	loaded
}

func (l *life) join(o *life) (changed bool) {
	before := *l
	l.first = min(l.first, o.first)
	l.host, l.hwid = max(l.host, o.host), max(l.hwid, o.hwid)
	l.loaded = l.loaded.join(o.loaded)
	return *l != before
}

// rank are the processes that were one rank of an incarnation, one after the other.
type rank struct {
	lives []life
	bytes int // that its incarnation's share counts for it
}

// What single entries take beside their texts, with what maps need for them.
const (
	incarnationBytes = int(unsafe.Sizeof(incarnation{})) + 128
	rankBytes        = int(unsafe.Sizeof(rank{})) + 48
)

// size estimates what a rank takes.
func (r *rank) size() int {
	n := rankBytes + cap(r.lives)*int(unsafe.Sizeof(life{}))
	for i := range r.lives {
		l := &r.lives[i]
		n += len(l.name) + len(l.host) + len(l.hwid)
		for _, text := range []epoch.Flat[string]{l.cursor, l.rng, l.replica} {
			v, _ := text.Value()
			n += len(v)
		}
	}
	return n
}

// observe joins what a process told; ok is false where there is no room for one more.
func (r *rank) observe(o *life) (changed, ok bool) {
	for i := range r.lives {
		if r.lives[i].name == o.name {
			return r.lives[i].join(o), true
		}
	}
	if len(r.lives) >= maxLives {
		return false, false
	}
	r.lives = append(r.lives, *o)
	return true, true
}

// current is the process that was first heard last: that it is the later one is all that a time
// decides here.
func (r *rank) current() *life {
	at := &r.lives[0]
	for i := range r.lives[1:] {
		if l := &r.lives[i+1]; l.first > at.first || l.first == at.first && l.name > at.name {
			at = l
		}
	}
	return at
}

// round is which of a rank's loads is looked at. Ranks are compared within one round only: while a
// job loads again, those that have are not compared with those that have not.
type round struct {
	life   int // how many there were
	number int64
}

func (r *rank) round() round { return round{len(r.lives), r.current().number} }

func (r round) later(o round) bool {
	return r.life > o.life || r.life == o.life && r.number > o.number
}
