// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// observer is one life of one who looks.
type observer struct {
	name  string // of all of its lives
	life  int64
	heard time.Time
	// seen is when it last said what was known of all that it looks at, since when it is heard
	// without having fallen silent.
	seen, since time.Time
	looks       bool // it looks at files, and sees what is gone; others know what they were told
	gone        bool
	over        bool // a later life was heard
}

// late reports whether a life of an observer is over: a later one is heard. After a clock was set
// back that may be the older one, which counts when the later has fallen silent.
func (w *Watch) late(o *model.EpochObservation, name string) bool {
	if by, _ := w.observers.Peek(name); by != nil && by.over {
		return true
	}
	newest, _ := w.observers.Peek(w.lives[o.Observer])
	return newest != nil && newest.life > o.Life && o.Life != 0 && !newest.gone
}

// hear notes that an observer lives.
func (w *Watch) hear(name string, o *model.EpochObservation, now time.Time) {
	by, known := w.observers.Get(name)
	if !known {
		w.supersede(name, o)
		if !w.observers.Fits(name, nil) {
			w.stats.Unfollowed++
			return
		}
		by = &observer{name: o.Observer, life: o.Life, gone: true} // it may have been heard before, and be forgotten since
		w.observers.Set(name, by)
	}
	// Under the name of a life another observer may report: by that is one observer, with one name.
	if newest, _ := w.observers.Peek(w.lives[by.name]); newest == nil || newest.over {
		w.lives[by.name] = name
	}
	if by.gone { // what it said counts again
		by.gone, by.since = false, now
		w.judgeAnew(func(genKey) bool { return true })
	}
	by.looks = by.looks || o.Domain.Kind == model.DomainPlace
	if by.heard = now; !o.Blind {
		by.seen = now
	}
}

// supersede takes back what the life before said: what it saw may have changed since, and this one
// tells all anew.
func (w *Watch) supersede(name string, o *model.EpochObservation) {
	last := w.lives[o.Observer]
	before, _ := w.observers.Peek(last)
	if before == nil || before.life >= o.Life {
		return
	}
	w.engine.Forget(last)
	before.gone, before.over = true, true
	if !w.observers.Fits(name, nil) {
		w.observers.Delete(last)
	}
}

// forget takes back what observers said that fell silent.
func (w *Watch) forget(now time.Time) {
	for name, by := range w.observers.All() {
		silent := now.Sub(by.heard)
		switch {
		case silent < w.cfg.Silent:
			return // all others were heard since
		case by.gone && silent >= 2*w.cfg.Silent:
			w.observers.Delete(name) // the engine drops it when it needs the room
			if w.lives[by.name] == name {
				delete(w.lives, by.name)
			}
		case !by.gone:
			by.gone = true
			w.engine.Forget(name)
			w.stats.Forgotten++
			w.judgeAnew(func(genKey) bool { return true })
		}
	}
}
