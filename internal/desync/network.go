// SPDX-License-Identifier: Apache-2.0

package desync

import "github.com/lockstep-otel/lockstep/internal/model"

// network returns a witness that the way between members of an operation is at fault: a fact
// of the network, or proxies that wait for the wire.
func (w *world) network(n *node) *Witness {
	for i := range w.a.witnesses {
		if wit := &w.a.witnesses[i]; wit.Network && w.touches(n, wit) {
			return wit
		}
	}
	return w.wire(n)
}

// touches reports whether a witness is about a member, at a time when it waited.
func (w *world) touches(n *node, wit *Witness) bool {
	if since := n.since(); since > 0 && wit.Until > 0 && wit.Until < since {
		return false // it was over before
	}
	for i := range n.holders {
		r := w.ranks[n.holders[i].rank]
		if wit.Rank.OK && wit.Rank.V == r.id || wit.Peer.OK && wit.Peer.V == r.id || wit.Host != "" && wit.Host == r.host {
			return true
		}
	}
	return false
}

// waitsForWire is the state of a proxy that has handed its data to the network.
const waitsForWire = "send_wire"

// wire finds one rank alone whose proxy waits for the wire: where several do, each may wait
// for what another did not take.
func (w *world) wire(n *node) *Witness {
	var found *Witness
	for i := range n.holders {
		h := &n.holders[i]
		if h.op.send == nil || h.op.send.State != waitsForWire {
			continue
		}
		if found != nil {
			return nil
		}
		r := w.ranks[h.rank]
		found = &Witness{
			Kind: "proxy", What: "the proxy of rank " + number(r.id) + " waits for the wire", Host: r.host,
			Rank: model.Some(r.id), Peer: h.op.send.Peer, Network: true,
		}
		if h.op.send.Peer.OK {
			found.Link = number(r.id) + " -> " + number(h.op.send.Peer.V)
			found.What += " to rank " + number(h.op.send.Peer.V)
		}
	}
	return found
}

// votesAgree reports whether RAS, too, counts fewer launches of a rank than of other members
// on a communicator of the same members.
func (w *world) votesAgree(r *rank, n *node) bool {
	for _, v := range r.votes {
		for i := range v.comms {
			c := &v.comms[i]
			g := w.a.groups.all[c.group]
			if g.comm.Digest == "" || g.comm.Digest != n.group.comm.Digest {
				continue
			}
			for j := range c.fronts {
				if w.outvoted(&c.fronts[j], c.group, n) {
					return true
				}
			}
		}
	}
	return false
}

// outvoted: everybody who waits in n has launched more of a function than f says.
func (w *world) outvoted(f *front, group int32, n *node) bool {
	seen := false
	for i := range n.holders {
		for _, v := range w.ranks[n.holders[i].rank].votes {
			c := v.comm(group)
			if c == nil {
				continue
			}
			o := c.front(f.fn, false)
			if o == nil || o.enqueued <= f.enqueued {
				return false
			}
			seen = true
		}
	}
	return seen
}
