package straggler

import (
	"hash/fnv"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// role tells ranks apart that run different programs, such as the stages of a
// pipeline: only ranks of one role are compared. It is a hash of the rank's
// pipeline stage, where that is known; of its place among those that messages
// connect it with, which is the stage where nothing names it; and of how many
// collectives and messages of which kind, name and group size it took part in with
// others during the step. Their order does not count: what runs side by side
// begins in any order.
type role uint64

// assignRoles gives every rank its role in this step.
func assignRoles(views []*rankView, met []*gathering) {
	for _, v := range views {
		v.role = 0
		if pp := v.rank.Parallel.PP; pp.OK {
			v.role = hashRole("stage", strconv.FormatInt(pp.V, 10))
		}
	}
	for i, place := range places(views, met) {
		views[i].role += hashRole("place", strconv.Itoa(place))
	}
	for _, g := range met {
		for _, p := range g.parties {
			sig := signatureOf(p.op)
			// A sum does not depend on the order, and counts what recurs.
			p.at.role += hashRole(string(sig.kind), sig.name, strconv.FormatInt(sig.size, 10))
		}
	}
}

// places returns each rank's place, by rank, among the ranks that messages
// connect it with; 0 for those without messages.
func places(views []*rankView, met []*gathering) []int {
	pipe := make([]int, len(views)) // the first rank of each, by union
	for i := range pipe {
		pipe[i] = i
	}
	first := func(i int) int {
		for pipe[i] != i {
			pipe[i] = pipe[pipe[i]]
			i = pipe[i]
		}
		return i
	}
	for _, g := range met {
		if g.kind == model.KindCollective {
			continue
		}
		a, b := first(g.parties[0].at.index), first(g.parties[1].at.index)
		pipe[max(a, b)] = min(a, b)
	}
	out, members := make([]int, len(views)), map[int]int{}
	for i := range views { // in order of rank
		out[i] = members[first(i)]
		members[first(i)]++
	}
	return out
}

func hashRole(parts ...string) role {
	h := fnv.New64a()
	for _, s := range parts {
		_, _ = h.Write(append([]byte(s), 0))
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
