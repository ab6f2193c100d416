// SPDX-License-Identifier: Apache-2.0

package straggler

import "github.com/lockstep-otel/lockstep/internal/model"

// Unjoined counts the communication operations that met nobody, by why.
type Unjoined struct {
	Scope   int // nobody says what their numbers count over, or only their process does
	Number  int // they have none
	Peer    int // the other side of a message is not known
	Alone   int // no other rank has an operation of their communicator and number
	Crowded int // more ranks have one than the communicator has members
	Unlike  int // those of one number differ in name or bytes
}

// refuse counts an operation that has no rendezvous key.
func (u *Unjoined) refuse(op *commOp) {
	switch {
	case op.form.scope == "" || op.form.scope == model.ScopeProcess:
		u.Scope++
	case !op.numbered:
		u.Number++
	default:
		u.Peer++
	}
}

// part counts the operations of a gathering that is no meeting.
func (u *Unjoined) part(g *gathering) {
	n := len(g.parties)
	switch size := g.size(); {
	case n < 2:
		u.Alone += n
	case size > 0 && n > size:
		u.Crowded += n
	default:
		u.Unlike += n
	}
}
