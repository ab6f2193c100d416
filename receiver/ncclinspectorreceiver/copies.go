// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"slices"

	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/regular"
)

// undecided reports whether a file that is new is so short that it may become a copy of
// one that is read: it is looked at again. What it holds now was read already.
func (rd *reader) undecided(head []byte) bool {
	if len(head) == 0 {
		return true
	}
	return slices.ContainsFunc(rd.files, func(f *file) bool {
		return begins(f.head, head) || (f.before != nil && begins(f.before.Head, head))
	})
}

// isCopy reports whether a file that is new is a copy of one that is read, as a tool
// makes before it cuts the file to nothing. Where that was cut already, what the copy
// has more than was read is read of it.
func (rd *reader) isCopy(c *file) bool {
	for _, f := range rd.files {
		if f.before != nil && same(f.before.Head, c.head) {
			rd.readCopy(f, c)
			return true
		}
		if same(f.head, c.head) {
			return true
		}
	}
	return false
}

// readCopy reads the end of a copy in the place of what was cut away.
func (rd *reader) readCopy(f, c *file) {
	anew := f.place()
	f.goTo(f.before, rd.cfg.MaxLineBytes)
	f.before, f.torn, f.changed = nil, 0, true
	for more := true; more; {
		var err error
		if more, err = rd.feed(f, c.f); err != nil {
			rd.log.Warn("Copy of a file not read", zap.String("file", c.path), zap.Error(err))
		}
	}
	if rd.told() { // the next run reads on
		left := f.place()
		f.before, f.torn = &left, f.split.Pending()
	} else {
		rd.cut(f)
	}
	f.goTo(&anew, rd.cfg.MaxLineBytes)
}

// truncated begins a file anew that was cut to nothing. Its process may be the same.
func (rd *reader) truncated(f *file, head []byte) {
	rd.odd("truncated", 1)
	rd.log.Info("File cut and begun anew", zap.String("file", f.path))
	rd.giveUp(f)
	p := f.place()
	f.before, f.torn, f.changed, f.closed = &p, f.split.Pending(), true, false
	f.goTo(&place{Head: head}, rd.cfg.MaxLineBytes)
	for path := range rd.copies {
		if rd.tryCopy(f, path) {
			return
		}
	}
}

// tryCopy reads the end of a copy that was there before the file was cut.
func (rd *reader) tryCopy(f *file, path string) bool {
	at, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = at.Close() }() // it was only read
	c := &file{path: path, f: at}
	if c.head, err = readHead(at); err != nil || !same(f.before.Head, c.head) {
		return false
	}
	rd.readCopy(f, c)
	return true
}

// giveUp stops waiting for a copy of what was cut away.
func (rd *reader) giveUp(f *file) {
	if f.before != nil {
		rd.cutAt(f, f.before.Split.Place, f.torn)
	}
	f.before, f.torn = nil, 0
}
