package desync

import "github.com/lockstep-otel/lockstep/internal/model"

// maxWitnessesOfHost bounds the ranks that a host is compared with about one operation.
const maxWitnessesOfHost = 4

// standStill finds hosts that stand still although they have operations open. Whether a host
// waits for an operation is not recorded. But where another member had all of the same
// operations open and went on to enqueue more of their communicator, these did not stop it. An
// operation that the others went on to becomes a node, whether somebody waits in it yet or not.
func (w *world) standStill() {
	w.stuck = make([]bool, len(w.ranks))
	holders := w.openIndex()
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
				if w.wentOn(v, holders[opKey{c.group, f.fn, f.enqueued + 1}]) {
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

// openIndex finds who has each collective open: at most so many of each as a host is compared
// with.
func (w *world) openIndex() map[opKey][]opened {
	index := map[opKey][]opened{}
	for r := range w.ranks {
		v := w.ranks[r].view
		if v == nil {
			continue
		}
		for i := range v.open {
			o := &v.open[i]
			if list := index[o.opKey]; !o.message() && len(list) < maxWitnessesOfHost && w.a.groups.all[o.group].scope != model.ScopeProcess {
				index[o.opKey] = append(list, opened{int32(r), o})
			}
		}
	}
	return index
}

// wentOn reports whether one of the others had all open that v has, before the operation that
// v did not come to; that becomes a node.
func (w *world) wentOn(v *view, others []opened) bool {
	for _, o := range others {
		other := w.ranks[o.rank].view
		if other.source == v.source && other.hadAllOf(v, o.op.order) {
			w.node(nodeKey{opKey: o.op.opKey, src: none, dst: none}, o.op)
			return true
		}
	}
	return false
}

// hadAllOf reports whether everything that is open in other is open here, too, and was issued
// before order.
func (v *view) hadAllOf(other *view, order int32) bool {
	for i := range other.open {
		o := &other.open[i]
		if o.message() || !v.opened(o, order) {
			return false
		}
	}
	return true
}

func (v *view) opened(other *op, before int32) bool {
	for i := range v.open {
		if o := &v.open[i]; o.opKey == other.opKey && o.sig == other.sig && !o.message() {
			return o.order < before
		}
	}
	return false
}
