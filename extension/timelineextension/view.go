// SPDX-License-Identifier: Apache-2.0

package timelineextension

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/timeline"
)

// view is what GET /timeline returns; the README describes it.
type view struct {
	Timelines []timelineView `json:"timelines"`
	Clocks    []clockView    `json:"clocks"`
	Undecided []pairView     `json:"undecided"`
	Edges     edgesView      `json:"edges"`
}

type timelineView struct {
	Name           string  `json:"timeline"`
	Reference      string  `json:"reference"`
	Foreign        bool    `json:"solved_elsewhere"`
	Unix           bool    `json:"unix"`
	Clocks         int     `json:"clocks"`
	Edges          int     `json:"edges"`
	RealtimeClocks int     `json:"realtime_clocks"`
	Misfit         float64 `json:"misfit"`
}

type clockView struct {
	Clock      string   `json:"clock"`
	Timeline   string   `json:"timeline"`
	Host       string   `json:"host,omitempty"`
	OffsetNano int64    `json:"offset_nano"`
	DriftPPM   float64  `json:"drift_ppm"`
	BoundNano  *int64   `json:"bound_nano"` // null where nothing bounds it
	NowNano    *int64   `json:"bound_now_nano"`
	Stale      bool     `json:"stale"`
	GrowthPPM  float64  `json:"bound_growth_ppm"`
	SigmaNano  float64  `json:"sigma_nano"`
	From       int64    `json:"from_nano"`
	Until      int64    `json:"until_nano"`
	At         int64    `json:"at_nano"`
	Heard      string   `json:"heard"`
	Neighbours int      `json:"neighbours"`
	Steps      int64    `json:"steps"`
	Foreign    bool     `json:"solved_elsewhere"`
	Untrusted  bool     `json:"untrusted"`
	Undecided  bool     `json:"undecided"`
	Against    []string `json:"contradicts,omitempty"`
}

type pairView struct {
	A          string `json:"a"`
	B          string `json:"b"`
	Source     string `json:"source"`
	ExcessNano int64  `json:"excess_nano"`
}

type edgesView struct {
	Taken     int64 `json:"taken"`
	Late      int64 `json:"late"`
	Refused   int64 `json:"refused"`
	Forgotten int64 `json:"forgotten"`
}

func newView(s timeline.State) view {
	v := view{Timelines: []timelineView{}, Clocks: []clockView{}, Undecided: []pairView{}}
	for _, t := range s.Timelines {
		v.Timelines = append(v.Timelines, timelineView{
			Name: t.Name, Reference: t.Reference, Foreign: t.Foreign, Unix: t.Anchored, Clocks: t.Clocks, Edges: t.Edges,
			RealtimeClocks: t.RealtimeClocks, Misfit: t.Misfit,
		})
	}
	for i := range s.Clocks {
		v.Clocks = append(v.Clocks, newClockView(&s.Clocks[i]))
	}
	for _, p := range s.Undecided {
		v.Undecided = append(v.Undecided, pairView{p.A, p.B, p.Source, p.Excess})
	}
	v.Edges = edgesView{
		Taken: s.Counters.Edges.Added, Late: s.Counters.Edges.Late,
		Refused: s.Counters.Refused, Forgotten: s.Counters.Edges.Forgotten,
	}
	return v
}

func newClockView(c *timeline.ClockState) clockView {
	m := c.Model
	v := clockView{
		Clock: m.Clock, Timeline: m.Timeline, Host: c.Host, OffsetNano: m.Offset, DriftPPM: m.Drift * 1e6,
		GrowthPPM: m.Growth * 1e6, SigmaNano: m.Sigma, From: m.From, Until: m.Until, At: m.At,
		Heard: c.Heard.UTC().Format(time.RFC3339Nano), Neighbours: c.Neighbours, Steps: c.Steps,
		Stale: c.Stale, Foreign: c.Foreign, Untrusted: m.Untrusted, Undecided: c.Undecided,
	}
	if m.Bound != model.NoBound {
		v.BoundNano = &m.Bound
	}
	if c.BoundNow != model.NoBound {
		v.NowNano = &c.BoundNow
	}
	for _, e := range c.Evidence {
		v.Against = append(v.Against, e.Other)
	}
	return v
}

// maxRows bounds the page: a browser lays out so many rows in a second.
const maxRows = 1000

// page is the view for people: what is wrong first.
type page struct {
	view
	Rows    []clockView
	LeftOut int
}

func newPage(v view) page {
	rows := slices.Clone(v.Clocks)
	slices.SortStableFunc(rows, func(a, b clockView) int {
		return cmp.Or(compareTrue(a.Untrusted, b.Untrusted), compareTrue(a.Undecided, b.Undecided), cmp.Compare(a.Timeline, b.Timeline))
	})
	left := max(0, len(rows)-maxRows)
	return page{view: v, Rows: rows[:len(rows)-left], LeftOut: left}
}

func compareTrue(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// The page's words.

// Offset is to the timeline. That of a clock that counts since boot is its epoch,
// which says nothing to people.
func (c clockView) Offset() string {
	const decade = int64(10 * 365 * 24 * time.Hour)
	if c.OffsetNano > decade || c.OffsetNano < -decade {
		return "(counts from elsewhere)"
	}
	return time.Duration(c.OffsetNano).String()
}

// Bound is the half width of the offset at what the clock reads now.
func (c clockView) Bound() string {
	if c.NowNano == nil {
		return "not bounded"
	}
	return "± " + time.Duration(*c.NowNano).String()
}

// Notes tell what is particular about the clock.
func (c clockView) Notes() []string {
	var notes []string
	for _, n := range []struct {
		on   bool
		text string
	}{
		{c.Untrusted, "untrusted: contradicts the others, its times are left as they are"},
		{c.Undecided && !c.Untrusted, "contradicts a neighbour; which of both lies is not decided"},
		{c.Stale, "stale: nothing was heard of it for more than a minute"},
		{c.Foreign, "solved by another gateway"},
		{c.Steps > 0, "was stepped"},
	} {
		if n.on {
			notes = append(notes, n.text)
		}
	}
	return notes
}
