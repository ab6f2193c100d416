// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// otherSide returns the peer behind most of the excess, -1 where no source said.
func (c *candidate) otherSide() int64 {
	excess := map[int64]int64{}
	for _, rec := range c.in {
		for _, mr := range rec.meets {
			if k := mr.find(c.Rank); k >= 0 && mr.members[k].wire.known {
				excess[mr.members[k].wire.peer] += mr.members[k].wire.excess
			}
		}
	}
	peer, most := int64(-1), int64(0)
	for p, x := range excess {
		if x > most || (x == most && p < peer) {
			peer, most = p, x
		}
	}
	return peer
}

// worstWire returns the meeting in which the candidate's link cost most, and
// the candidate's place in it.
func (c *candidate) worstWire() (worst *meetingRecord, at int) {
	for _, rec := range c.in {
		for _, mr := range rec.meets {
			k := mr.find(c.Rank)
			if k >= 0 && mr.members[k].wire.known && (worst == nil || mr.members[k].wire.excess > worst.members[at].wire.excess) {
				worst, at = mr, k
			}
		}
	}
	return worst, at
}

// linkEvidence is that of waits on the wire; nil where none were compared.
func (c *candidate) linkEvidence(method string) (*meetingRecord, *evidence.Link) {
	mr, at := c.worstWire()
	if mr == nil {
		return nil, nil
	}
	w := mr.members[at].wire
	ev := &evidence.Link{
		Method: cmp.Or(method, evidence.MethodLockstep), Steps: c.steps, FalseAlarm: c.Chance, Trials: "step", ExcessWire: c.Mean,
		ExcessShare: c.in.wireShare(c.Rank), Steadiness: bounded(c.Steadiness), CohortRung: string(c.Rung), Peers: w.peers,
		CostBy: c.costBy, Numbers: finite(c.Numbers),
		Decisive: evidence.LinkDecisive{
			Step: mr.step, Collective: mr.name, Comm: mr.shown.form.comm,
			Wire: float64(w.raw) / 1e9, Steps: w.steps, PerStep: w.rate() / 1e9, PeersStep: w.usual / 1e9,
			Transfer: float64(w.exposed) / 1e9,
		},
	}
	ev.MissingRanks, ev.MissingCount = c.in.missing()
	return mr, ev
}

// wireShare returns what part of the rank's exposed transfer its link adds.
func (in stretch) wireShare(rank int64) float64 {
	var wire, transfer float64
	for _, rec := range in {
		if i, ok := rec.index[rank]; ok && rec.ranks[i].wired {
			wire += float64(rec.ranks[i].wire)
			transfer += float64(rec.ranks[i].transfer)
		}
	}
	return wire / max(1, transfer)
}

// wireVerdict renders a link whose sends wait longer for the wire.
func (j *job) wireVerdict(c *candidate, joint float64) (Verdict, bool) {
	mr, ev := c.linkEvidence(j.e.cfg.Method)
	if mr == nil {
		return Verdict{}, false
	}
	shown, v := mr.show(), c.Confidence
	if share := c.in.seenShare(); share < 1 {
		v *= share
		ev.LoweredBy = append(ev.LoweredBy, missingWords(ev.MissingRanks, ev.MissingCount))
	}
	if c.Peer < 0 {
		c.Peer = c.otherSide()
	}
	if c.Peer < 0 {
		v *= peerUnknown
		ev.LoweredBy = append(ev.LoweredBy, "the other side of the link was not recorded")
	}
	f := j.finding(c, joint)
	f.Op, f.CommID = shown.Name, shown.CommID
	f.Link = c.linkName()
	f.Confidence = certainty(v)
	f.Evidence = ev
	f.Links = []model.SpanRef{shown.spanOf(c.Rank)}
	f.Action = linkAction(&f)
	return Verdict{Finding: f, Decisive: shown, Steps: len(c.in)}, true
}

// linkName says which link it is, as precisely as is known.
func (c *candidate) linkName() string {
	switch {
	case c.Rank >= 0 && c.Side != "":
		return fmt.Sprintf("rank %d nic %s", c.Rank, c.Side)
	case c.Rank >= 0 && c.Peer >= 0:
		return fmt.Sprintf("rank %d -> rank %d", c.Rank, c.Peer)
	case c.Rank >= 0:
		return fmt.Sprintf("rank %d -> unknown", c.Rank)
	}
	return "group " + c.Comm
}

// peerUnknown lowers the confidence in a link of which one end is known only.
const peerUnknown = 0.8

func (m *Meeting) spanOf(rank int64) (ref model.SpanRef) {
	for i := range m.Members {
		if m.Members[i].Rank == rank {
			return m.Members[i].Span
		}
	}
	return ref
}

func linkAction(f *model.Finding) string {
	const look = "check the path of %s: errors, rate and congestion of both NICs, cables, the switches between. "
	const card = "all that rank %[2]d %[1]s: check rate, errors and congestion of its NIC, its PCIe link, cable and switch port"
	switch {
	case f.Rank.OK && strings.HasSuffix(f.Link, " "+judge.SideSend):
		return fmt.Sprintf(card, "sends is slow, to whomever", f.Rank.V)
	case f.Rank.OK && strings.HasSuffix(f.Link, " "+judge.SideReceive):
		return fmt.Sprintf(card, "receives is slow, from whomever", f.Rank.V)
	case !f.Rank.OK:
		return fmt.Sprintf("transfers of %s are slow while those of like groups are not: check the links and switches that its ranks share, and run a collective of it alone", f.Link)
	case f.Peer.OK:
		return fmt.Sprintf(look+"Which end is at fault is not decided by the waits of one side: send from rank %d to another rank, and to rank %d from another one", f.Link, f.Rank.V, f.Peer.V)
	}
	return fmt.Sprintf(look+"Which end is at fault is not decided by the waits of one side: send from rank %d to another rank, and to its peer from another one", f.Link, f.Rank.V)
}
