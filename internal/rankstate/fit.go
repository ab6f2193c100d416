// SPDX-License-Identifier: Apache-2.0

package rankstate

import (
	"math"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// fit returns a copy of s that keeps every limit but the two on the whole form, and has
// nothing that a reader would refuse.
func fit(s *model.RankState) model.RankState {
	c := *s
	for _, t := range []*string{
		&c.Rank.JobName, &c.Rank.JobID, &c.Rank.Incarnation, &c.Rank.HostName, &c.Rank.HostID, &c.Rank.HWID, &c.Rank.ClockID,
		&c.Name, &c.Partial, &c.LibVersion, &c.Phase, &c.Scope, (*string)(&c.Source), (*string)(&c.Process),
	} {
		*t = cut(*t, MaxWord)
	}
	c.HostStack = cut(c.HostStack, MaxString)
	c.Silent, c.ScopeFor = finite(c.Silent), finite(c.ScopeFor)
	fitStacks(&c)
	fitComms(&c)
	fitOps(&c)
	return c
}

func fitStacks(c *model.RankState) {
	if len(c.Stacks) > MaxStacks {
		c.Stacks = c.Stacks[:MaxStacks]
		leftOut(c, "call stacks")
	}
	c.Stacks = slices.Clone(c.Stacks)
	for i := range c.Stacks {
		c.Stacks[i] = cut(c.Stacks[i], MaxString)
	}
}

func fitComms(c *model.RankState) {
	if len(c.Comms) > MaxComms {
		c.Comms = c.Comms[:MaxComms]
		leftOut(c, "communicators")
	}
	c.Comms = slices.Clone(c.Comms)
	room := MaxMembers
	for i := range c.Comms {
		m := &c.Comms[i]
		for _, t := range []*string{&m.Comm.ID, &m.Comm.Name, &m.Comm.Digest, &m.Backend, &m.Untracked, (*string)(&m.Scope)} {
			*t = cut(*t, MaxWord)
		}
		if len(m.Members) > room || slices.ContainsFunc(m.Members, notRank) {
			m.Members = nil
			leftOut(c, "members")
		}
		room -= len(m.Members)
		if len(m.Frontiers) > MaxFrontiers {
			m.Frontiers = m.Frontiers[:MaxFrontiers]
			leftOut(c, "frontiers")
		}
		m.Frontiers = slices.Clone(m.Frontiers)
		for j := range m.Frontiers {
			m.Frontiers[j].Func = cut(m.Frontiers[j].Func, MaxWord)
		}
	}
}

func fitOps(c *model.RankState) {
	all := c.Ops
	c.Ops = make([]model.StateOp, 0, min(len(all), MaxOps))
	over := max(len(all)-MaxOps, 0) // of those that are over, as many find no room
	for i := range all {
		o := all[i]
		switch {
		case o.Comm < 0 || o.Comm >= len(c.Comms) || !knownKind(o.Kind) || len(c.Ops) == MaxOps:
			c.Dropped++
			continue
		case o.Done && over > 0:
			over--
			c.Dropped++
			continue
		}
		for _, t := range []*string{&o.Name, &o.Recorded, &o.In, &o.Out, &o.InType, &o.OutType, &o.Thread, &o.Send.State, &o.Receive.State} {
			*t = cut(*t, MaxWord)
		}
		o.Timeout, o.Send.For, o.Receive.For = finite(o.Timeout), finite(o.Send.For), finite(o.Receive.For)
		if o.Stack < 0 || o.Stack > len(c.Stacks) {
			o.Stack = 0
		}
		c.Ops = append(c.Ops, o)
	}
}

func knownKind(k model.OpKind) bool {
	return k == model.KindCollective || k == model.KindSend || k == model.KindRecv
}

func notRank(r int64) bool { return r < 0 || r > math.MaxInt32 }

func finite(o model.Optional[float64]) model.Optional[float64] {
	if math.IsNaN(o.V) || math.IsInf(o.V, 0) {
		return model.Optional[float64]{}
	}
	return o
}

// cut keeps the beginning, and no part of a character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}

// leftOut says once that some of what are missing.
func leftOut(c *model.RankState, what string) {
	note := "too large: " + what + " left out"
	if strings.Contains(c.Partial, note) {
		return
	}
	if c.Partial != "" {
		note = "; " + note
	}
	c.Partial += note
}

// reductions make a state that fit has copied smaller, what is least needed first. Each
// reports false where it can do no more; all together leave a rank and little else.
var reductions = []func(*model.RankState) bool{
	func(c *model.RankState) bool {
		if len(c.Stacks) == 0 && c.HostStack == "" {
			return false
		}
		c.Stacks, c.HostStack = nil, ""
		for i := range c.Ops {
			c.Ops[i].Stack = 0
		}
		leftOut(c, "call stacks")
		return true
	},
	func(c *model.RankState) bool {
		n := len(c.Ops)
		c.Ops = slices.DeleteFunc(c.Ops, func(o model.StateOp) bool { return o.Done })
		c.Dropped += int64(n - len(c.Ops))
		return len(c.Ops) < n
	},
	func(c *model.RankState) bool {
		n := len(c.Ops)
		c.Ops = c.Ops[:n/2]
		c.Dropped += int64(n - len(c.Ops))
		return n > 0
	},
	func(c *model.RankState) bool {
		had := false
		for i := range c.Comms {
			had = had || c.Comms[i].Members != nil
			c.Comms[i].Members = nil
		}
		if had {
			leftOut(c, "members")
		}
		return had
	},
	func(c *model.RankState) bool {
		n := len(c.Comms)
		if n > 0 {
			c.Comms = c.Comms[:n/2]
			leftOut(c, "communicators")
		}
		return n > 0
	},
}
