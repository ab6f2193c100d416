// SPDX-License-Identifier: Apache-2.0

package logline

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Line is a line of a log, and of whom it is.
type Line struct {
	Time         int64 // Unix ns, by its own clock; 0: it says none
	JobID        string
	JobName      string
	HostID, Host string
	Text         string
}

// Config are the limits of a watch.
type Config struct {
	// Silent is after how long without such a line a finding is closed.
	Silent time.Duration
	// MaxEpisodes bounds the findings that are open.
	MaxEpisodes int
}

// NewDefaultConfig returns the defaults.
func NewDefaultConfig() Config {
	return Config{
		Silent:      15 * time.Minute, // a job that fails so is restarted sooner, and says it again
		MaxEpisodes: 1024,
	}
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	var errs []error
	if c.Silent < time.Second {
		errs = append(errs, fmt.Errorf("check silent: got %v; want at least 1s", c.Silent))
	}
	if c.MaxEpisodes < 1 {
		errs = append(errs, fmt.Errorf("check max_episodes: got %d; want at least 1", c.MaxEpisodes))
	}
	return errors.Join(errs...)
}

// Stats count what was recognised, and what was left out.
type Stats struct {
	Lines          int64 // that were recognised
	Opened, Closed int64 // findings
	// Withheld counts findings for which there was no room, each once for as long as such lines come.
	Withheld int64
}

// maxNamed bounds the hosts and ranks that a finding names, and maxText the bytes of a line that it
// keeps.
const (
	maxNamed = 64
	maxText  = 512
)

// series are the lines of one pattern of one job, or of one host, from the first to the end.
type series struct {
	place   finding.Place
	pattern Pattern
	jobID   string // empty: they are of a host
	jobName string
	hosts   []string // names of those whose lines these are, in order, at most maxNamed
	ranks   []int64  // that the lines say printed them, in order, at most maxNamed
	more    bool     // there are more hosts or ranks
	text    string   // of the first line
	fields  []Field  // of the first line
	time    int64    // of the first line, Unix ns by its own clock; 0: it says none
	absurd  bool     // all lines contradict themselves
	count   int64
	changed bool // since it was reported

	began, latest time.Time // when lines came
}

// Watch keeps a finding open while such lines come. It is not safe for concurrent use. All times are of
// the clock of its user: those of lines decide nothing.
type Watch struct {
	cfg   Config
	held  map[finding.Place]*series
	book  *finding.Book[struct{}]
	lines int64
}

// New returns a watch that has seen no line.
func New(c Config) *Watch {
	return &Watch{
		cfg: c, held: map[finding.Place]*series{},
		book: finding.New[struct{}](finding.Config{MaxOpen: c.MaxEpisodes}),
	}
}

// Stats returns the counters.
func (w *Watch) Stats() Stats {
	of := w.book.Stats()
	return Stats{Lines: w.lines, Opened: of.Opened, Closed: of.Closed, Withheld: of.Withheld}
}

// ofHosts are the patterns of what one host runs, whichever job meets it.
var ofHosts = map[Pattern]bool{DriverAPI: true, DriverLibrary: true, FabricManager: true}

func placeOf(pattern Pattern, l *Line) finding.Place {
	name := model.OpLogLine + string(pattern)
	if l.JobID == "" || ofHosts[pattern] {
		return finding.Place{Name: name + " host " + cmp.Or(l.HostID, l.Host)}
	}
	return finding.Place{Job: strings.Clone(l.JobID), Name: name}
}

// Observe takes a line, and reports whether it is recognised.
func (w *Watch) Observe(l *Line, now time.Time) bool {
	h, ok := Recognise(l.Text)
	if ok {
		w.Take(&h, l, now)
	}
	return ok
}

// Take takes a line that was recognised.
func (w *Watch) Take(h *Hit, l *Line, now time.Time) {
	w.lines++
	p := placeOf(h.Pattern, l)
	of := w.held[p]
	if of == nil {
		if len(w.held) >= w.cfg.MaxEpisodes {
			w.book.Withhold(p, now)
			return
		}
		of = &series{
			place: p, pattern: h.Pattern, jobID: p.Job, text: cut(l.Text), fields: own(h.Fields), time: l.Time,
			absurd: true, changed: true, began: now,
		}
		if p.Job != "" {
			of.jobName = strings.Clone(l.JobName)
		}
		w.held[p] = of
	}
	of.take(l, h, now)
}

func (l *series) take(line *Line, h *Hit, now time.Time) {
	l.latest = now
	l.changed = l.changed || l.absurd && !h.Absurd
	l.absurd = l.absurd && h.Absurd
	l.count++
	if name := cmp.Or(line.Host, line.HostID); name != "" {
		l.hosts = named(l, l.hosts, strings.Clone(name))
	}
	if h.Rank.OK {
		l.ranks = named(l, l.ranks, h.Rank.V)
	}
}

// first identifies the first line: by its own time, or else by its text.
func (l *series) first() int64 {
	if l.time != 0 {
		return l.time
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(l.text)) // it never fails
	return int64(hash.Sum64())        //nolint:gosec // only equality counts
}

// Tick returns the findings that were opened, updated or closed since the last call.
func (w *Watch) Tick(now time.Time) []model.Finding {
	for _, p := range w.order() {
		l := w.held[p]
		switch e := w.book.At(p); {
		case now.Sub(l.latest) >= w.cfg.Silent:
			delete(w.held, p)
			if e != nil {
				w.book.Refresh(e, l.copied().finding(now))
				w.book.Close(e, now.UnixNano())
			}
		case l.changed:
			l.changed = w.book.Found(p, l.first(), l.copied().finding(now), now) == nil
		}
	}
	return w.book.Take()
}

// Standing returns the findings that are open, with the lines that came since they were reported.
func (w *Watch) Standing(now time.Time) []model.Finding {
	for _, e := range w.book.Episodes() {
		if l := w.held[e.Place]; l != nil {
			w.book.Refresh(e, l.copied().finding(now))
		}
	}
	return w.book.Standing(now)
}

// Snapshot returns the findings, to be kept over a restart.
func (w *Watch) Snapshot() ([]byte, error) { return w.book.Snapshot() }

// Restore takes what Snapshot returned, before any line. A finding stays open for as long as without a
// restart.
func (w *Watch) Restore(data []byte, now time.Time) error {
	if err := w.book.Restore(data, now); err != nil {
		return err
	}
	for _, e := range w.book.Episodes() {
		if l := recalled(e.Place, &e.Finding, now); l != nil {
			w.held[e.Place] = l
			continue
		}
		w.book.Drop(e)
	}
	return nil
}

func (w *Watch) order() []finding.Place {
	return slices.SortedFunc(maps.Keys(w.held), func(a, b finding.Place) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Name, b.Name))
	})
}

// copied returns lines that change no more.
func (l *series) copied() *series {
	c := *l
	c.hosts, c.ranks = slices.Clone(l.hosts), slices.Clone(l.ranks)
	return &c
}

// named adds a name to those of a series.
func named[T cmp.Ordered](l *series, to []T, name T) []T {
	at, there := slices.BinarySearch(to, name)
	switch {
	case there:
		return to
	case len(to) >= maxNamed:
		l.changed = l.changed || !l.more
		l.more = true
		return to
	}
	l.changed = true
	return slices.Insert(to, at, name)
}

// cut is the front of a line, as text, and a copy.
func cut(line string) string {
	return strings.Clone(strings.ToValidUTF8(line[:min(len(line), maxText)], "\uFFFD"))
}

// own are fields that do not keep the line alive.
func own(fields []Field) []Field {
	out := slices.Clone(fields)
	for i := range out {
		out[i].Value = cut(out[i].Value)
	}
	return out
}
