// SPDX-License-Identifier: Apache-2.0

package ocdbt

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// database is a folder in memory.
type database map[string][]byte

func (d database) open(name string) (io.ReaderAt, int64, error) {
	b, ok := d[name]
	if !ok {
		return nil, 0, fs.ErrNotExist
	}
	return bytes.NewReader(b), int64(len(b)), nil
}

func (d database) walk(l Limits) (refs []Ref, err error) {
	err = Walk(d.open, l, func(r Ref) error {
		b, ok := d[r.File]
		if !ok || r.Offset+r.Length > int64(len(b)) {
			return errors.New("not there")
		}
		refs = append(refs, r)
		return nil
	})
	return refs, err
}

// golden reads a database that TensorStore wrote; testdata/make.py says what is in it.
func golden(tb testing.TB, name string) database {
	tb.Helper()
	d := database{}
	root := filepath.Join("testdata", name)
	require.NoError(tb, filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(root, p)
		d[filepath.ToSlash(rel)] = b
		return err
	}))
	return d
}

// TestSmall: the newest of two versions is one node, beside the value of 2,000 bytes in one
// file. The node of the version before lies in the other, which nothing needs.
func TestSmall(t *testing.T) {
	refs, err := golden(t, "small").walk(Limits{})
	require.NoError(t, err)
	require.Len(t, refs, 2)
	require.Equal(t, refs[0].File, refs[1].File)
	require.EqualValues(t, 2000, refs[1].Length)
}

// TestDeep: a tree of several levels over 60 values of 20 bytes.
func TestDeep(t *testing.T) {
	d := golden(t, "deep")
	refs, err := d.walk(Limits{})
	require.NoError(t, err)
	values, nodes, total := 0, 0, int64(0)
	for _, r := range refs {
		total += r.Length
		if r.Length == 20 {
			values++
		} else {
			nodes++
		}
	}
	require.Equal(t, 60, values)
	require.Greater(t, nodes, 4)
	for name, b := range d {
		if name != Manifest {
			require.EqualValues(t, len(b), total, "one transaction: all that was written is needed")
		}
	}
}

// TestNothingMayBeMissing: without any file that the tree needs, with any byte of a node or of
// the manifest another one, or with a file cut, the walk fails.
func TestNothingMayBeMissing(t *testing.T) {
	for _, name := range []string{"small", "deep"} {
		whole := golden(t, name)
		refs, err := whole.walk(Limits{})
		require.NoError(t, err)
		needed := map[string]int64{Manifest: int64(len(whole[Manifest]))}
		for _, r := range refs {
			needed[r.File] = max(needed[r.File], r.Offset+r.Length)
		}
		for file, end := range needed {
			d := golden(t, name)
			delete(d, file)
			_, err := d.walk(Limits{})
			require.Error(t, err, "%s: %s is missing", name, file)
			d[file] = whole[file][:end-1]
			_, err = d.walk(Limits{})
			require.Error(t, err, "%s: %s is cut", name, file)
		}
		nodes := []Ref{{Manifest, 0, int64(len(whole[Manifest]))}}
		for _, r := range refs {
			if r.Length != 20 && r.Length != 2000 {
				nodes = append(nodes, r)
			}
		}
		for _, n := range nodes {
			for i := n.Offset; i < n.Offset+n.Length; i++ {
				d := golden(t, name)
				d[n.File][i] ^= 0x55
				_, err := d.walk(Limits{})
				require.Error(t, err, "%s: byte %d of %s", name, i, n.File)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	for _, l := range []Limits{{Nodes: 2}, {Refs: 10}, {Node: 100}} {
		_, err := golden(t, "deep").walk(l)
		require.ErrorIs(t, err, ErrLimit)
		require.ErrorContains(t, err, "want at most")
	}
}

// FuzzNewest and FuzzEntries read bodies whose checksums are right.
func FuzzNewest(f *testing.F) {
	for _, name := range []string{"small", "deep"} {
		f.Add(golden(f, name)[Manifest])
	}
	f.Fuzz(func(_ *testing.T, b []byte) { _, _, _ = newest(b) })
}

func FuzzEntries(f *testing.F) {
	for _, b := range golden(f, "deep") {
		f.Add(b, 0)
		f.Add(b, 1)
	}
	f.Fuzz(func(t *testing.T, b []byte, height int) {
		children, values, err := entries(b, height, "")
		if err == nil {
			require.LessOrEqual(t, len(children)+len(values), len(b))
		}
	})
}
