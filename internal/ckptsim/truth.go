// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"bytes"
	"io/fs"
	"slices"
)

// Truth is what a state holds of one save.
type Truth uint8

// Truths.
const (
	Nothing Truth = iota // no part of the save is there
	Partial              // some parts are not there, or not whole
	Mixed                // some parts are whole parts of other saves
	Whole                // all parts are there, and of this save
)

// String names the truth.
func (t Truth) String() string { return [...]string{"nothing", "partial", "mixed", "whole"}[t] }

// Truth compares what the state holds with the bytes of the save. Others are the saves which
// may have left parts under the same names.
func (s *State) Truth(of *Save, others []*Save) Truth {
	return of.truth(s.Bytes, others)
}

// TruthIn compares what a file system holds with the bytes of the save.
func TruthIn(fsys fs.FS, of *Save, others []*Save) Truth {
	return of.truth(func(name string) ([]byte, bool) { return readFile(fsys, name) }, others)
}

func readFile(fsys fs.FS, name string) ([]byte, bool) {
	b, err := fs.ReadFile(fsys, name)
	return b, err == nil
}

func (s *Save) truth(read func(string) ([]byte, bool), others []*Save) Truth {
	whole, foreign, there := 0, false, false
	for name, want := range s.Files {
		got, ok := read(name)
		switch {
		case !ok:
			continue
		case bytes.Equal(got, want):
			whole++
		case isOf(others, name, got):
			foreign = true
		}
		there = true
	}
	switch {
	case whole == len(s.Files):
		return Whole
	case foreign:
		return Mixed
	case there:
		return Partial
	}
	return Nothing
}

func isOf(saves []*Save, name string, got []byte) bool {
	return slices.ContainsFunc(saves, func(s *Save) bool {
		want, ok := s.Files[name]
		return ok && bytes.Equal(got, want)
	})
}

// Published reports whether nothing says that the save is under way, and its trackers name it
// or a later one. Only such a save may be called converged.
func (s *State) Published(of *Save, all []*Save) bool { return of.published(s.Bytes, all) }

// PublishedIn does so for a file system.
func PublishedIn(fsys fs.FS, of *Save, all []*Save) bool {
	return of.published(func(name string) ([]byte, bool) { return readFile(fsys, name) }, all)
}

func (s *Save) published(read func(string) ([]byte, bool), all []*Save) bool {
	for _, name := range s.Gone {
		if _, there := read(name); there {
			return false
		}
	}
	for name := range s.Trackers {
		got, ok := read(name)
		if !ok || !slices.ContainsFunc(all, func(o *Save) bool {
			return o.Epoch >= s.Epoch && bytes.Equal(got, o.Trackers[name])
		}) {
			return false
		}
	}
	return true
}

// Finished reports whether a state is as it is after the save, or after a later one: the save
// is whole with all that lies beside it, and published. Each such save must be called
// converged.
func (s *State) Finished(of *Save, all []*Save) bool {
	// Zeros that never came are read as if they had: such a file is not finished all the same.
	return of.finished(func(name string) ([]byte, bool) {
		f, ok := s.find(name)
		if !ok || f.dir || f.hole() < int64(len(f.data)) {
			return nil, false
		}
		return f.data, true
	}, all)
}

// FinishedIn does so for a file system.
func FinishedIn(fsys fs.FS, of *Save, all []*Save) bool {
	return of.finished(func(name string) ([]byte, bool) { return readFile(fsys, name) }, all)
}

func (s *Save) finished(read func(string) ([]byte, bool), all []*Save) bool {
	for name, want := range s.Side {
		if got, ok := read(name); !ok || !bytes.Equal(got, want) {
			return false
		}
	}
	return s.truth(read, nil) == Whole && s.published(read, all)
}
