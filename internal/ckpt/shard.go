// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/pickle"
	"github.com/lockstep-otel/lockstep/internal/torchsave"
)

// marker is the file that commits others, and how sure it is that it was written last.
type marker struct {
	name string
	mod  time.Time
	// reused: the folder may have held an earlier save, whose marker this could be. A shard
	// that was written in the marker's own tick of the clock may then be newer than it.
	reused bool
}

// newer reports whether a shard may have been written after the marker that commits it.
func (m *marker) newer(mod time.Time) bool {
	return mod.After(m.mod) || m.reused && mod.Equal(m.mod)
}

const (
	sparseOrLost  = "what was written there did not reach the disk, or the copy is sparse, which only its checksums tell"
	uncheckedHole = "it has no checksums that tell a sparse copy from data that did not reach the disk"
)

// shard opens a file of a domain and looks at what every format needs: that it is there, is
// at least so long, has no hole, and is not newer than the marker, if there is one. The
// caller closes what it gets; nil where it can not be read.
func (b *builder) shard(i int, name string, atLeast int64, m *marker) *file {
	f := b.sparse(i, name, atLeast, m)
	if f != nil {
		b.noHole(i, f, "what was written there did not reach the disk")
	}
	return f
}

// noHole says that a file with a hole is torn.
func (b *builder) noHole(i int, f *file, why string) {
	if off, found := f.hole(); found {
		b.torn(i, CheckTorn, f.path, "got no data at offset %d of %d; want it: %s", off, f.size, why)
	}
}

// sparse is shard for a file that may have holes: of one with checksums it can be told whether zeros
// that a sparse copy left out were there, or data was that never reached the disk.
func (b *builder) sparse(i int, name string, atLeast int64, m *marker) *file {
	f, err := b.open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if to := b.linkTo(name); to != "" {
			b.missing(i, CheckShards, name, "got a link to %s, which is not there; want the file", quote(to))
			return nil
		}
		b.missing(i, CheckShards, name, "got no such file; want it")
		return nil
	case errors.Is(err, errPointer):
		b.missing(i, CheckShards, name, "%v", err)
		return nil
	case err != nil:
		b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, name, err.Error()})
		return nil
	}
	b.save.wrote(f.mod)
	b.save.times = append(b.save.times, written{name, f.mod, f.size})
	if f.size < atLeast {
		b.torn(i, CheckSize, name, "got %d bytes; want at least %d", f.size, atLeast)
	}
	if m == nil {
		m = b.last
	}
	if m != nil && m.newer(f.mod) {
		b.notOlder([]int{i}, f, m, "commits it")
	}
	return f
}

// wrote notes when a file was written.
func (s *Save) wrote(at time.Time) {
	if s.FirstWrite.IsZero() || at.Before(s.FirstWrite) {
		s.FirstWrite = at
	}
	if at.After(s.lastWrite) {
		s.lastWrite = at
	}
}

// torch is an open file of torch.save with its value.
type torch struct {
	*torchsave.File
	m    *pickle.Machine
	root pickle.Value

	b      *builder // what it is read for
	domain int
	name   string
	told   bool // that a number could not be read
}

// torchShard reads a shard that torch.save wrote. It returns nil where its value can not be
// read, which is then noted.
func (b *builder) torchShard(i int, name string, m *marker) *torch {
	f := b.sparse(i, name, 1, m)
	if f == nil {
		return nil
	}
	defer f.close()
	return b.torchValue(i, name, f)
}

func (b *builder) torchValue(i int, name string, f *file) *torch {
	z, err := torchsave.Open(f, f.size)
	if err != nil {
		b.unread(i, CheckTorn, name, err)
		return nil
	}
	machine, root, err := z.Value(b.opt.Limits.Pickle)
	if err != nil {
		b.unread(i, CheckTorn, name, err)
		return nil
	}
	if err := z.Lost(); err != nil {
		b.unread(i, CheckTorn, name, err) // what epoch it is of is known all the same
	}
	b.checksums(i, f, z, func(err error) error { return err })
	t := &torch{File: z, m: machine, root: root, b: b, domain: i, name: name}
	t.savedAs()
	return t
}

// checksums compares those of a file of torch.save, or of one within a file, if they are to be. Where
// they are not, or there are none, a hole is a loss.
func (b *builder) checksums(i int, f *file, z *torchsave.File, of func(error) error) {
	if !b.opt.Verify {
		b.noHole(i, f, sparseOrLost)
		return
	}
	switch unchecked, err := z.Verify(); {
	case err != nil:
		b.unread(i, CheckTorn, f.path, of(err))
	case unchecked > 0:
		b.noHole(i, f, uncheckedHole)
	}
}

// number follows keys into the value, and returns the whole number there.
func (t *torch) number(keys ...string) (int64, bool) {
	v, ok := t.get(keys...)
	if !ok {
		return 0, false
	}
	return t.read(v)
}

// read reads a whole number. That one is there and can not be read makes its domain doubtful: it
// may say that the domain is of another epoch.
func (t *torch) read(v pickle.Value) (int64, bool) {
	n, ok := t.Number(t.m, v)
	if err := t.Err(); err != nil && !t.told {
		t.told = true
		check, severity := t.b.beyond(CheckWitness, Unreadable, err)
		t.b.doubt(t.domain, model.DomainTentative, Problem{check, severity, t.name, err.Error()})
	}
	return n, ok
}

func (t *torch) get(keys ...string) (pickle.Value, bool) {
	v := t.root
	for _, k := range keys {
		var ok bool
		if v, ok = t.m.Get(v, k); !ok {
			return v, false
		}
	}
	return v, true
}

// hasOptimizer reports whether there is something under the key "optimizer".
func (t *torch) hasOptimizer() bool {
	v, ok := t.get("optimizer")
	return ok && t.holds(v)
}

// maxEmpty is how deep boxes within boxes are looked into for something.
const maxEmpty = 8

// holds reports whether a value is state of an optimizer, or of several: neither None nor an empty box, nor a box of
// nothing but such. One that has made no step, or keeps none, has groups of parameters.
func (t *torch) holds(v pickle.Value) bool { return t.holdsWithin(v, maxEmpty) }

func (t *torch) holdsWithin(v pickle.Value, depth int) bool {
	step := 1
	switch v.Kind() {
	case pickle.None:
		return false
	case pickle.Object:
		switch c := t.m.Contents(v); {
		case c.Kind() == pickle.Dict && t.m.State(v).Kind() == pickle.None:
			return t.holdsWithin(c, depth)
		case t.m.Is(v, "collections", "OrderedDict"):
			return slices.ContainsFunc(t.m.Args(v), func(a pickle.Value) bool { return t.holdsWithin(a, depth) })
		}
		return true
	case pickle.Dict:
		step = 2
	case pickle.List, pickle.Tuple:
	default:
		return true
	}
	items := t.m.Items(v)
	for k := step - 1; k < len(items); k += step {
		if depth == 0 || t.holdsWithin(items[k], depth-1) {
			return true
		}
	}
	return false
}

// wantOptimizer doubts a file that was read, and has no state of an optimizer in the value that is to be one.
func (t *torch) wantOptimizer(v pickle.Value, ok bool) {
	if !ok || !t.holds(v) {
		t.b.torn(t.domain, CheckShards, t.name, "got no optimizer; want its state: a resume needs it")
	}
}
