// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// count counts windows of one clock and class until a finding opens, and until it closes.
type count struct {
	// Wrong and Clean count windows in a row, Wrong up to what the class needs.
	Wrong, Clean int
	First        int64     // what the first wrong window observed, as firstOf returns it
	Size         float64   // of what is wrong, at the last report
	Reported     time.Time // when

	open *finding.Episode[struct{}] // nil: no finding is open
}

type countKey struct{ Class, Clock string }

// place is what the finding is about. A class has no space in its name.
func (k countKey) place() finding.Place { return finding.Place{Name: k.Class + " " + k.Clock} }

// keyOf returns the clock and class of a place; false where the place has none.
func keyOf(p finding.Place) (countKey, bool) {
	class, clock, _ := strings.Cut(p.Name, " ")
	k := countKey{class, clock}
	return k, needed[class] > 0 && k.place() == p
}

func (k countKey) compare(o countKey) int {
	return cmp.Or(cmp.Compare(k.Class, o.Class), cmp.Compare(k.Clock, o.Clock))
}

const (
	// cleanWindows end an episode: one alone may have missed what the next shows.
	cleanWindows = 3
	// repeatAfter is how often an open finding is repeated, well within the ten minutes
	// after which the findings connector closes one that is not repeated.
	repeatAfter = 3 * time.Minute
	// muchMore is by which factor something must change to be reported at once.
	muchMore = 2
	// certain: bounds are hard, and wrong only where stamps are.
	certain = 0.95
	// firstWithin is how much of a clock's own time counts as the beginning of a finding.
	firstWithin = time.Minute
)

// needed windows in a row begin an episode. A step is over with its window, and to
// be untrusted is decided over several neighbours.
var needed = map[string]int{model.ClassSkew: 2, model.ClassDrift: 2, model.ClassStep: 1, model.ClassUntrusted: 1}

// newBook has room for each class of each clock.
func newBook(opt *Options) *finding.Book[struct{}] {
	return finding.New[struct{}](finding.Config{MaxOpen: len(classes) * opt.MaxClocks, MaxBytes: math.MaxInt})
}

// firstOf is what the clock's last window observed, to name a finding that begins with it: the
// minute of the clock's own readings in which the window ends. Two gateways that receive the same
// edges compute the same minute, whenever they tick. Where a reading is placed on the timeline
// depends on when the gateway solved, and which spans it placed before. The exact end of a window
// depends on which edges came before the tick: by nanoseconds, as it is computed through other
// clocks, and by a window of 2 s where some edges come after one tick and before the other.
func firstOf(tr *track) int64 {
	until := tr.last().last().until
	return until - until%firstWithin.Nanoseconds()
}

// follow advances the episode of one clock and class by a window.
func (w *watch) follow(key countKey, f *fault, tr *track, now time.Time) {
	c := w.counts[key]
	if f == nil {
		w.clean(key, c, now)
		return
	}
	if c == nil {
		c = &count{}
		w.counts[key] = c
	}
	if c.Wrong == 0 && c.open == nil {
		c.First = firstOf(tr)
	}
	c.Wrong, c.Clean = min(c.Wrong+1, needed[key.Class]), 0
	if c.Wrong < needed[key.Class] {
		return
	}
	if c.open != nil && now.Sub(c.Reported) < repeatAfter && f.size < c.Size*muchMore && f.size > c.Size/muchMore {
		w.book.Confirm(c.open, now)
		return
	}
	if c.open = w.book.Found(key.place(), c.First, f.finding(key, tr, now), now); c.open != nil {
		c.Size, c.Reported = f.size, now
	}
}

func (w *watch) clean(key countKey, c *count, now time.Time) {
	if c == nil {
		return
	}
	c.Wrong = 0
	if c.Clean++; c.Clean < cleanWindows && c.open != nil {
		return
	}
	w.end(key, c, now)
}

// end drops a count, and closes its finding.
func (w *watch) end(key countKey, c *count, now time.Time) {
	delete(w.counts, key)
	if c.open != nil {
		w.book.Close(c.open, max(c.open.Finding.Time, now.UnixNano()))
	}
}

// forget ends the episodes of clocks that are forgotten.
func (w *watch) forget(t *Timeline, now time.Time) {
	for id := range w.seen {
		if t.tracks[id] == nil {
			delete(w.seen, id)
		}
	}
	var gone []countKey
	for key := range w.counts {
		if t.tracks[key.Clock] == nil {
			gone = append(gone, key)
		}
	}
	slices.SortFunc(gone, countKey.compare)
	for _, key := range gone {
		w.end(key, w.counts[key], now)
	}
}

// finding returns a fault as a finding.
func (f *fault) finding(key countKey, tr *track, now time.Time) *model.Finding {
	severity := model.SeverityInfo
	if key.Class == model.ClassUntrusted {
		severity = model.SeverityWarn
	}
	return &model.Finding{
		Time: now.UnixNano(), Start: now.UnixNano(), Severity: severity, Kind: model.FindingClock, Class: key.Class,
		Clock: key.Clock, Host: tr.name.host, Confidence: certain, Action: f.action, Evidence: &f.evidence,
	}
}

// savedCount is the form of a count in a snapshot.
type savedCount struct {
	Class    string  `json:"class"`
	Clock    string  `json:"clock"`
	Wrong    int     `json:"wrong"`
	Clean    int     `json:"clean"`
	First    int64   `json:"first"`
	Size     float64 `json:"size"`
	Reported int64   `json:"reported_unix_nano"`
}

// save writes findings and counts into a snapshot. The caller holds solving.
func (w *watch) save(s *snapshot) (err error) {
	for _, key := range slices.SortedFunc(maps.Keys(w.counts), countKey.compare) {
		c := w.counts[key]
		s.Counts = append(s.Counts, savedCount{key.Class, key.Clock, c.Wrong, c.Clean, c.First, c.Size, c.Reported.UnixNano()})
	}
	s.Findings, err = w.book.Snapshot()
	return err
}

// restore reads findings and counts of a snapshot. Those of version 1 had another form and are left
// out. Findings of clocks that are not known any more are closed with the next look.
func (w *watch) restore(s *snapshot, now time.Time) error {
	if s.Version == versionWithoutBook {
		return nil
	}
	if err := w.book.Restore(s.Findings, now); err != nil {
		return err
	}
	for _, c := range s.Counts {
		if most := needed[c.Class]; most > 0 {
			w.counts[countKey{c.Class, c.Clock}] = &count{
				Wrong: max(0, min(c.Wrong, most)), Clean: max(0, min(c.Clean, cleanWindows)),
				First: c.First, Size: c.Size, Reported: time.Unix(0, c.Reported),
			}
		}
	}
	for _, e := range w.book.Episodes() {
		key, ok := keyOf(e.Place)
		if !ok {
			w.book.Drop(e)
			continue
		}
		if w.counts[key] == nil {
			w.counts[key] = &count{Wrong: needed[key.Class]}
		}
		w.counts[key].open = e
		w.book.Report(e, false, false) // it may not have been sent: it is repeated only after repeatAfter
	}
	return nil
}
