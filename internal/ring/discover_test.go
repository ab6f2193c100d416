// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDiscover(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"b.ring", "a.ring", ".c.ring.tmp", ".hidden.ring", "notes.txt"} {
		require.NoError(t, os.WriteFile(at(name), []byte("x"), 0o600))
	}
	require.NoError(t, os.Symlink(at("a.ring"), at("link.ring")))
	require.NoError(t, syscall.Mkfifo(at("pipe.ring"), 0o600))
	require.NoError(t, os.Mkdir(at("dir.ring"), 0o700))
	paths, refused := Discover(dir, Options{})
	assert.Equal(t, []string{at("a.ring"), at("b.ring")}, paths)
	require.Len(t, refused, 3)
	for i, want := range []string{"dir.ring: type: got a directory", "link.ring: type: got a symbolic link", "pipe.ring: type: got a FIFO"} {
		assert.Contains(t, refused[i].Error(), want)
	}
	paths, refused = Discover(dir, Options{Owner: func(uint32, uint32) bool { return false }})
	assert.Empty(t, paths)
	assert.Len(t, refused, 5)
}

func TestDiscoverRefusesDirectories(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(t.TempDir(), link))
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for path, want := range map[string]string{
		link: "a symbolic link", file: "a regular file", filepath.Join(dir, "missing"): "no such file",
	} {
		paths, refused := Discover(path, Options{})
		assert.Empty(t, paths)
		require.Len(t, refused, 1)
		var e *Error
		require.ErrorAs(t, refused[0], &e)
		assert.Contains(t, e.Error(), want)
		assert.Equal(t, path, e.Path)
	}
}

func TestDiscoverIsBounded(t *testing.T) {
	dir := t.TempDir()
	first := filepath.Join(dir, "0.ring")
	require.NoError(t, os.WriteFile(first, nil, 0o600))
	for i := range maxRings + 10 {
		require.NoError(t, os.Link(first, filepath.Join(dir, "x"+string(rune('a'+i%26))+uuid([16]byte{byte(i >> 8), byte(i)})+".ring")))
	}
	paths, refused := Discover(dir, Options{})
	assert.Len(t, paths, maxRings)
	require.Len(t, refused, 1)
	assert.Contains(t, refused[0].Error(), "4107 rings; want at most 4096")
}

// More names than are looked at make no more rings.
func TestRingsAmong_AsManyNamesAsAreLookedAt_AreBounded(t *testing.T) {
	all := make([]string, maxNames)
	for i := range all {
		all[i] = fmt.Sprintf("%05d.ring", i)
	}
	names, err := ringsAmong("/dev/shm/lockstep", all)
	require.ErrorContains(t, err, "65536 names or more")
	require.Len(t, names, maxRings)
	assert.Equal(t, "04095.ring", names[maxRings-1])
}

func TestReplaced(t *testing.T) {
	path := newImage(1, 8).save(t)
	r := openRing(t, path)
	assert.False(t, r.Replaced())
	other := newImage(1, 8).save(t)
	require.NoError(t, os.Remove(path))
	assert.False(t, r.Replaced(), "removed is not replaced")
	require.NoError(t, os.Rename(other, path))
	assert.True(t, r.Replaced())
	err := r.SetLevel(LevelAll)
	assert.ErrorContains(t, err, "another file under this name")
}

func TestSetLevel(t *testing.T) {
	m := newImage(1, 8)
	path := m.save(t)
	r := openRing(t, path)
	control := func() []uint64 {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		at := m.offset[sControl]
		again := &Ring{mapping: b}
		return again.words(at, 24)
	}
	before := Now()
	require.NoError(t, r.SetLevel(LevelAll))
	got := control()
	assert.Equal(t, []uint64{3, uint64(os.Getpid())}, got[:2])
	assert.GreaterOrEqual(t, got[2], before)
	require.NoError(t, r.SetLevel(0))
	assert.Zero(t, control()[0])
	require.ErrorContains(t, r.SetLevel(4), "got unknown (4); want 0 to 3")
}

func TestSetLevelNeedsPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everything")
	}
	path := newImage(1, 8).save(t)
	require.NoError(t, os.Chmod(path, 0o400))
	err := openRing(t, path).SetLevel(LevelAll)
	require.ErrorIs(t, err, os.ErrPermission)
	assert.Contains(t, err.Error(), "want permission to write it")
}

func TestAliveWithoutALock(t *testing.T) {
	m := newImage(1, 8)
	r := m.open(t)
	alive, closed, err := r.Alive()
	require.NoError(t, err)
	assert.Equal(t, []bool{false, false}, []bool{alive, closed}, "its process died")
	m.set(atState, stateClosed)
	_, closed, err = r.Alive()
	require.NoError(t, err)
	assert.True(t, closed)
}
