// SPDX-License-Identifier: Apache-2.0

package epoch

import "github.com/lockstep-otel/lockstep/internal/model"

// value is what one look at a domain of a save says, with the epoch where it has one.
type value struct {
	epoch int64
	parts int32 // of a place: how many other domains its observer tells of
	state state
	known bool // epoch
}

type state uint8

const (
	silent     state = iota // nobody has said anything
	absent                  // not there; with an epoch, there no more: a tombstone
	tentative               // begun, torn, or in doubt
	reflecting              // whole, not yet confirmed
	committed               // confirms its epoch
	conflict                // two looks with one revision say different things
	withdrawn               // what was said is taken back
)

var stateOf = map[model.DomainState]state{
	model.DomainAbsent: absent, model.DomainTentative: tentative,
	model.DomainReflecting: reflecting, model.DomainCommitted: committed,
	model.DomainWithdrawn: withdrawn,
}

func (s state) model() model.DomainState {
	switch s {
	case absent:
		return model.DomainAbsent
	case reflecting:
		return model.DomainReflecting
	case committed:
		return model.DomainCommitted
	case tentative, conflict:
		return model.DomainTentative
	case withdrawn:
		return model.DomainWithdrawn
	case silent:
	}
	return ""
}

func (v value) confirms() bool  { return v.state == committed && v.known }
func (v value) speaks() bool    { return v.state != silent && v.state != withdrawn }
func (v value) tombstone() bool { return v.state == absent && v.known }

// register is what one observer says last of one domain of one save. Registers form a
// lattice: the order is that of revisions, and where two values have one revision, conflict
// is above both. Its join is commutative, associative and idempotent, so that observations
// may be repeated and may come in any order.
type register struct {
	revision int64
	value    value
}

// join returns the least register that is not below r nor o.
func (r register) join(o register) register {
	switch {
	case r.value.state == silent:
		return o
	case o.value.state == silent || r.revision > o.revision:
		return r
	case o.revision > r.revision:
		return o
	case r.value != o.value:
		return register{r.revision, value{state: conflict}}
	}
	return r
}

// view is what all observers together say of one domain of one save. They may see different
// copies, or one of them an old one, and nobody knows which: a domain confirms only what all
// who speak of it confirm. It is a set of what was said, so that their order is nothing.
type view struct {
	said  uint8    // bits by state
	held  [2]int64 // epochs that were confirmed: the least, and the greatest
	holds bool
	lost  [2]int64 // epochs that somebody saw it lose: the least, and the greatest
	loses bool
}

func (w *view) add(v value) {
	w.said |= 1 << v.state
	if v.tombstone() {
		if !w.loses {
			w.lost, w.loses = [2]int64{v.epoch, v.epoch}, true
		}
		w.lost = [2]int64{min(w.lost[0], v.epoch), max(w.lost[1], v.epoch)}
	}
	if !v.confirms() {
		if v.state == committed { // to nobody knows what
			w.said |= 1 << tentative
		}
		return
	}
	if !w.holds {
		w.held, w.holds = [2]int64{v.epoch, v.epoch}, true
	}
	w.held = [2]int64{min(w.held[0], v.epoch), max(w.held[1], v.epoch)}
}

// confirms: all who speak of the domain confirm one epoch.
func (w *view) confirms() bool {
	return w.said == 1<<committed && w.holds && w.held[0] == w.held[1]
}

// state is the least of what was said, which is what keeps the domain from confirming.
func (w *view) state() state {
	for _, s := range []state{absent, conflict, tentative, reflecting, committed} {
		if w.said&(1<<s) != 0 {
			return s
		}
	}
	return silent
}
