// SPDX-License-Identifier: Apache-2.0

package score

import (
	"slices"

	"github.com/lockstep-otel/lockstep/bench/scoreboard/methods"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// Accuses reports whether a finding of the class says that somebody is at fault. The
// others tell of time that is lost and of no culprit; the ranks that they list are
// concerned. A method that knows no classes always accuses.
func Accuses(class string) bool {
	switch class {
	case model.ClassWorkImbalance, model.ClassStageImbalance, model.ClassJitter, model.ClassJobWide:
		return false
	}
	return true
}

// Match is how much of one culprit an accusation has right. Each level includes those
// before it, but for Op, which is not asked where the truth names no operation.
type Match struct{ Who, Class, Op bool }

// Compare compares one accusation with one culprit. hosts tells where ranks are.
//
//   - An accusation of several ranks has the place right only if all of them are at
//     fault.
//   - A node is named by its host, or by one of its ranks: that is the right place, but
//     another class.
//   - A link is named by its sender, or by both ends in either order: which of the two is
//     at fault cannot be seen from one of them. Of a network card, either end of the link
//     that is named may be the one at fault.
//   - Of what a card receives, whoever sends to it is the right place as well, in whatever
//     class: it is they that wait on the wire.
//   - A link's receiver alone is a victim.
//   - Within a node nothing waits on a wire: there the group is as much as can be told.
func Compare(a *methods.Accusation, c *training.Culprit, hosts []string) Match {
	if !Accuses(a.Class) {
		return Match{}
	}
	m := Match{Who: place(a, c, hosts)}
	m.Class = m.Who && a.Class == c.Class
	m.Op = m.Class && (len(c.Ops) == 0 || slices.Contains(c.Ops, a.Op))
	return m
}

func place(a *methods.Accusation, c *training.Culprit, hosts []string) bool {
	if a.Class == model.ClassLink && c.Class == model.ClassLink {
		return end(a, c)
	}
	ranks := a.Ranks
	if a.Class == model.ClassNode && a.Host != "" {
		if c.Class == model.ClassNode && c.Host != "" {
			return a.Host == c.Host
		}
		ranks = on(a.Host, hosts)
	}
	at := func(r int64) bool { return slices.Contains(c.Ranks, r) || slices.Contains(c.Also, r) }
	return len(ranks) > 0 && !slices.ContainsFunc(ranks, func(r int64) bool { return !at(r) })
}

// end compares the ends of a link.
func end(a *methods.Accusation, c *training.Culprit) bool {
	if a.Group {
		return c.Family == training.NVLink && slices.Contains(c.Comms, a.Comm)
	}
	src, dst := int64(-1), a.Peer.Or(-1)
	if len(a.Ranks) > 0 {
		src = a.Ranks[0]
	}
	at := func(r int64) bool { return slices.Contains(c.Ranks, r) }
	switch {
	case c.Peer >= 0: // one pair
		return at(src) || src < 0 && dst == c.Peer || src == c.Peer && at(dst)
	case at(src), at(dst):
		return true
	}
	return dst < 0 && slices.Contains(c.Also, src)
}

func on(host string, hosts []string) (out []int64) {
	for r, h := range hosts {
		if h == host {
			out = append(out, int64(r))
		}
	}
	return out
}

// told compares a finding that accuses nobody with one imbalance: the class decides, and
// of a stage that some of the ranks that it lists are of it.
func told(a *methods.Accusation, c *training.Culprit) bool {
	if Accuses(a.Class) || a.Class != c.Class {
		return false
	}
	if c.Class != model.ClassStageImbalance || len(a.Ranks) == 0 || len(c.Ranks) == 0 {
		return true
	}
	return slices.ContainsFunc(a.Ranks, func(r int64) bool { return slices.Contains(c.Ranks, r) })
}

// Split returns the truth with a culprit for each of the ranks of one that slows
// several: each is to be named. Their cost stays that of all together, since each may
// hide what the others cost; joint holds which they are.
func Split(t training.Truth) (out training.Truth, joint []bool) {
	out.Imbalances = t.Imbalances
	for _, c := range t.Culprits {
		if len(c.Ranks) < 2 || c.Class == model.ClassNode || c.Class == model.ClassLink {
			out.Culprits, joint = append(out.Culprits, c), append(joint, false)
			continue
		}
		for _, r := range c.Ranks {
			one := c
			one.Ranks = []int64{r}
			out.Culprits, joint = append(out.Culprits, one), append(joint, true)
		}
	}
	return out, joint
}
