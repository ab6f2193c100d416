// SPDX-License-Identifier: Apache-2.0

package ocdbt

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// Ref is a part of a file that the database needs.
type Ref struct {
	File           string // slash-separated, relative to the database's folder
	Offset, Length int64  // bytes
}

// Source opens a file of the database by its name relative to the database's folder. What it
// returns is asked for whole nodes.
type Source func(name string) (r io.ReaderAt, size int64, err error)

// Manifest is the file that names the newest tree.
const Manifest = "manifest.ocdbt"

// ErrLimit says that a database has more of something than Limits allow.
var ErrLimit = errors.New("larger than what is read of one")

// Limits bound a walk. Zero limits mean the defaults.
type Limits struct {
	Nodes int   // 1,000,000: a database of 100 million keys
	Refs  int   // 16 million
	Node  int64 // bytes of one: 64 MiB
}

func (l Limits) or() Limits {
	if l.Nodes <= 0 {
		l.Nodes = 1_000_000
	}
	if l.Refs <= 0 {
		l.Refs = 16 << 20
	}
	if l.Node <= 0 {
		l.Node = 64 << 20
	}
	return l
}

// maxHeight bounds a tree: with two entries in each node it has more keys than there are.
const maxHeight = 64

// Walk calls visit for everything that the newest tree needs: its nodes, and values that do
// not lie in nodes. A node that is torn or not there is an error, which names it.
func Walk(open Source, l Limits, visit func(Ref) error) error {
	w := &walker{open: open, limits: l.or(), visit: visit}
	b, err := w.read(Ref{File: Manifest, Length: -1})
	if err != nil {
		return fmt.Errorf("read %s: %w", Manifest, err)
	}
	root, height, err := newest(b)
	if err != nil {
		return fmt.Errorf("read %s: %w", Manifest, err)
	}
	if root.Length == 0 {
		return nil
	}
	return w.node(root, height)
}

type walker struct {
	open        Source
	limits      Limits
	visit       func(Ref) error
	nodes, refs int
}

// read reads a part of a file, the whole of it where Length is below 0.
func (w *walker) read(ref Ref) ([]byte, error) {
	r, size, err := w.open(ref.File)
	if err != nil {
		return nil, err
	}
	if ref.Length < 0 {
		ref.Length = size
	}
	if ref.Offset > size || ref.Length > size-ref.Offset {
		return nil, fmt.Errorf("got a file of %d bytes; want %d at %d", size, ref.Length, ref.Offset)
	}
	if ref.Length > w.limits.Node {
		return nil, fmt.Errorf("got %d bytes; want at most %d: %w", ref.Length, w.limits.Node, ErrLimit)
	}
	b := make([]byte, ref.Length)
	if n, err := r.ReadAt(b, ref.Offset); err != nil && (!errors.Is(err, io.EOF) || n < len(b)) {
		return nil, err
	}
	return b, nil
}

// newest returns the root of the newest version in a manifest.
func newest(b []byte) (place, int, error) {
	data, err := body(b, manifestMagic)
	if err != nil {
		return place{}, 0, err
	}
	r := &reader{b: data}
	r.bytes(16) // the database's id
	if kind := r.varint(); kind != 0 && r.err == nil {
		return place{}, 0, fmt.Errorf("got a manifest of kind %d; want 0, of which there is one", kind)
	}
	r.varint() // greatest length of a value within a node
	r.varint() // and of a node
	r.byte()   // logarithm of the arity of the tree of versions
	if r.varint() == 1 {
		r.bytes(4) // level of zstd
	}
	files := r.files("")
	n := r.count()
	if n == 0 && r.err == nil {
		return place{}, 0, nil
	}
	r.varints(n) // numbers of versions
	heights := r.bytes(uint64(n))
	id, offset, length := r.varints(n), r.varints(n), r.varints(n)
	if r.err != nil {
		return place{}, 0, r.err
	}
	last := n - 1
	if offset[last] == math.MaxUint64 && length[last] == math.MaxUint64 { // there is no key
		return place{}, 0, nil
	}
	roots := r.places(files, id[last:], offset[last:], length[last:])
	return roots[0], int(heights[last]), r.err
}

// dataFile is a file that a block names. Files that are named in it are relative to its base.
type dataFile struct{ base, rest string }

// place is a part of a file, and what names in it are relative to.
type place struct {
	Ref
	base string
}

// files reads a table of files, with what the block itself is relative to before them.
func (r *reader) files(base string) []dataFile {
	n := r.count()
	shared := r.varints(max(n-1, 0))
	rest := r.varints(n)
	bases := r.varints(n)
	out := make([]dataFile, 0, len(rest))
	path := ""
	for i := range rest {
		keep := uint64(0)
		if i > 0 {
			keep = shared[i-1]
		}
		if r.err != nil || keep > uint64(len(path)) {
			r.fail(errors.New("got a path that shares more than the one before has"))
			return nil
		}
		const maxPath = 4096 // of Linux
		path = path[:keep] + string(r.bytes(rest[i]))
		if len(path) > maxPath || bases[i] > uint64(len(path)) {
			r.fail(fmt.Errorf("got a path of %d bytes with a base of %d; want at most %d", len(path), bases[i], maxPath))
			return nil
		}
		out = append(out, dataFile{base + path[:bases[i]], path[bases[i]:]})
	}
	return out
}

// refs reads where n things lie: files, offsets, lengths.
func (r *reader) refs(files []dataFile, n int) []place {
	id, offset := r.varints(n), r.varints(n)
	return r.places(files, id, offset, r.varints(n))
}

func (r *reader) places(files []dataFile, id, offset, length []uint64) []place {
	out := make([]place, len(length))
	for i := range out {
		if r.err == nil && (id[i] >= uint64(len(files)) || offset[i] > 1<<62 || length[i] > 1<<62) {
			r.fail(fmt.Errorf("got file %d at %d with %d bytes; want one of %d files", id[i], offset[i], length[i], len(files)))
		}
		if r.err != nil {
			return out
		}
		f := files[id[i]]
		out[i] = place{Ref{f.base + f.rest, int64(offset[i]), int64(length[i])}, f.base}
	}
	return out
}
