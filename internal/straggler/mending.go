// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// mending returns what a replay takes to be mended.
func (c *candidate) mending() (m mending, by string) {
	switch c.place.sort {
	case placeJob:
		return mending{}, byChange
	case placeWork:
		return mending{even: true}, byEven
	case placeAll:
		return mending{held: int64(c.HeldFrom * 1e9)}, byNoPause
	case placeStage:
		return c.shrunk(), byShrink
	case placeLink, placeGroup:
		if c.Side == "" && c.Rank >= 0 && c.in.wired(c.Rank) {
			return mending{links: map[int64]bool{c.Rank: true}}, byWire
		}
		return mending{passages: []passage{c.passage()}}, byPassage
	}
	m.ranks = map[int64]bool{}
	for _, r := range c.Ranks {
		m.ranks[r] = true
	}
	if c.Rung == judge.RungHistory || c.Rung == judge.RungKernel || !c.in.peered(m.ranks) {
		return c.shrunk(), byShrink
	}
	return m, byMedian
}

// peered reports whether some segment of the ranks has peers' to be replaced by.
func (in stretch) peered(ranks map[int64]bool) bool {
	for _, rec := range in[max(0, len(in)-minTrials):] {
		if slices.ContainsFunc(rec.meets, func(mr *meetingRecord) bool { return mr.peered(ranks) }) {
			return true
		}
	}
	return false
}

func (mr *meetingRecord) peered(ranks map[int64]bool) bool {
	var of, others []role
	for i := range mr.members {
		switch m := &mr.members[i]; {
		case !m.known:
		case ranks[mr.ranks[i]]:
			of = append(of, m.role)
		case len(others) == 0 || others[len(others)-1] != m.role:
			others = append(others, m.role)
		}
	}
	return slices.ContainsFunc(of, func(r role) bool { return slices.Contains(others, r) })
}

// shrunk takes the candidate's excess away from its ranks' own time.
func (c *candidate) shrunk() mending {
	m := mending{shrink: map[int64]float64{}}
	for _, r := range c.Ranks {
		m.shrink[r] = overOf(c.Share)
	}
	return m
}

// overOf returns which part of a time is excess, where that is so much of the peers'.
func overOf(share float64) float64 {
	if share <= 0 {
		return 0
	}
	return share / (1 + share)
}

// passage returns the transfers that the candidate's link lengthens.
func (c *candidate) passage() passage {
	p := passage{from: c.Rank, to: c.Peer, over: overOf(c.Share)}
	// The judge measures links by the step, and says what their peers took.
	if usual := c.Numbers[judge.NumberPeers]; usual > 0 && c.Mean > 0 {
		p.over = c.Mean / (c.Mean + usual)
	}
	switch {
	case c.Side == judge.SideReceive:
		p.from, p.to = -1, c.Rank
	case c.Rank < 0:
		p.group, p.comm, p.digest = true, c.Comm, c.Digest
	}
	return p
}

func (m *mending) add(o mending) {
	maps.Copy(m.ranks, o.ranks)
	maps.Copy(m.links, o.links)
	maps.Copy(m.shrink, o.shrink)
	m.passages = append(m.passages, o.passages...)
	m.even = m.even || o.even
	m.held = max(m.held, o.held)
}
