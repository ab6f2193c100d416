// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckptsim"
)

// entry is a file or a folder of a tree.
type entry struct {
	path     string // relative to the folder of the tree
	dir      bool
	data     []byte
	modified time.Time
}

// made holds the saves that saves has made, a func() ([]entry, error) for each name and epochs.
var made sync.Map

// saves returns a folder with whole saves of a job of some format. Each is made once, which takes
// as long as the clock of the file system needs between its phases; its copies have its times.
func saves(t *testing.T, name string, epochs ...int64) string {
	t.Helper()
	of, _ := made.LoadOrStore(fmt.Sprint(name, epochs), sync.OnceValues(func() ([]entry, error) {
		dir := t.TempDir()
		makeSaves(t, dir, name, epochs)
		return readTree(dir)
	}))
	tree, err := of.(func() ([]entry, error))()
	require.NoError(t, err)
	require.NotEmpty(t, tree, "saves of %s", name)
	dir := t.TempDir()
	writeTree(t, dir, tree)
	return dir
}

func makeSaves(t *testing.T, dir, name string, epochs []int64) {
	t.Helper()
	for _, job := range ckptsim.Jobs() {
		if job.Name != name {
			continue
		}
		for _, e := range epochs {
			require.NoError(t, job.Save(e, nil).Make(t.Context(), dir, func(op ckptsim.Op) { awaitPhase(t, dir, op) }))
		}
		return
	}
	require.Fail(t, "no such job", name)
}

// readTree lists a folder, each folder before what it holds.
func readTree(root string) (tree []entry, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		e := entry{dir: d.IsDir(), modified: info.ModTime()}
		if e.path, err = filepath.Rel(root, path); err == nil && !e.dir {
			e.data, err = os.ReadFile(path)
		}
		tree = append(tree, e)
		return err
	})
	return tree, err
}

func writeTree(t *testing.T, root string, tree []entry) {
	t.Helper()
	for _, e := range tree {
		path := filepath.Join(root, e.path)
		if e.dir {
			require.NoError(t, os.Mkdir(path, 0o755))
		} else {
			require.NoError(t, os.WriteFile(path, e.data, 0o600))
		}
	}
	for _, e := range slices.Backward(tree) { // a folder after its files, which change its time
		require.NoError(t, os.Chtimes(filepath.Join(root, e.path), e.modified, e.modified))
	}
}

// inMemory holds what a folder holds, which reads faster.
func inMemory(t *testing.T, dir string) fs.FS {
	t.Helper()
	tree, err := readTree(dir)
	require.NoError(t, err)
	out := fstest.MapFS{}
	for _, e := range tree {
		if !e.dir {
			out[filepath.ToSlash(e.path)] = &fstest.MapFile{Data: e.data, Mode: 0o600, ModTime: e.modified}
		}
	}
	return out
}

// awaitPhase waits, where a save goes from one phase to the next, until the clock of the file system has moved
// on, as it does in real saves. It stands still for some milliseconds, for longer on a machine with much to do.
func awaitPhase(t *testing.T, dir string, op ckptsim.Op) {
	t.Helper()
	if op.Kind != ckptsim.Barrier && op.Kind != ckptsim.Fsync {
		return
	}
	probe, err := os.CreateTemp(filepath.Dir(dir), "tick")
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(probe.Close(), os.Remove(probe.Name()))) }()
	modified := func() time.Time {
		_, err := probe.WriteAt([]byte{0}, 0)
		require.NoError(t, err)
		info, err := probe.Stat()
		require.NoError(t, err)
		return info.ModTime()
	}
	for began := modified(); modified().Equal(began); {
		time.Sleep(time.Millisecond)
	}
}
