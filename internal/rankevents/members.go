// SPDX-License-Identifier: Apache-2.0

package rankevents

import "github.com/lockstep-otel/lockstep/internal/model"

// members hands on, each MembersInterval, which communicators the rank is a member of. One that has
// had no traffic yet is looked at again after StallAfter.
func (r *Rank) members() {
	if r.node.cfg.MembersInterval <= 0 || r.now < r.membersAt {
		return
	}
	r.membersAt = r.now + uint64(r.node.cfg.StallAfter)
	r.frontiers = r.src.Frontiers(r.frontiers[:0])
	r.standing.places = map[uint16]int{}
	s := model.RankState{Rank: r.Identity(), Time: r.unix(r.now), Source: model.StateRankEvents}
	for i := range r.frontiers {
		if at := r.frontiers[i].Comm; !r.comm(at).comm.Ended {
			r.commPlace(&s, at)
		}
	}
	if len(s.Comms) == 0 {
		return
	}
	r.membersAt = r.now + uint64(r.node.cfg.MembersInterval)
	r.batch.Members = append(r.batch.Members, s)
}
