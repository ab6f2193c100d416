package straggler

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// linkCandidates returns the ranks whose sends were under way longer than their
// peers', those with the largest excess first.
func (j *job) linkCandidates() []*candidate {
	byRank, ranks := map[int64]*candidate{}, map[int64]bool{}
	for _, rec := range j.window {
		for i := range rec.ranks {
			r := &rec.ranks[i]
			ranks[r.rank.Rank] = true
			if !r.wired {
				continue
			}
			c := byRank[r.rank.Rank]
			if c == nil {
				c = &candidate{rank: r.rank, link: true}
				byRank[r.rank.Rank] = c
			}
			c.mean += float64(r.wire)
		}
	}
	var out []*candidate
	for _, c := range byRank {
		if c.mean > 0 {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.mean, a.mean), cmp.Compare(a.rank.Rank, b.rank.Rank))
	})
	out = out[:min(len(out), maxCandidates)]
	for _, c := range out {
		j.examine(c, len(ranks))
	}
	return out
}

// behindLink reports whether a slow link may be all that makes the candidate
// seem slower than its peers. Ranks leave a collective behind a slow link at
// different times, so that it hides different parts of what their devices and
// hosts do meanwhile. Where that was not recorded, what is left to see of it
// differs by up to what the link adds.
func (c *candidate) behindLink(links []*candidate, cfg *Config) (gate string, got, want float64) {
	if c.link || !c.in.dark(c.rank.Rank) {
		return "", 0, 0
	}
	for _, l := range links {
		if l.mean >= c.mean && l.standsOut(cfg) {
			return gateLink, c.mean / 1e9, l.mean / 1e9
		}
	}
	return "", 0, 0
}

// lateShare is what a link must add, of what its rank is late by, to be more than
// an effect of that: a tenth was seen where eight ranks share two cores.
const lateShare = 0.25

// besideLateness reports whether a link is that of a rank whose lateness may be
// all there is. Who comes last sends while all others wait for it, and its sends
// are not under the same conditions as theirs.
func (c *candidate) besideLateness(named []*candidate) (gate string, got, want float64) {
	if !c.link {
		return "", 0, 0
	}
	for _, r := range named {
		if want := lateShare * r.mean; r.rank.Rank == c.rank.Rank && c.mean < want {
			return gateLate, c.mean / 1e9, want / 1e9
		}
	}
	return "", 0, 0
}

// standsOut reports whether the link is slow beyond doubt, whatever mending it
// alone would save: where two are, none is named, and both uncover work.
func (c *candidate) standsOut(cfg *Config) bool {
	gate, _, _ := c.failedGate(cfg)
	return gate == "" || gate == gateCost
}

// dark reports whether in some step nothing but the rank's communication was
// recorded of its device.
func (in stretch) dark(rank int64) bool {
	return slices.ContainsFunc(in, func(rec *record) bool {
		i, ok := rec.index[rank]
		return ok && rec.ranks[i].dark
	})
}

// measureLink fills what the candidate's link costs in its stretch.
func (c *candidate) measureLink() {
	var samples []float64
	var transfer float64
	c.mean = 0
	for _, rec := range c.in {
		if i, ok := rec.index[c.rank.Rank]; ok && rec.ranks[i].wired {
			c.steps++
			c.mean += float64(rec.ranks[i].wire)
			transfer += float64(rec.ranks[i].transfer)
			samples = append(samples, float64(rec.ranks[i].wire))
		}
	}
	c.mean /= float64(max(1, c.steps))
	c.excessShare = c.mean * float64(c.steps) / max(1, transfer)
	c.typical = c.typicality(samples)
	c.steadiness = steadiness(samples)
	c.cost = float64(replay(c.in, mending{links: map[int64]bool{c.rank.Rank: true}})) / 1e9 / float64(len(c.in))
	c.costShare = c.cost / c.in.stepSeconds()
}

// otherSide returns the peer behind most of the excess, -1 where no source said.
func (c *candidate) otherSide() int64 {
	excess := map[int64]int64{}
	for _, rec := range c.in {
		for _, mr := range rec.meets {
			if k := mr.find(c.rank.Rank); k >= 0 && mr.members[k].wire.known {
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
			k := mr.find(c.rank.Rank)
			if k >= 0 && mr.members[k].wire.known && (worst == nil || mr.members[k].wire.excess > worst.members[at].wire.excess) {
				worst, at = mr, k
			}
		}
	}
	return worst, at
}

// LinkEvidence is the JSON of lockstep.finding.evidence of class link. Seconds
// are per step where not said otherwise.
type LinkEvidence struct {
	Steps        int      `json:"steps"`
	FalseAlarm   float64  `json:"false_alarm"`
	Trials       string   `json:"trials"`
	ExcessWire   float64  `json:"excess_wire_seconds"` // of the operations' duration
	ExcessShare  float64  `json:"excess_share"`        // of the rank's exposed transfer
	Steadiness   float64  `json:"steadiness"`
	Decisive     WireMeet `json:"decisive"`
	CohortRung   string   `json:"cohort_rung"`
	Peers        int      `json:"peers"` // that sent, too: in the decisive meeting, or in its place of the step
	MissingRanks []int64  `json:"missing_ranks,omitempty"`
	MissingCount int      `json:"missing_ranks_count,omitempty"`
	LoweredBy    []string `json:"confidence_lowered_by,omitempty"`
}

// WireMeet is the meeting in which the link cost most.
type WireMeet struct {
	Step       int64   `json:"step"`
	Collective string  `json:"collective"`
	Comm       string  `json:"comm_id"`
	Wire       float64 `json:"wire_wait_seconds"` // the rank's, as summed by the source
	Steps      int64   `json:"wire_steps"`        // proxy steps that it sent
	PerStep    float64 `json:"wire_wait_per_step_seconds"`
	PeersStep  float64 `json:"peers_wire_wait_per_step_seconds"` // median of the other senders'
	Transfer   float64 `json:"transfer_seconds"`                 // exposed, of the rank
}

func (c *candidate) linkEvidence() (*Meeting, LinkEvidence) {
	mr, at := c.worstWire()
	if mr == nil {
		return nil, LinkEvidence{}
	}
	ev := LinkEvidence{
		Steps: c.steps, FalseAlarm: c.chance, Trials: "step", ExcessWire: c.mean / 1e9,
		ExcessShare: c.excessShare, Steadiness: c.steadiness, CohortRung: cohortSameRole,
	}
	ev.MissingRanks, ev.MissingCount = c.in.missing()
	w := &mr.members[at].wire
	ev.Peers = w.peers
	ev.Decisive = WireMeet{
		Step: mr.step, Collective: mr.name, Comm: mr.comm,
		Wire: float64(w.raw) / 1e9, Steps: w.steps, PerStep: w.rate() / 1e9, PeersStep: w.usual / 1e9,
		Transfer: float64(w.exposed) / 1e9,
	}
	return mr.shown, ev
}

// linkVerdict renders a link that passed all gates.
func (j *job) linkVerdict(c *candidate, joint float64) (Verdict, bool) {
	shown, ev := c.linkEvidence()
	if shown == nil {
		return Verdict{}, false
	}
	v := 1 - c.chance
	if share := c.in.seenShare(); share < 1 {
		v *= share
		ev.LoweredBy = append(ev.LoweredBy, missingWords(ev.MissingRanks, ev.MissingCount))
	}
	peer := c.otherSide()
	if peer < 0 {
		v *= peerUnknown
		ev.LoweredBy = append(ev.LoweredBy, "the other side of the link was not recorded")
	}
	f := j.finding(c, joint)
	f.Class, f.Op, f.CommID = model.ClassLink, shown.Name, shown.CommID
	f.ID = j.findingID("link", c)
	f.Link = fmt.Sprintf("rank %d -> unknown", c.rank.Rank)
	if peer >= 0 {
		f.Peer = model.Some(peer)
		f.Link = fmt.Sprintf("rank %d -> rank %d", c.rank.Rank, peer)
	}
	f.Confidence = certainty(v)
	text, _ := json.Marshal(ev)
	f.Evidence = string(text)
	f.Links = []model.SpanRef{shown.spanOf(c.rank.Rank)}
	f.Action = linkAction(&f)
	return Verdict{Finding: f, Decisive: shown, Steps: len(c.in)}, true
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
	far := "its peer"
	if f.Peer.OK {
		far = fmt.Sprintf("rank %d", f.Peer.V)
	}
	return fmt.Sprintf("check the path of %s: errors, rate and congestion of both NICs, cables, the switches between. "+
		"Which end is at fault is not decided by the waits of one side: send from rank %d to another rank, and to %s from another one", f.Link, f.Rank.V, far)
}
