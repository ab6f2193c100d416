// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func paths(l Listing) (out []string) {
	for _, f := range l.Files {
		out = append(out, filepath.Base(f.Path))
	}
	return out
}

func TestFoldersFilesAndGlobs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"nccl_trace_rank_0", "nccl_trace_rank_10", "nccl_trace_rank_node02_5", "README", "sub/_dump_3"} {
		write(t, filepath.Join(dir, name), "x")
	}
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "nccl_trace_rank_0.pipe"), 0o600))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "nccl_trace_rank_7"), 0o600))
	f := Finder{Name: flightrecorder.RankOf, MaxFiles: 100}

	f.Include = []string{dir, dir + "/nccl_trace_rank_*", filepath.Join(dir, "su?"), "/nowhere/at/all"}
	l := f.List()
	assert.Equal(t, []string{"nccl_trace_rank_0", "nccl_trace_rank_10", "nccl_trace_rank_7", "nccl_trace_rank_node02_5", "_dump_3"}, paths(l))
	assert.Equal(t, 1, l.Nameless, "README")
	assert.Empty(t, l.Problems, "what is not there yet is no problem")
	assert.Equal(t, []int64{0, 10, 7, 5, 3}, []int64{l.Files[0].Rank, l.Files[1].Rank, l.Files[2].Rank, l.Files[3].Rank, l.Files[4].Rank})
	assert.True(t, l.Files[0].Regular)
	assert.False(t, l.Files[2].Regular, "a pipe")

	f.Exclude = []string{"*node02*"}
	f.Include, f.MaxFiles = []string{dir}, 2
	l = f.List()
	assert.Equal(t, []string{"nccl_trace_rank_0", "nccl_trace_rank_10"}, paths(l))
	assert.Equal(t, 1, l.Ignored)
}

func TestFolderThatCanNotBeListed(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may list everything")
	}
	dir := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.Mkdir(dir, 0o000))
	f := Finder{Include: []string{dir}, Name: flightrecorder.RankOf, MaxFiles: 10}
	l := f.List()
	require.Len(t, l.Problems, 1)
	assert.Contains(t, l.Problems[0], "permission denied")
}

func TestReadOpensRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	file, link, pipe := filepath.Join(dir, "rank_0"), filepath.Join(dir, "rank_1"), filepath.Join(dir, "rank_2")
	write(t, file, "0123456789")
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))

	data, err := Read(file, 10)
	require.NoError(t, err)
	assert.Equal(t, "0123456789", string(data))
	_, err = Read(file, 9)
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = Read(link, 10)
	require.ErrorIs(t, err, ErrNotRegular)
	done := make(chan error, 1)
	go func() { _, err := Read(pipe, 10); done <- err }()
	select {
	case err = <-done:
		require.ErrorIs(t, err, ErrNotRegular)
	case <-time.After(10 * time.Second):
		t.Fatal("reading a pipe waits for its writer")
	}
	_, err = Read(filepath.Join(dir, "rank_3"), 10)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A file that grows while it is read must not be read beyond the limit either.
func TestReadStopsAtTheLimit(t *testing.T) {
	_, err := readAll(zeros{}, "x", 5, 1000)
	require.ErrorIs(t, err, ErrTooLarge)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestDefaultPatterns(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	assert.Equal(t, []string{"/home/u/.cache/torch/comm_lib_trace_rank_[0-9]*", "/home/u/.cache/torch/nccl_trace_rank_[0-9]*", "/tmp/nccl_trace_rank_[0-9]*"},
		DefaultPatterns(env("HOME", "/home/u")))
	assert.Equal(t, "/c/torch/comm_lib_trace_rank_[0-9]*", DefaultPatterns(env("HOME", "/home/u", "XDG_CACHE_HOME", "/c"))[0])
	assert.Equal(t, []string{`/d/a\[1]_[0-9]*`, "/e/b_[0-9]*"},
		DefaultPatterns(env("TORCH_FR_DUMP_TEMP_FILE", "/d/a[1]_", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "/e/b_", "HOME", "/home/u")))
}

func TestParseRanks(t *testing.T) {
	got, err := ParseRanks([]string{"4-6", "1", "5"})
	require.NoError(t, err)
	assert.Equal(t, []int64{1, 4, 5, 6}, got)
	for _, bad := range []string{"", "x", "3-1", "-1", "0-99999999999"} {
		_, err := ParseRanks([]string{bad})
		assert.Error(t, err, bad)
	}
}
