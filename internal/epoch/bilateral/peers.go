// SPDX-License-Identifier: Apache-2.0

package bilateral

import "github.com/lockstep-otel/lockstep/internal/bounded"

// share is what one address holds.
type share struct {
	jobs    *bounded.Map[key, *job] // the one that was heard longest ago in front
	domains int
}

func newJobs() *bounded.Map[key, *job] {
	return bounded.NewMap(bounded.MapConfig[key, *job]{Order: bounded.ByUse})
}

// shareOf is what an address holds, not to be changed.
func (b *Board) shareOf(peer string) *share {
	if s := b.peers[peer]; s != nil {
		return s
	}
	return &share{jobs: newJobs()}
}

// change changes what an address holds. The board forgets an address that holds nothing.
func (b *Board) change(peer string, by func(*share)) {
	s := b.shareOf(peer)
	by(s)
	if b.peers[peer] = s; s.domains == 0 && s.jobs.Len() == 0 {
		delete(b.peers, peer)
	}
}

// begin makes a job, which belongs to the address that spoke of it first.
func (b *Board) begin(k key, peer string) *job {
	j := newJob(k)
	j.owner = peer
	j.count = func(peer string, domains int) { b.change(peer, func(s *share) { s.domains += domains }) }
	b.jobs.Set(k, j)
	b.change(peer, func(s *share) { s.jobs.Set(k, j) })
	return j
}

// heard notes that a job has spoken.
func (b *Board) heard(j *job) {
	b.jobs.Touch(j.key)
	b.shareOf(j.owner).jobs.Touch(j.key)
}

func (b *Board) remove(j *job) {
	for _, m := range j.members.All() {
		j.count(m.peer, -1)
	}
	b.jobs.Delete(j.key)
	b.change(j.owner, func(s *share) { s.jobs.Delete(j.key) })
	b.members -= j.members.Len()
}
