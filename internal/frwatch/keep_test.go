// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func filesIn(t *testing.T, dir string) (out []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, rel)
		}
		return err
	}))
	return out
}

func TestCopiesOfIncidents(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	k := &Keeper{Directory: dir, MaxBytes: 100, MaxFiles: 10}
	require.NoError(t, k.Keep(at(0), "run/17", "/d/rank_0", []byte("first")))
	require.NoError(t, k.Keep(at(30), "run/17", "/d/rank_1", []byte("first")))
	require.NoError(t, k.Keep(at(300), "run/17", "/d/rank_0", []byte("second")))
	assert.Equal(t, []string{"19700101T001640Z-run_17/rank_0", "19700101T001640Z-run_17/rank_1", "19700101T002140Z-run_17/rank_0"}, filesIn(t, dir))
	require.ErrorContains(t, k.Keep(at(300), "j", "x_0", make([]byte, 101)), "want at most 100")
	require.NoError(t, k.Keep(at(301), "..", "..", []byte("x")), "names are no paths")
	assert.Contains(t, filesIn(t, dir), "19700101T002141Z-_/_")
}

func TestTheOldestCopiesMakeRoom(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "somebody's", "model.bin")
	write(t, foreign, "0123456789012345678901234567890123456789")
	k := &Keeper{Directory: dir, MaxBytes: 20, MaxFiles: 3}
	for i := range 5 {
		require.NoError(t, k.Keep(at(float64(1000*i)), "j", "rank_0", []byte("12345678")))
	}
	assert.Len(t, filesIn(t, dir), 3, "two of 8 bytes in 20, and what is not ours")
	assert.EqualValues(t, 3, k.Removed)
	assert.FileExists(t, foreign)

	again := &Keeper{Directory: dir, MaxBytes: 100, MaxFiles: 1}
	require.NoError(t, again.Keep(at(9000), "j", "rank_0", []byte("x")))
	assert.Len(t, filesIn(t, dir), 2, "copies of earlier runs are bounded, too")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 2, "empty folders go")
}

// A copy that is written anew counts once.
func TestRewrittenCopy(t *testing.T) {
	k := &Keeper{Directory: t.TempDir(), MaxBytes: 10, MaxFiles: 10}
	for i := range 5 {
		require.NoError(t, k.Keep(at(float64(i)), "j", "rank_0", []byte("12345678")))
	}
	assert.Zero(t, k.Removed)
	assert.EqualValues(t, 4, k.Overwritten)
	assert.Equal(t, 8, k.copies.Bytes())
	f, _ := k.folders.Peek("j")
	assert.Equal(t, at(4), f.used)
}

func TestKeeper_TooManyJobs_FolderUsedLongestAgoIsForgotten(t *testing.T) {
	var k Keeper
	first, second := k.folder(at(0), "first"), k.folder(at(1), "second")
	for i := range maxFolders - 2 {
		k.folder(at(2), strconv.Itoa(i))
	}
	assert.Equal(t, first, k.folder(at(3), "first"))
	k.folder(at(4), "another")
	assert.Equal(t, first, k.folder(at(5), "first"), "its incident goes on")
	assert.NotEqual(t, second, k.folder(at(6), "second"))
}

// What can not be removed takes its room on: no more is kept than was allowed.
func TestCopiesThatCanNotBeRemoved(t *testing.T) {
	dir := t.TempDir()
	k := &Keeper{Directory: dir, MaxBytes: 20, MaxFiles: 10}
	require.NoError(t, k.Keep(at(0), "j", "rank_0", []byte("12345678")))
	require.NoError(t, k.Keep(at(1000), "j", "rank_0", []byte("12345678")))
	for path := range k.copies.All() { // a folder that is not empty stays
		require.NoError(t, os.Remove(path))
		write(t, filepath.Join(path, "of others"), "x")
	}
	require.ErrorContains(t, k.Keep(at(2000), "j", "rank_0", []byte("12345678")), "make room for 8 bytes: 2 copies of 16 bytes can not be removed")
	assert.Equal(t, 16, k.copies.Bytes())
	assert.Zero(t, k.Removed)
	require.NoError(t, k.Keep(at(3000), "j", "rank_0", []byte("1234")), "there is room for this")
}

// What could not be written anew is there still, and counts.
func TestACopyThatCanNotBeRewritten(t *testing.T) {
	k := &Keeper{Directory: t.TempDir(), MaxBytes: 20, MaxFiles: 10}
	require.NoError(t, k.Keep(at(0), "j", "rank_0", []byte("12345678")))
	path, _, _ := k.copies.Oldest()
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700)) // no file can take its place
	require.Error(t, k.Keep(at(1), "j", "rank_0", []byte("1")))
	assert.Equal(t, 8, k.copies.Bytes())
	assert.Equal(t, 1, k.copies.Len())
	assert.Zero(t, k.Overwritten)
}
