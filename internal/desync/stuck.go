// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// maxWitnessesOfHost bounds the ranks that a host is compared with about one operation.
const maxWitnessesOfHost = 4

// standStill finds hosts that stand still although they have operations open. Whether a host
// waits for an operation is not recorded. But where another member had all of the same
// operations open and went on to enqueue more of their communicator, these did not stop it. An
// operation that the others went on to becomes a node, whether somebody waits in it yet or not.
func (w *world) standStill() {
	w.stuck = make([]bool, len(w.ranks))
	holders, p := w.openIndex(), newPlaces()
	for r := range w.ranks {
		v := w.ranks[r].view
		if v == nil || len(v.open) == 0 || v.hides() {
			continue
		}
		for i := range v.comms {
			c := &v.comms[i]
			for _, f := range c.fronts {
				if c.p2pShared || f.enqueued == none {
					continue
				}
				if w.wentOn(&p, v, holders[opKey{c.group, f.fn, f.enqueued + 1}]) {
					w.stuck[r] = true
				}
			}
		}
	}
}

type opened struct {
	rank int32
	op   *op
}

// openIndex finds who has each collective open that somebody may not have come to: at most so
// many of each as a host is compared with.
func (w *world) openIndex() map[opKey][]opened {
	index, least := map[opKey][]opened{}, w.leastEnqueued()
	for r := range w.ranks {
		v := w.ranks[r].view
		if v == nil {
			continue
		}
		for i := range v.open {
			o := &v.open[i]
			if o.seq <= least[o.group] {
				continue // all have come to it
			}
			if list := index[o.opKey]; !o.message() && len(list) < maxWitnessesOfHost && w.a.groups.all[o.group].scope != model.ScopeProcess {
				index[o.opKey] = append(list, opened{int32(r), o})
			}
		}
	}
	return index
}

// leastEnqueued is up to where all who say it have enqueued, of each communicator.
func (w *world) leastEnqueued() []int64 {
	least := make([]int64, len(w.a.groups.all))
	for i := range least {
		least[i] = math.MaxInt64
	}
	for _, r := range w.ranks {
		if r.view == nil {
			continue
		}
		for i := range r.view.comms {
			c := &r.view.comms[i]
			for _, f := range c.fronts {
				if f.enqueued != none {
					least[c.group] = min(least[c.group], f.enqueued)
				}
			}
		}
	}
	return least
}

// wentOn reports whether one of the others had all open that v has, before the operation that
// v did not come to; that becomes a node.
func (w *world) wentOn(p *places, v *view, others []opened) bool {
	for _, o := range others {
		other := w.ranks[o.rank].view
		if other.source == v.source && p.hadAllOf(other, v, o.op.order) {
			w.node(nodeKey{opKey: o.op.opKey, src: none, dst: none}, o.op)
			return true
		}
	}
	return false
}

// hadAllOf reports whether everything that is open in other is open here, too, and was issued
// before order.
func (p *places) hadAllOf(v, other *view, order int32) bool {
	at := p.of(v)
	for i := range other.open {
		o := &other.open[i]
		if o.message() {
			return false
		}
		k, ok := at[o.opKey]
		if !ok || v.open[k].sig != o.sig || v.open[k].order >= order {
			return false
		}
	}
	return true
}

// places finds the open collectives of those whom hosts are compared with, which are few at a
// time: neighbours have the same.
type places struct {
	byView *bounded.Map[*view, map[opKey]int32]
}

// maxPlaces bounds the views of which places are kept.
const maxPlaces = 64

func newPlaces() places {
	return places{bounded.NewMap(bounded.MapConfig[*view, map[opKey]int32]{Entries: maxPlaces})}
}

func (p *places) of(v *view) map[opKey]int32 {
	if at, ok := p.byView.Peek(v); ok {
		return at
	}
	at := make(map[opKey]int32, len(v.open))
	for i := range v.open {
		if o := &v.open[i]; !o.message() {
			if _, twice := at[o.opKey]; !twice {
				at[o.opKey] = int32(i)
			}
		}
	}
	p.byView.Set(v, at)
	return at
}
