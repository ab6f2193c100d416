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
