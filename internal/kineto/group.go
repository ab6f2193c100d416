// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// worldID is the id of the communicator that is assumed where a trace names
// none: one of the whole world.
const worldID = "world"

// group is what an operation says of its communicator.
type group struct {
	pg, desc, ranks uint32
	size            int64
	cpu             bool // of a CPU backend
}

// groupInfo is what all of the trace says of it.
type groupInfo struct {
	comm  model.Comm
	ranks []int64 // complete list, or nil
}

func (t *Trace) groupOf(e *event) *groupInfo {
	m := &t.metas[e.meta]
	k := group{m.pg, m.desc, m.ranks, m.size, e.kind == evGloo}
	g := t.groups[k]
	if g == nil {
		g = t.resolve(k)
		t.groups[k] = g
	}
	return g
}

// resolve joins what the operation and the header say.
func (t *Trace) resolve(k group) *groupInfo {
	c := t.config(k)
	g := &groupInfo{comm: model.Comm{ID: c.Name, Name: c.Desc}, ranks: rankList(t.ranks[k.ranks])}
	if g.comm.Name == "" || g.comm.Name == "undefined" {
		g.comm.Name = c.Name
	}
	size := max(k.size, 0)
	if size == 0 {
		size = c.Size
	}
	if int64(len(g.ranks)) != size || size == 0 {
		g.ranks = c.ranks
	}
	if size == 0 && c.Name == worldID {
		size = t.rank.WorldSize.Or(0)
	}
	if size == 0 {
		size = int64(len(g.ranks))
	}
	if size > 0 {
		g.comm.Size = model.Some(size)
	}
	t.placeIn(g, size)
	return g
}

// placeIn finds this rank's place in the group.
func (t *Trace) placeIn(g *groupInfo, size int64) {
	switch {
	case len(g.ranks) > 0 && int64(len(g.ranks)) == size:
		g.comm.Digest = model.RanksDigest(g.ranks)
		if i := slices.Index(g.ranks, t.rank.Rank); i >= 0 && t.hasRank {
			g.comm.Rank = model.Some(int64(i))
		}
	case g.comm.ID == worldID && t.hasRank:
		g.ranks = nil
		g.comm.Rank = model.Some(t.rank.Rank)
	default:
		g.ranks = nil
	}
}

// config returns what the header says of a group; for an operation that names
// none, of the only group of its kind, else of the default group.
func (t *Trace) config(k group) pgConfig {
	if k.pg != 0 {
		name := t.texts[k.pg]
		for _, c := range t.info.groups {
			if c.Name == name {
				c.Desc = firstText(t.texts[k.desc], c.Desc)
				return c
			}
		}
		return pgConfig{Name: name, Desc: t.texts[k.desc]}
	}
	if all := t.candidates(k.cpu); len(all) > 0 {
		return all[0]
	}
	return pgConfig{Name: worldID}
}

const defaultGroup = "default_pg"

// candidates returns the groups that an operation without a group's name may
// belong to, the default group first.
func (t *Trace) candidates(cpu bool) []pgConfig {
	var out []pgConfig
	for _, c := range t.info.groups {
		if c.Name != "" && (c.Backend == "" || strings.Contains(c.Backend, "gloo") == cpu || !cpu) {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b pgConfig) int {
		return boolInt(b.Desc == defaultGroup) - boolInt(a.Desc == defaultGroup)
	})
	return out
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// noteAssumed says once that operations were taken to belong to a group that
// they do not name, where there are several.
func (t *Trace) noteAssumed() {
	var n [2]int64
	for i := range t.ops.n {
		if e := t.ops.at(i); (e.kind == evComm || e.kind == evGloo) && t.metas[e.meta].pg == 0 {
			n[boolInt(e.kind == evGloo)]++
		}
	}
	for i, n := range n {
		if all := t.candidates(i == 1); n > 0 && len(all) > 1 {
			t.problem(-1, fmt.Sprintf("assume process group %q for %d collectives: they name none, and the rank is in %d groups", all[0].Name, n, len(all)))
		}
	}
}

// rankList reads "[0, 1, 2]"; nil where it is cut off with "..." or no list.
func rankList(s string) []int64 {
	s = strings.TrimSpace(s)
	if len(s) < 2 || s[0] != '[' || s[len(s)-1] != ']' {
		return nil
	}
	var out []int64
	for part := range strings.SplitSeq(s[1:len(s)-1], ",") {
		n, ok := parseInt([]byte(strings.TrimSpace(part)))
		if !ok || n < 0 {
			return nil
		}
		out = append(out, n)
	}
	return out
}
