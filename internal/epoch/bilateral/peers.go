// SPDX-License-Identifier: Apache-2.0

package bilateral

import "container/list"

// share is what one address holds.
type share struct {
	silence list.List // its jobs, the one that was heard longest ago in front
	domains int
}

// shareOf is what an address holds, not to be changed.
func (b *Board) shareOf(peer string) *share {
	if s := b.peers[peer]; s != nil {
		return s
	}
	return &share{}
}

// change changes what an address holds. The board forgets an address that holds nothing.
func (b *Board) change(peer string, by func(*share)) {
	s := b.shareOf(peer)
	by(s)
	if b.peers[peer] = s; s.domains == 0 && s.silence.Len() == 0 {
		delete(b.peers, peer)
	}
}

// begin makes a job, which belongs to the address that spoke of it first.
func (b *Board) begin(k key, peer string) *job {
	j := newJob(k)
	j.owner = peer
	j.count = func(peer string, domains int) { b.change(peer, func(s *share) { s.domains += domains }) }
	j.silence = b.silence.PushBack(j)
	b.change(peer, func(s *share) { j.ofOwner = s.silence.PushBack(j) })
	b.jobs[k] = j
	return j
}

// heard notes that a job has spoken.
func (b *Board) heard(j *job) {
	b.silence.MoveToBack(j.silence)
	b.shareOf(j.owner).silence.MoveToBack(j.ofOwner)
}

func (b *Board) remove(j *job) {
	for _, m := range j.members {
		j.count(m.peer, -1)
	}
	b.silence.Remove(j.silence)
	b.change(j.owner, func(s *share) { s.silence.Remove(j.ofOwner) })
	delete(b.jobs, j.key)
	b.members -= len(j.members)
}
