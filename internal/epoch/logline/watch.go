// SPDX-License-Identifier: Apache-2.0

package logline

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
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
	// Silent is after how long without such a line an episode ends.
	Silent time.Duration
	// MaxEpisodes bounds the episodes that are open.
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
	Opened, Closed int64
	Withheld       int64 // lines for which there was no room
}

// maxNamed bounds the hosts and ranks that an episode names, and maxText the bytes of a line that it
// keeps.
const (
	maxNamed = 64
	maxText  = 512
)

// Episode is what lines of one pattern said of one job, or of one host, from the first to the end.
type Episode struct {
	Pattern       Pattern
	JobID         string // empty: it is of a host
	JobName       string
	Hosts         []string // names of those whose lines these are, in order, at most maxNamed
	Ranks         []int64  // that the lines say printed them, in order, at most maxNamed
	More          bool     // there are more hosts or ranks
	Text          string   // of the first line
	Fields        []Field  // of the first line
	Time          int64    // of the first line, Unix ns by its own clock; 0: it said none
	Absurd        bool     // all lines say what can not be
	Count         int64
	Began, Latest time.Time // when lines came
	Ended         time.Time // zero: it is open
	Revision      int64

	changed bool // since it was told
}

type key struct {
	pattern Pattern
	of      string
}

// Watch holds episodes. It is not safe for concurrent use. Times that it is given are of one clock,
// that of who uses it: those of lines decide nothing.
type Watch struct {
	cfg   Config
	open  map[key]*Episode
	stats Stats
}

// New returns a watch that has heard nothing.
func New(c Config) *Watch { return &Watch{cfg: c, open: map[key]*Episode{}} }

// Stats returns the counters.
func (w *Watch) Stats() Stats { return w.stats }

// ofHosts are the patterns of what one host runs, whichever job meets it.
var ofHosts = map[Pattern]bool{DriverAPI: true, DriverLibrary: true, FabricManager: true}

// Observe takes a line, and reports whether it is recognised.
func (w *Watch) Observe(l *Line, now time.Time) bool {
	h, ok := Recognise(l.Text)
	if !ok {
		return false
	}
	w.stats.Lines++
	k := key{h.Pattern, "job " + l.JobID}
	if l.JobID == "" || ofHosts[h.Pattern] {
		k.of = "host " + cmp.Or(l.HostID, l.Host)
	}
	e := w.open[k]
	if e == nil {
		if len(w.open) >= w.cfg.MaxEpisodes {
			w.stats.Withheld++
			return true
		}
		e = &Episode{Pattern: h.Pattern, Text: cut(l.Text), Fields: own(h.Fields), Time: l.Time, Began: now, Absurd: true, changed: true}
		if !ofHosts[h.Pattern] {
			e.JobID, e.JobName = strings.Clone(l.JobID), strings.Clone(l.JobName)
		}
		w.open[k] = e
		w.stats.Opened++
	}
	e.Latest = now
	e.changed = e.changed || e.Absurd && !h.Absurd
	e.Absurd = e.Absurd && h.Absurd
	e.Count++
	if name := cmp.Or(l.Host, l.HostID); name != "" {
		e.Hosts = named(e, e.Hosts, strings.Clone(name))
	}
	if h.Rank.OK {
		e.Ranks = named(e, e.Ranks, h.Rank.V)
	}
	return true
}

// Tick returns the episodes that were opened, updated or closed since.
func (w *Watch) Tick(now time.Time) (out []Episode) {
	for _, k := range w.order() {
		e := w.open[k]
		ended := now.Sub(e.Latest) >= w.cfg.Silent
		if !ended && !e.changed {
			continue
		}
		if ended {
			e.Ended = now
			delete(w.open, k)
			w.stats.Closed++
		}
		e.changed = false
		e.Revision++
		out = append(out, e.copied())
	}
	return out
}

// Standing returns the episodes that are open, and were told.
func (w *Watch) Standing() (all []Episode) {
	for _, k := range w.order() {
		if e := w.open[k]; e.Revision > 0 {
			all = append(all, e.copied())
		}
	}
	return all
}

func (w *Watch) order() []key {
	return slices.SortedFunc(maps.Keys(w.open), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.of, b.of), cmp.Compare(a.pattern, b.pattern))
	})
}

// copied is an episode that changes no more.
func (e *Episode) copied() Episode {
	c := *e
	c.Hosts, c.Ranks = slices.Clone(e.Hosts), slices.Clone(e.Ranks)
	return c
}

// named adds a name to those of an episode.
func named[T cmp.Ordered](e *Episode, to []T, name T) []T {
	at, there := slices.BinarySearch(to, name)
	switch {
	case there:
		return to
	case len(to) >= maxNamed:
		e.changed = e.changed || !e.More
		e.More = true
		return to
	}
	e.changed = true
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
