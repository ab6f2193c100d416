// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// tracker is a file that names the save which a resume takes.
type tracker struct {
	file   string // relative to the root
	there  bool
	link   string                // what it leads to, of a link that leads nowhere
	text   string                // without white space around it
	epoch  model.Optional[int64] // unknown where the text names none
	err    error
	check  Check // that err breaks
	weight Severity
	mod    time.Time
}

// tracker reads a tracker; epochOf reads the epoch out of its text.
func (s *scan) tracker(f *folder, name string, epochOf func(string) (int64, bool)) *tracker {
	t := &tracker{file: f.join(name)}
	text, err := s.text(t.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.link = s.linkTo(t.file)
		return t
	case err != nil:
		t.err = err
	default:
		t.text = strings.TrimSpace(text)
		n, ok := epochOf(t.text)
		t.epoch = some(n, ok)
		if !ok {
			t.err = fmt.Errorf("got %s; want the name of a save", quote(t.text))
		}
	}
	t.there = true
	if info, err := fs.Stat(s.fsys, t.file); err == nil {
		t.mod = info.ModTime()
	}
	if t.err != nil {
		t.check, t.weight = s.beyond(CheckTracker, Partial, t.err)
		s.problem(nil, Problem{t.check, t.weight, t.file, t.err.Error()})
	}
	return t
}

// resume is what a loader takes that goes by the tracker: path is what it names.
func (t *tracker) resume(s *scan, path, want string) Resume {
	r := Resume{By: t.file}
	if t.there && t.err == nil {
		r.Path, r.Epoch = path, t.epoch
	}
	want = "; want one line with " + want + " that is there"
	switch {
	case t.link != "":
		r.Lost = t.file + " is a link to " + quote(t.link) + ", which is not there" + want
	case !t.there:
		r.Lost = t.file + " is not there" + want
	case t.check == CheckInput:
		r.Lost = t.file + ": " + t.err.Error()
	case t.text == "":
		r.Lost = t.file + " is empty" + want
	case t.err != nil:
		r.Lost = t.file + " holds " + quote(t.text) + want
	case !s.exists(path):
		r.Lost = t.file + " names " + quote(t.text) + ", which is not there" + want
	}
	return r
}

// exists reports whether there may be something at a path.
func (s *scan) exists(path string) bool {
	_, err := fs.Stat(s.fsys, path)
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid)
}

// linkTo is what a link leads to; "" of anything else.
func (s *scan) linkTo(name string) string {
	d, ok := s.fsys.(interface {
		ReadLink(name string) (string, error)
	})
	if !ok {
		return ""
	}
	to, err := d.ReadLink(name)
	if err != nil {
		return ""
	}
	return to
}

// point says of a save what the tracker says: it names this save or a later one, or not yet.
func (b *builder) point(t *tracker) {
	i := b.domain(model.DomainTracker, t.file, t.file)
	switch {
	case !t.there:
		b.missing(i, CheckTracker, t.file, "got no tracker; want one that names this save")
	case t.err != nil:
		b.doubt(i, model.DomainTentative, Problem{t.check, t.weight, t.file, t.err.Error()})
	case t.epoch.V < b.save.Epoch.V:
		b.doubt(i, model.DomainTentative, Problem{CheckLag, Suspect, t.file, fmt.Sprintf("got %s; want this save or a later one: it is not published", quote(t.text))})
	}
}
