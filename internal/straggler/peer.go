// SPDX-License-Identifier: Apache-2.0

package straggler

import "github.com/lockstep-otel/lockstep/internal/model"

// member is a place in a group.
type member struct {
	group uint32
	at    int32
}

const manyRanks = -2

// knowPeers fills the global ranks of messages' other sides where only their places in
// the communicator were recorded: whoever took part in the step said its own.
func knowPeers(views []*rankView) {
	var of map[member]int32
	for _, v := range views {
		for i := range v.comms {
			op := &v.comms[i]
			if op.form.kind == model.KindCollective || op.peer >= 0 || op.peerLocal < 0 {
				continue
			}
			if of == nil {
				of = membersOf(views)
			}
			if rank, ok := of[member{op.form.group, op.peerLocal}]; ok && rank != manyRanks {
				op.peer = rank
			}
		}
	}
}

// membersOf returns who stands where in the groups in which messages went. Where two
// groups go by one name, nobody is known to.
func membersOf(views []*rankView) map[member]int32 {
	of := map[member]int32{}
	for _, v := range views {
		rank := small(model.Some(v.rank.Rank))
		for i := range v.comms {
			op := &v.comms[i]
			if op.form.kind == model.KindCollective || op.commRank < 0 || rank < 0 {
				continue
			}
			m := member{op.form.group, op.commRank}
			if known, ok := of[m]; ok && known != rank {
				of[m] = manyRanks
			} else {
				of[m] = rank
			}
		}
	}
	return of
}
