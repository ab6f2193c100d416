// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/ring"
)

const (
	// anchorMemory is how many operations of the world communicator are
	// remembered: three periods of a step of 1,365.
	anchorMemory = 4096
	// minTokens and minPeriods must have repeated before a period is believed.
	minTokens, minPeriods = 32, 3
	// searchEvery is how many operations apart a period is looked for.
	searchEvery = 16
	// maxPending bounds the operations that wait for their step: what the
	// records of a lane of the default size hold.
	maxPending = 16384
)

// token is what an operation of the world communicator looks like.
type token struct {
	bytes  uint64
	fn     uint8
	beside bool // something was enqueued elsewhere since the token before
}

// like reports whether two operations look alike.
func (t token) like(u token) bool { return t.bytes == u.bytes && t.fn == u.fn }

// anchorFinder numbers the steps of a program that does not mark them.
type anchorFinder struct {
	cfg    Anchor
	tokens [anchorMemory]token
	n      int  // tokens seen
	broken int  // token at which the sequence left the period; 0: it has not
	beside bool // something was enqueued elsewhere since the last token

	period int
	fn     uint8
	every  int64 // operations of fn in a step; 0 while unknown
	step   int64 // current; -1 before the first anchor
}

// init: what was enqueued before the first operation was not seen; most likely, there
// was something.
func (a *anchorFinder) init(cfg Anchor) { a.cfg, a.step, a.beside = cfg, -1, true }

// restart forgets what was found on another communicator.
func (a *anchorFinder) restart() {
	cfg := a.cfg
	*a = anchorFinder{}
	a.init(cfg)
}

// numbering reports whether steps have been numbered.
func (a *anchorFinder) numbering() bool { return a.step >= 0 }

// observe takes an operation of the world communicator, and reports whether the
// way of numbering changed. name serves to choose among functions.
func (a *anchorFinder) observe(t token, name func(uint8) string) (changed bool) {
	if a.cfg.Every > 0 {
		if a.every == 0 && name(t.fn) == a.cfg.Function {
			a.fn, a.every = t.fn, a.cfg.Every
		}
		return false
	}
	t.beside, a.beside = a.beside, false
	if a.period > 0 && a.broken == 0 && !t.like(a.at(a.n-a.period)) {
		a.broken = a.n
	}
	a.tokens[a.n%anchorMemory] = t
	a.n++
	if (a.period > 0 && a.broken == 0) || a.n%searchEvery != 0 || a.n < minTokens {
		return false
	}
	p := a.search()
	if p == 0 {
		return false
	}
	fn, every := a.rarest(p, name)
	changed = a.every != 0 && (fn != a.fn || every != a.every)
	a.period, a.fn, a.every, a.broken = p, fn, every, 0
	if changed {
		a.step = -1
	}
	return changed
}

func (a *anchorFinder) at(i int) token { return a.tokens[i%anchorMemory] }

// search returns the smallest period of the latest tokens, 0 where there is none.
// Where one operation repeats itself, what is done elsewhere between tells where a
// step begins. With nothing between it is no period: it may be one bucket of a step of
// many, which are no independent evidence of who is late.
func (a *anchorFinder) search() int {
	if p := a.smallest(token.like); p != 1 {
		return p
	}
	p := a.smallest(func(t, u token) bool { return t == u })
	if p == 1 && !a.at(a.n-1).beside {
		return 0
	}
	return p
}

// smallest returns the smallest period in which tokens are the same. Where a period
// was left, what is found must explain that, too.
func (a *anchorFinder) smallest(same func(t, u token) bool) int {
	have := min(a.n, anchorMemory)
	least := minTokens
	if a.broken > 0 {
		least = max(least, a.n-a.broken+1)
	}
	for p := 1; p*minPeriods <= have; p++ {
		span := max(p*minPeriods, least)
		if span <= have && a.repeats(p, span, same) {
			return p
		}
	}
	return 0
}

func (a *anchorFinder) repeats(p, span int, same func(t, u token) bool) bool {
	for i := a.n - 1; i >= a.n-span+p; i-- {
		if !same(a.at(i), a.at(i-p)) {
			return false
		}
	}
	return true
}

// rarest returns the function with the fewest operations in a period; of equally
// rare ones the first by name. A rotation of the period changes neither.
func (a *anchorFinder) rarest(p int, name func(uint8) string) (fn uint8, every int64) {
	var count [256]int64
	for i := a.n - p; i < a.n; i++ {
		count[a.at(i).fn]++
	}
	for f, n := range count {
		if n == 0 {
			continue
		}
		if every == 0 || n < every || (n == every && name(uint8(f)) < name(fn)) {
			fn, every = uint8(f), n
		}
	}
	return fn, every
}

// begins returns the step that an operation begins; false where it begins none.
func (a *anchorFinder) begins(fn uint8, seq uint64) (int64, bool) {
	if a.every == 0 || fn != a.fn {
		return 0, false
	}
	n := int64(seq) / a.every
	if n == a.step {
		return 0, false
	}
	a.step = n
	return n, true
}

// hold keeps an operation until everything enqueued before it is known.
func (r *Rank) hold(rec *ring.Record) {
	if len(r.pending) >= maxPending {
		r.place(^uint64(0))
	}
	r.pending = append(r.pending, heldRecord{*rec, r.pass})
}

// place folds the operations that wait, in the order in which they were
// enqueued, as far as nothing enqueued before can come any more.
func (r *Rank) place(horizon uint64) {
	if len(r.pending) == 0 {
		return
	}
	slices.SortStableFunc(r.pending, func(x, y heldRecord) int { return cmp.Compare(x.EnqueueBegin(), y.EnqueueBegin()) })
	done := 0
	for ; done < len(r.pending) && r.pending[done].EnqueueBegin() <= horizon; done++ {
		r.steps.pass = r.pending[done].pass
		r.placeOne(&r.pending[done].Record)
	}
	r.steps.pass = r.pass
	r.pending = r.pending[:copy(r.pending, r.pending[done:])]
}

func (r *Rank) placeOne(rec *ring.Record) {
	a := &r.anchor
	if rec.EnqueueBegin() <= r.trail.placed {
		n, known, _ := r.kernels.begins.of(rec.EnqueueBegin())
		r.fold(rec, n, known)
		return
	}
	r.trail.newest = max(r.trail.newest, rec.EnqueueBegin())
	if r.worldComm.hash != 0 && rec.Comm() == r.worldComm.index && rec.Flags()&(ring.FlagSend|ring.FlagRecv) == 0 {
		c := r.comm(rec.Comm())
		name := func(code uint8) string { return r.fn(c, code).name }
		if a.observe(token{bytes: rec.Bytes(), fn: rec.Func()}, name) {
			r.restart(0)
		}
		if n, ok := a.begins(rec.Func(), rec.Seq()); ok {
			if n <= r.steps.closed {
				r.restart(n)
			}
			r.mark(n, rec.EnqueueBegin())
		}
	} else {
		a.beside = true
	}
	r.fold(rec, max(a.step, 0), a.numbering())
}
