// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/kair"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// engine is the product's engine with its default configuration but for the method, as
// the processor runs it. It is asked for verdicts after every step, of larger jobs more
// rarely: a live one is asked once in some seconds, and a judgement is of the whole
// window.
type engine struct {
	cfg    straggler.Config
	e      *straggler.Engine
	ranks  []model.Rank
	now    time.Time
	opened bool
	steps  int
	found  []Accusation // by ID, in order of emission, as last reported
}

// every returns after how many steps a job of so many ranks is judged.
func every(ranks int) int {
	switch {
	case ranks <= 16:
		return 1
	case ranks <= 1024:
		return 4
	}
	return 8
}

func newEngine() Method { return newEngineOf(evidence.MethodLockstep, false) }

// newKAIR is KAIR as published, of the same steps with the same clocks and roles.
func newKAIR() Method { return newEngineOf(evidence.MethodKAIR, false) }

// newKAIRPlus is KAIR with what is known to help it.
func newKAIRPlus() Method { return newEngineOf(evidence.MethodKAIR, true) }

func newEngineOf(method string, plus bool) Method {
	cfg := straggler.NewDefaultConfig()
	cfg.Method, cfg.KAIRPlus = method, plus
	cfg.Brief, cfg.Rhythm = true, false // what only people look at
	return &engine{cfg: cfg, now: time.Unix(0, 0)}
}

func (m *engine) Begin(ranks []model.Rank) {
	m.ranks = ranks
	m.e = straggler.New(m.cfg, func() time.Time { return m.now })
}

// Add lets more than the deadline pass before each step, so that a step from which a
// rank is missing is judged one step later, as in a live job.
func (m *engine) Add(rank int, ops []model.Op) {
	if !m.opened {
		m.opened = true
		m.now = m.now.Add(m.cfg.Deadline + time.Second)
	}
	m.e.Add(m.ranks[rank], ops)
}

func (m *engine) Close(int64) {
	m.opened = false
	m.e.Expire()
	m.steps++
	if m.steps%every(len(m.ranks)) == 0 {
		m.take(m.e.Verdicts())
	}
}

func (m *engine) take(verdicts []straggler.Verdict) {
	for i := range verdicts {
		f := &verdicts[i].Finding
		if f.Kind != model.FindingStraggler {
			continue
		}
		a := accusation(f)
		if at := slices.IndexFunc(m.found, func(b Accusation) bool { return b.ID == a.ID }); at >= 0 {
			m.found[at] = a
		} else {
			m.found = append(m.found, a)
		}
	}
}

func (m *engine) Named() []Accusation {
	out := slices.Clone(m.found)
	slices.SortStableFunc(out, byScore)
	return out
}

func (m *engine) End() []Accusation {
	m.e.Flush()
	m.take(m.e.Verdicts())
	out := m.Named()
	for _, j := range m.e.Jobs() {
		if a := j.Abstained; a != nil && a.Rank >= 0 {
			why, _ := json.Marshal(a)
			out = append(out, Accusation{ID: "abstained", Ranks: []int64{a.Rank}, Evidence: string(why)})
		}
		out = append(out, suspects(out, j.Suspects)...)
	}
	return out
}

// suspects lists those of the highest scores that are not named.
func suspects(named []Accusation, scores []kair.Score) (out []Accusation) {
	for _, s := range scores[:min(len(scores), maxSuspects)] {
		if !slices.ContainsFunc(named, func(a Accusation) bool { return slices.Contains(a.Ranks, s.Rank) }) {
			out = append(out, rankAccusation(int(s.Rank), s.Score, false))
		}
	}
	return out
}

// accusation is of one class: where a finding's class changes, both were told.
func accusation(f *model.Finding) Accusation {
	a := Accusation{
		ID: f.ID + " " + f.Class, Decided: true, Class: f.Class, Cause: f.Cause, Ranks: f.Ranks, Peer: f.Peer, Op: f.Op,
		Score: f.CostSeconds.Or(0), Confidence: model.Some(f.Confidence), CostShare: f.CostShare,
		First: f.StepFirst, Last: f.StepLast, Evidence: evidence.Encode(f.Evidence),
	}
	if f.Rank.OK {
		a.Ranks = []int64{f.Rank.V}
	}
	if f.Class == model.ClassLink {
		a.Comm, a.Group = f.CommID, !f.Rank.OK && !f.Peer.OK
		if f.Peer.OK && !f.Rank.OK {
			a.Ranks = nil
		}
	}
	if f.Class == model.ClassNode {
		a.Host = f.Host
	}
	if math.IsNaN(a.CostShare.V) {
		a.CostShare = model.Optional[float64]{}
	}
	return a
}
