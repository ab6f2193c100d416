// SPDX-License-Identifier: Apache-2.0

package desync

import "github.com/lockstep-otel/lockstep/internal/model"

// numbering says how the messages between two ranks are counted, so that both ends count
// alike.
type numbering int

const (
	// byHead: from the first that is open. Where a sender is through with what its receiver
	// still waits for, the numbers of both are shifted.
	byHead numbering = iota
	// bySeq: by the communicator's own count. It has two members only, who count alike.
	bySeq
	// byNth: both ends have recorded all of them.
	byNth
)

// numberingOf decides for the messages of a rank with a peer.
func (w *world) numberingOf(v *view, g int32, peer int64) numbering {
	r, ok := w.index[peer]
	if !ok || w.ranks[r].view == nil {
		return byHead
	}
	other := w.ranks[r].view
	switch {
	case v.numbered && other.numbered:
		return byNth
	case len(w.a.groups.all[g].members) == 2 && v.source == other.source:
		return bySeq
	}
	return byHead
}

// seqShift leaves room for the members of one batch, which share a number.
const seqShift = 8

// keys numbers the open operations of a rank.
func (w *world) keys(v *view, id int64) []nodeKey {
	keys := make([]nodeKey, len(v.open))
	count := map[nodeKey]int64{}
	for i := range v.open {
		o := &v.open[i]
		k := nodeKey{opKey: o.opKey, src: none, dst: none}
		switch {
		case o.message():
			k = w.messageKey(v, o, id, count)
		case w.a.groups.all[o.group].scope == model.ScopeProcess:
			k.src = id
		}
		keys[i] = k
	}
	return keys
}

func (w *world) messageKey(v *view, o *op, id int64, count map[nodeKey]int64) nodeKey {
	k := nodeKey{opKey: opKey{group: o.group}, src: id, dst: o.peer}
	if o.peer == none { // which channel is unknown: of this rank alone
		k.seq = o.seq
		return k
	}
	if o.receives {
		k.src, k.dst = o.peer, id
	}
	switch w.numberingOf(v, o.group, o.peer) {
	case byNth:
		k.seq = o.nth
	case bySeq:
		k.seq = o.seq << seqShift
		k.seq += min(count[k], 1<<seqShift-1)
		base := k
		base.seq = o.seq << seqShift
		count[base]++
	default:
		base := k
		k.seq = count[base]
		count[base]++
	}
	return k
}

// judgeMessage looks for the other end of a message.
func (w *world) judgeMessage(n *node) {
	if n.local {
		return
	}
	for _, id := range []int64{n.key.src, n.key.dst} {
		r, ok := w.index[id]
		if !ok || n.holds(r) != nil {
			continue
		}
		switch w.otherEnd(n, w.ranks[r]) {
		case atAbsent:
			n.absent = append(n.absent, r)
		case atMissing:
			n.missing = append(n.missing, r)
		case atDone:
			n.done = append(n.done, r)
		default:
			n.unknown = append(n.unknown, r)
		}
	}
}

// otherEnd is where a rank is about a message that it does not have open. A send may be over
// before it is received; a receive never is before it is sent.
func (w *world) otherEnd(n *node, r *rank) position {
	v := r.view
	if v == nil {
		return atAbsent
	}
	if v.partial != "" || v.hides() || v.source != n.source(w) {
		return atUnknown
	}
	sends := r.id == n.key.src
	peer := n.key.dst
	if !sends {
		peer = n.key.src
	}
	how := w.numberingOf(v, n.key.group, peer)
	if how == byHead {
		if sends {
			return atUnknown // it may have sent it, and be through
		}
		return atMissing
	}
	newest, over := none, 0
	for k, list := range [][]op{v.open, v.done} {
		for i := range list {
			o := &list[i]
			if !o.message() || o.group != n.key.group {
				continue
			}
			if k == 1 {
				over++
			}
			if how == byNth && o.peer == peer && o.sends == sends {
				newest = max(newest, o.nth)
			}
			if how == bySeq {
				newest = max(newest, o.seq<<seqShift|(1<<seqShift-1))
				switch {
				case o.seq != n.key.seq>>seqShift:
				case k == 1 && sends == o.sends && o.peer == peer:
					return atDone
				default:
					return atMissing // it did something else in that place
				}
			}
		}
	}
	switch {
	case newest == none && sends && over > 0:
		return atUnknown // of messages that are over only the last are told
	case newest < n.key.seq:
		return atMissing
	case sends || how == byNth: // what was received is over, even where its sender does not see it
		return atDone
	}
	return atMissing
}
