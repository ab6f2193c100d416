package straggler

import (
	"hash/fnv"
	"strconv"
)

// role tells ranks apart that run different programs, such as the stages of a
// pipeline: only ranks of one role are compared. It is a hash of the rank's
// pipeline stage, where that is known, and of its sequence of communication in
// the step. Ranks of different stages with the same sequence are taken for one
// role where nothing names their stage.
type role uint64

func (v *rankView) findRole() role {
	h := fnv.New64a()
	write := func(s string) { _, _ = h.Write(append([]byte(s), 0)) }
	if pp := v.rank.Parallel.PP; pp.OK {
		write(strconv.FormatInt(pp.V, 10))
	}
	for i := range v.comms {
		sig := signatureOf(&v.comms[i])
		write(string(sig.kind))
		write(sig.name)
		write(strconv.FormatInt(sig.size, 10))
	}
	return role(h.Sum64())
}

// byRole groups the indices of the meeting's parties.
func (m *meeting) byRole() map[role][]int {
	out := map[role][]int{}
	for i, p := range m.parties {
		out[p.at.role] = append(out[p.at.role], i)
	}
	return out
}
