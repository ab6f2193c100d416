// SPDX-License-Identifier: Apache-2.0

// Package journal follows the revisions of findings for a reader: it numbers findings, and decides
// which revisions have news. A revision has news where its status, class, rank or link differ from
// those that were printed, or where its cost has changed by half.
package journal

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/report"
)

// Config configures a Journal.
type Config struct {
	// UpdateEvery is the least time between two changes of open findings that have news, of all findings
	// together. 0: none. A change that comes sooner is compared anew with the next revision.
	UpdateEvery time.Duration
	// Forgotten, if any, is called for each finding that the journal drops for its limits.
	Forgotten func()
}

// Limits of what a journal knows: more findings than a person reads, with long evidence.
const (
	MaxFindings = 1024
	maxBytes    = 16 << 20
)

// Journal follows the revisions of findings. It is not safe for concurrent use.
type Journal struct {
	cfg     Config
	known   *bounded.Map[string, Entry]
	count   int       // findings that were ever known
	updated time.Time // when a change of an open finding was printed last
}

// Entry is what a journal knows of a finding.
type Entry struct {
	// Number counts findings in the order in which they came, from 1.
	Number int
	// Latest is the latest revision.
	Latest model.Finding

	printed bool
	shown   shown
}

// shown is what differs between revisions that have news.
type shown struct {
	closed bool
	class  string
	rank   model.Optional[int64]
	link   string
	cost   float64
}

// News is a revision to print.
type News struct {
	Number  int
	Finding *model.Finding
	// First: nothing of the finding has been printed yet.
	First bool
}

// New returns an empty journal.
func New(cfg Config) *Journal {
	j := &Journal{cfg: cfg}
	j.known = bounded.NewMap(bounded.MapConfig[string, Entry]{
		Entries: MaxFindings, Bytes: maxBytes, Order: bounded.ByUse,
		Size:    func(_ string, e Entry) int { return e.Latest.Bytes() },
		Evicted: func(string, Entry, bounded.Reason) { j.forgotten() },
	})
	return j
}

func (j *Journal) forgotten() {
	if j.cfg.Forgotten != nil {
		j.cfg.Forgotten()
	}
}

// Knows reports whether a revision of the finding has come before.
func (j *Journal) Knows(id string) bool { return j.known.Has(id) }

// Count returns how many findings have come.
func (j *Journal) Count() int { return j.count }

// Note takes in a revision, and reports whether it has news. An older revision than the latest has
// none. Call Printed once the news is printed: until then it stays news.
func (j *Journal) Note(f *model.Finding, now time.Time) (News, bool) {
	e, known := j.known.Get(f.ID)
	switch {
	case !known || f.ID == "":
		j.count++
		e = Entry{Number: j.count}
	case f.Revision < e.Latest.Revision:
		return News{}, false
	}
	e.Latest = *f
	if f.ID != "" { // else it cannot be followed
		j.known.Set(f.ID, e)
	}
	n := News{Number: e.Number, Finding: f, First: !e.printed}
	return n, n.First || e.shown.differs(f) && (closed(f) || now.Sub(j.updated) >= j.cfg.UpdateEvery)
}

// Printed records that news has been printed.
func (j *Journal) Printed(n *News, now time.Time) {
	if !n.First && !closed(n.Finding) {
		j.updated = now
	}
	j.known.Update(n.Finding.ID, func(e *Entry) { e.printed, e.shown = true, shownOf(n.Finding) })
}

// Entries returns what is known of all findings, most costly first.
func (j *Journal) Entries() []Entry {
	all := make([]Entry, 0, j.known.Len())
	for _, e := range j.known.All() {
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b Entry) int {
		if c := report.MostCostly(a.Latest, b.Latest); c != 0 {
			return c
		}
		return a.Number - b.Number
	})
	return all
}

func closed(f *model.Finding) bool { return f.Status == model.StatusClosed }

func shownOf(f *model.Finding) shown {
	return shown{closed: closed(f), class: f.Class, rank: f.Rank, link: f.Link, cost: f.CostSeconds.Or(0)}
}

// changedBy is the factor by which a cost must change to be news.
const changedBy = 1.5

// differs reports whether f differs from what was printed.
func (s *shown) differs(f *model.Finding) bool {
	is := shownOf(f)
	return s.closed != is.closed || s.class != is.class || s.rank != is.rank || s.link != is.link ||
		max(s.cost, is.cost) > changedBy*min(s.cost, is.cost)
}

// maxSummary bounds the lines of a summary; findings behind the first few are small.
const maxSummary = 16

// Summary returns what the findings that were printed came to, a line each, most costly first.
func (j *Journal) Summary() (lines []string) {
	more := 0
	for _, e := range j.Entries() {
		switch {
		case !e.printed:
		case len(lines) < maxSummary:
			lines = append(lines, fmt.Sprintf("At the end, finding %d: %s.", e.Number, report.Brief(&e.Latest)))
		default:
			more++
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("And %d more.", more))
	}
	return lines
}
