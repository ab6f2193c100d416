// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"strings"
	"time"
	"unique"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// commKey tells communicators apart: several groups may have one id, and have other members. first is
// noFirst where each member tells of its own place only.
type commKey struct {
	id    string
	first int64
	size  int
}

const noFirst = -1

// comm is one communicator, by what its members say.
type comm struct {
	key     commKey
	name    string
	nccl    bool
	members []*rank // nobody where a member is not known
	heard   time.Time
	// last is the list of members that was compared last: a reader hands out one for all ranks.
	last *int64
	// torn: two members name other members.
	torn bool
}

// nobody stands for a member of which nothing is known.
var nobody = &rank{n: noFirst}

// comm takes a communicator as a member has it.
func (w *Watch) comm(j *job, r *rank, s *model.CommState, nccl bool, now time.Time) {
	var k commKey
	id := cut.Text(s.Comm.ID, cut.MaxName)
	switch listed := len(s.Members) > 0 && s.Members[0] >= 0 && !s.MembersInferred; {
	case s.Comm.ID == "":
	case listed:
		k = commKey{id, s.Members[0], len(s.Members)}
	case strings.HasPrefix(s.Comm.ID, hashed) && s.Comm.Rank.OK && s.Comm.Rank.V >= 0 && s.Comm.Rank.V < s.Comm.Size.V && s.Comm.Size.V <= int64(w.cfg.MaxMembers):
		k = commKey{id, noFirst, int(s.Comm.Size.V)}
	}
	if k.id == "" {
		w.stats.MembersUnknown++
		return
	}
	c := j.comms[k]
	if c == nil {
		if c = w.newComm(j, k, s.Members); c == nil {
			w.stats.CommsRefused++
			return
		}
	}
	if at := unsafe.SliceData(s.Members); k.first == noFirst {
		c.seat(r, int(s.Comm.Rank.V))
	} else if c.last != at {
		c.last = at
		if !c.has(s.Members) {
			c.torn = true
		}
	}
	if c.torn {
		w.stats.MembersUnknown++
	}
	if s.Comm.Name != "" && c.name != s.Comm.Name {
		j.share.Add(-len(c.name))
		c.name = intern(cut.Text(s.Comm.Name, cut.MaxName))
		j.share.Add(len(c.name))
	}
	c.heard, c.nccl = now, c.nccl || nccl
}

// dropComm forgets a communicator.
func (w *Watch) dropComm(j *job, k commKey) {
	c := j.comms[k]
	w.comms--
	w.members -= len(c.members)
	j.members -= len(c.members)
	j.share.Add(-c.size())
	delete(j.comms, k)
}

// name returns one shared copy of the known text, or the text known before if there is none.
func name(known, before string) string {
	if known == "" {
		return before
	}
	return intern(cut.Text(known, cut.MaxName))
}

// intern returns the one copy of a text: those of a state that was read are parts of all of its
// texts, and would keep them.
func intern(s string) string { return unique.Make(s).Value() }

// hashed is how the id of a communicator begins that is NCCL's own: no two have one. Others are
// counted by each process for itself.
const hashed = "0x"

// seat takes the place of a member that it says itself.
func (c *comm) seat(r *rank, at int) {
	switch c.members[at] {
	case nobody:
		c.members[at] = r
	case r:
	default:
		c.torn = true
	}
}

func (c *comm) has(members []int64) bool {
	return slices.EqualFunc(c.members, members, func(r *rank, n int64) bool { return r.n == n })
}

// newComm makes a communicator; nil where there is no room, or its members can not be ranks.
func (w *Watch) newComm(j *job, k commKey, members []int64) *comm {
	if k.first == noFirst {
		members = nil
	}
	ranks, ok := j.unknown(members)
	if !ok || !w.makeRoom(j, w.needComms(1), w.needMembers(k.size), w.needRanks(ranks)) {
		return nil
	}
	k.id = intern(k.id)
	c := &comm{key: k, members: make([]*rank, 0, k.size)}
	if k.first == noFirst {
		c.members = slices.Repeat([]*rank{nobody}, k.size)
	}
	for _, n := range members {
		c.members = append(c.members, w.rank(j, n))
	}
	w.comms++
	w.members += k.size
	j.members += k.size
	j.share.Add(c.size())
	j.comms[k] = c
	j.order = nil
	return c
}

// unknown counts the members that are no ranks of the job yet; ok is false where they can be none.
func (j *job) unknown(members []int64) (n int, ok bool) {
	seen := map[int64]bool{}
	for _, m := range members {
		if m < 0 {
			return 0, false
		}
		if j.ranks[m] == nil {
			seen[m] = true
		}
	}
	return len(seen), true
}
