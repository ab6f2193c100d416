// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"fmt"
	"math/rand/v2"
)

// OpKind is what an operation does.
type OpKind uint8

// Operations on files. Create truncates what is there, as open(path, "w") does.
const (
	Mkdir OpKind = iota
	Create
	Write // at an offset of the file that the same rank created last under that path
	Fsync
	Rename
	Remove // a file, or an empty folder
	FsyncDir
	Barrier // waits for every rank of the save
)

// String names the kind.
func (k OpKind) String() string {
	return [...]string{"mkdir", "create", "write", "fsync", "rename", "remove", "fsync folder", "barrier"}[k]
}

// Op is one operation of one rank.
type Op struct {
	Kind   OpKind
	Path   string // slash-separated, relative to the root
	To     string // of Rename
	Offset int64
	Data   []byte
	Maybe  bool // of Remove: nothing is amiss where the file is not there
}

// String shows an operation in a line.
func (o Op) String() string {
	switch o.Kind {
	case Rename:
		return fmt.Sprintf("rename %s to %s", o.Path, o.To)
	case Write:
		return fmt.Sprintf("write %s [%d,%d)", o.Path, o.Offset, o.Offset+int64(len(o.Data)))
	}
	return o.Kind.String() + " " + o.Path
}

// Save is what one save of a job does, and what it leaves when it is done.
type Save struct {
	Epoch int64
	// Attempt tells saves of one epoch apart: a job that resumed from an earlier epoch comes to
	// this one again, with other numbers.
	Attempt int64
	Dir     string // where its parts lie, relative to the root
	Ranks   [][]Op
	// Files are the parts of the save: all of them, whole, make the save whole.
	Files map[string][]byte
	// Side are files that a resume can do without, or makes anew.
	Side map[string][]byte
	// Gone are markers whose presence says that the save is not finished.
	Gone []string
	// Trackers are the pointers that a finished save has set. A later save sets them anew.
	Trackers map[string][]byte
}

// rank records what one rank of a save does.
type rank struct {
	save *Save
	n    int
	cuts *rand.Rand
}

func newSave(epoch int64, dir string, world int) *Save {
	return &Save{Epoch: epoch, Dir: dir, Ranks: make([][]Op, world), Files: map[string][]byte{}, Side: map[string][]byte{}, Trackers: map[string][]byte{}}
}

// seed is what the numbers of a save come from.
func (s *Save) seed() int64 { return s.Epoch + s.Attempt<<32 }

func (s *Save) rank(n int) rank {
	// Where a file is cut into writes is the same each time that the save is made.
	return rank{s, n, rand.New(rand.NewPCG(uint64(s.Epoch), uint64(n)))} //nolint:gosec // a seed, no secret
}

// each has every rank do something.
func (s *Save) each(do func(r rank)) {
	for n := range s.Ranks {
		do(s.rank(n))
	}
}

func (s *Save) barrier() { s.each(func(r rank) { r.do(Op{Kind: Barrier}) }) }

func (r rank) do(op Op)            { r.save.Ranks[r.n] = append(r.save.Ranks[r.n], op) }
func (r rank) fsync(path string)   { r.do(Op{Kind: Fsync, Path: path}) }
func (r rank) remove(path string)  { r.do(Op{Kind: Remove, Path: path}) }
func (r rank) rename(a, to string) { r.do(Op{Kind: Rename, Path: a, To: to}) }

func (r rank) mkdir(path string) {
	if path != "." { // the root is there
		r.do(Op{Kind: Mkdir, Path: path})
	}
}

// scratch writes a file that is no part of the save.
func (r rank) scratch(path string, data []byte) {
	r.do(Op{Kind: Create, Path: path})
	for at := 0; at < len(data); {
		n := min(len(data)-at, 1+len(data)/4+r.cuts.IntN(1+len(data)/4))
		r.do(Op{Kind: Write, Path: path, Offset: int64(at), Data: data[at : at+n]})
		at += n
	}
}

// part writes a file of the save in place.
func (r rank) part(path string, data []byte) {
	r.scratch(path, data)
	r.save.Files[path] = data
}

// side writes a file beside the save, in place.
func (r rank) side(path string, data []byte) {
	r.scratch(path, data)
	r.save.Side[path] = data
}

// synced writes a file of the save in place, and waits for the disk.
func (r rank) synced(path string, data []byte) {
	r.part(path, data)
	r.fsync(path)
}

// point sets a tracker, in place.
func (r rank) point(path string, data []byte) {
	r.scratch(path, data)
	r.save.Trackers[path] = data
}
