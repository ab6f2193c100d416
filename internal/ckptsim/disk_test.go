// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, 0)) }

// holds returns what a file system holds, by name.
func holds(t *testing.T, fsys fs.FS) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, fs.WalkDir(fsys, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, p)
		out[p] = string(data)
		return err
	}))
	return out
}

// TestDiskIsAsReal: what saves, overwrites and deletions leave on the simulated disk is what
// they leave in a real folder, and it is what the saves say that they leave.
func TestDiskIsAsReal(t *testing.T) {
	for _, job := range Jobs() {
		t.Run(job.Name, func(t *testing.T) {
			dir := t.TempDir()
			trial, err := NewTrial(&job, 2, 10, 20, 30)
			require.NoError(t, err)
			for _, s := range trial.Saves {
				require.NoError(t, s.Make(t.Context(), dir, func(Op) {}))
			}
			state, err := trial.At(trial.Steps(), Kill, seeded(1))
			require.NoError(t, err)
			require.Equal(t, holds(t, os.DirFS(dir)), holds(t, state))
			require.Equal(t, Whole, state.Truth(trial.Saves[2], trial.Saves))
			require.True(t, state.Finished(trial.Saves[2], trial.Saves))
			require.NotEqual(t, Whole, state.Truth(trial.Saves[0], trial.Saves), "it was deleted or overwritten")
			require.Equal(t, !job.InPlace, state.Finished(trial.Saves[1], trial.Saves), "it was kept, or overwritten")
		})
	}
}

func do(t *testing.T, d *Disk, ops ...Op) {
	t.Helper()
	open := Handles{}
	for _, op := range ops {
		require.NoError(t, d.Do(op, open))
	}
}

// TestCrashKeepsWhatWasSynced, and can lose everything else, one thing without the other.
func TestCrashKeepsWhatWasSynced(t *testing.T) {
	d := NewDisk()
	do(t, d,
		Op{Kind: Mkdir, Path: "a"}, Op{Kind: Create, Path: "a/kept"}, Op{Kind: Write, Path: "a/kept", Data: []byte("synced")},
		Op{Kind: Fsync, Path: "a/kept"}, Op{Kind: FsyncDir, Path: "."}, Op{Kind: FsyncDir, Path: "a"},
		Op{Kind: Create, Path: "a/new.tmp"}, Op{Kind: Write, Path: "a/new.tmp", Data: []byte("one ")}, Op{Kind: Write, Path: "a/new.tmp", Offset: 4, Data: []byte("two")},
		Op{Kind: Rename, Path: "a/new.tmp", To: "a/new"})
	seen := map[string]bool{}
	for i := range uint64(2000) {
		for _, c := range []Crash{Journal, Any, Few} {
			s := d.Crashed(c, seeded(i))
			kept, ok := s.Bytes("a/kept")
			require.True(t, ok)
			require.Equal(t, "synced", string(kept))
			_, tmp := s.Bytes("a/new.tmp")
			data, renamed := s.Bytes("a/new")
			require.False(t, tmp && renamed, "a rename is one step")
			if renamed {
				seen[string(data)] = true
			}
		}
	}
	for _, want := range []string{"", "one ", "one two", "\x00\x00\x00\x00two"} {
		require.Contains(t, seen, want)
	}
}

// TestHoleIsTold: what never came is told from zeros that did.
func TestHoleIsTold(t *testing.T) {
	f := &stateFile{}
	f.put(write{data: []byte("ab")}, 2)
	f.put(write{off: 4, data: []byte{0, 0}}, 2)
	require.EqualValues(t, 2, f.hole())
	f.put(write{off: 2, data: []byte("cd")}, 2)
	require.EqualValues(t, 6, f.hole(), "none")
}

// TestBarriersHold: no rank does anything after a barrier before all have come to it.
func TestBarriersHold(t *testing.T) {
	for i := range uint64(50) {
		s := newSave(10, "s", 3)
		s.dcp()
		d, r := NewDisk(), Start(s)
		for steps := s.Steps(); steps > 0; steps-- {
			require.NoError(t, r.Advance(d, 1, seeded(i)))
			state := d.Crashed(Kill, seeded(0))
			if _, committing := state.Bytes("s/.metadata.tmp"); !committing {
				continue
			}
			for _, name := range []string{"s/__0_0.distcp", "s/__1_0.distcp", "s/__2_0.distcp"} {
				got, _ := state.Bytes(name)
				require.Equal(t, s.Files[name], got)
			}
		}
	}
}

// TestTruth: a part that is missing, cut, or of another save.
func TestTruth(t *testing.T) {
	job := Jobs()[0]
	a, b := job.Save(10, nil), job.Save(20, nil)
	whole := map[string][]byte{}
	for name, data := range a.Files {
		whole[name] = data
	}
	read := func(name string) ([]byte, bool) { d, ok := whole[name]; return d, ok }
	both := []*Save{a, b}
	require.Equal(t, Whole, a.truth(read, both))
	require.Equal(t, Mixed, b.truth(read, both))
	const shard = "__1_0.distcp"
	whole[shard] = a.Files[shard][:100]
	require.Equal(t, Partial, a.truth(read, both))
	whole[shard] = b.Files[shard]
	require.Equal(t, Mixed, a.truth(read, both))
	delete(whole, shard)
	require.Equal(t, Partial, a.truth(read, both))
	clear(whole)
	require.Equal(t, Nothing, a.truth(read, both))
}
