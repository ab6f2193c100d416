// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// State is a copy of what is known, for people and other programs.
type State struct {
	Timelines []ScaleState
	Clocks    []ClockState
	Undecided []graph.Contradiction
	Counters  Counters
}

// ScaleState tells of one timeline.
type ScaleState struct {
	Name, Reference string
	Foreign         bool // solved by another gateway
	Anchored        bool // it rests on real-time clocks
	Clocks, Edges   int
	RealtimeClocks  int     // whose median it follows
	Misfit          float64 // of the edges in their own sigmas
}

// ClockState tells of one clock.
type ClockState struct {
	Model model.ClockModel
	// BoundNow is the bound at what the clock reads now, which nobody knows better than by
	// the time since its last window; Stale: nothing was heard of it for long.
	BoundNow   int64
	Stale      bool
	Host       string
	Heard      time.Time
	Neighbours int
	Steps      int64
	Foreign    bool
	Undecided  bool
	Evidence   []graph.Evidence
}

// Counters count from the beginning.
type Counters struct {
	Edges graph.Counters

	Clocks, Untrusted  int64 // now
	Doubted            int64 // now: clocks of which nothing tells yet whether they were set
	PairsTaken         int64 // readings of both clocks of a host that counted at once
	PairsUnused        int64 // and that did not, though nothing is wrong with them
	Refused            int64 // edges and models that could not be used
	ModelsSolvedHere   int64 // models of others for clocks that are solved here
	ModelsOld          int64 // models of others that are too old, or older than what is known
	Leads              int64 // 1 where this process solves for the clocks
	ClocksOverflowed   int64 // clocks beyond MaxClocks
	ClocksForgotten    int64
	AliasesOverflowed  int64
	HostsAmbiguous     int64 // hosts of which two boots lived at a time, and whose name was neither's
	AliasesAmbiguous   int64 // names that were told of two hosts, and name neither
	EdgesOverflowed    int64 // edges that came during a solution, beyond what waits
	FindingsOverflowed int64 // findings that a reader of a Feed did not take in time
}

// State copies what is known. Of a shared timeline that solves, it has what the solution shows as well.
func (t *Timeline) State() State {
	s := t.ownState()
	if solver := t.solvesBy(); solver != nil {
		s.complete(solver.ownState())
	}
	return s
}

// complete takes over what only a solution shows of timelines and clocks.
func (s *State) complete(of State) {
	scales := map[string]ScaleState{}
	for _, sc := range of.Timelines {
		scales[sc.Name] = sc
	}
	for i := range s.Timelines {
		if sc, ok := scales[s.Timelines[i].Name]; ok && sc.Anchored == s.Timelines[i].Anchored {
			s.Timelines[i] = sc
		}
	}
	clocks := map[string]*ClockState{}
	for i := range of.Clocks {
		clocks[of.Clocks[i].Model.Clock] = &of.Clocks[i]
	}
	for i := range s.Clocks {
		c := &s.Clocks[i]
		if by := clocks[c.Model.Clock]; by != nil {
			c.Foreign, c.Neighbours, c.Undecided, c.Evidence = by.Foreign, by.Neighbours, by.Undecided, by.Evidence
		}
	}
	s.Undecided = of.Undecided
}

func (t *Timeline) ownState() State {
	s, now := State{Counters: t.Counters()}, t.opt.Now()
	t.mu.RLock()
	defer t.mu.RUnlock()
	on := map[*scale]int{}
	for _, tr := range t.tracks {
		on[tr.last().scale]++
	}
	for _, ref := range slices.Sorted(maps.Keys(t.scales)) {
		sc := t.scales[ref]
		clocks := sc.clocks
		if sc.foreign {
			clocks = on[sc]
		}
		s.Timelines = append(s.Timelines, ScaleState{
			Name: sc.name, Reference: strings.TrimSuffix(sc.reference, undatedSuffix), Foreign: sc.foreign, Anchored: sc.anchored,
			Clocks: clocks, Edges: sc.edges, RealtimeClocks: sc.walls(), Misfit: sc.misfit,
		})
	}
	for _, id := range slices.Sorted(maps.Keys(t.tracks)) {
		tr := t.tracks[id]
		s.Clocks = append(s.Clocks, ClockState{
			Model: tr.model(), BoundNow: tr.boundNow(now), Stale: now.Sub(tr.observed()) > silent, Host: tr.name.host, Heard: tr.heard, Neighbours: tr.neighbours, Steps: tr.steps,
			Foreign: tr.foreign, Undecided: tr.undecided, Evidence: slices.Clone(tr.evidence),
		})
	}
	if t.solution != nil {
		s.Undecided = slices.Clone(t.solution.Undecided())
	}
	return s
}

// observed is when something was heard of the clock last. Of a shared timeline it is when the leader's model ends: that
// may have been read long after.
func (t *track) observed() time.Time {
	if s := t.last().scale; s.shared() && s.anchored {
		return time.Unix(0, min(t.heard.UnixNano(), t.last().last().known))
	}
	return t.heard
}

// boundNow is the bound at what the clock may read by now.
func (t *track) boundNow(now time.Time) int64 {
	m := t.model()
	if t.last().scale.shared() {
		return grow(m.BoundAt(m.Until+max(0, now.Sub(t.observed()).Nanoseconds())), t.last().scale.turned(now.Sub(t.observed()).Nanoseconds()))
	}
	since := max(0, now.Sub(t.heard).Nanoseconds())
	if t.last().scale.anchored { // what was heard was older when it came
		since += min(max(0, t.heard.UnixNano()-m.Time(m.Until)), maxAhead)
	}
	return m.BoundAt(m.Until + since)
}

// Counters returns what was counted so far, of edges up to the last solution that
// began.
func (t *Timeline) Counters() Counters {
	edges, leads := t.counted(), int64(0)
	if t.Leads() {
		leads = 1
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	untrusted, doubted := int64(0), int64(0)
	for _, tr := range t.tracks {
		if tr.untrusted {
			untrusted++
		}
		if tr.doubt != nil {
			doubted++
		}
	}
	return Counters{
		Leads: leads, ModelsOld: t.stats.Old.Load(), Clocks: int64(len(t.tracks)), Untrusted: untrusted, Doubted: doubted,
		Edges: edges, PairsTaken: t.stats.Prompt.Load(), PairsUnused: t.stats.Unused.Load(), Refused: t.stats.Refused.Load(), ModelsSolvedHere: t.stats.Solved.Load(),
		ClocksOverflowed: t.stats.Overflowed.Load(), ClocksForgotten: t.stats.Forgotten.Load(),
		HostsAmbiguous: t.stats.HostsAmbiguous.Load(), AliasesAmbiguous: t.stats.AliasesAmbiguous.Load(), EdgesOverflowed: t.stats.InboxOverflowed.Load(),
		AliasesOverflowed: t.stats.AliasesOverflowed.Load(), FindingsOverflowed: t.stats.FeedsOverflowed.Load(),
	}
}
