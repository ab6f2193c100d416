// SPDX-License-Identifier: Apache-2.0

package jsonlinesexporter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// file is a lineFile whose cuts a test reads.
type testFile struct {
	*lineFile
	cuts []string
}

func open(t *testing.T, c *Config) *testFile {
	t.Helper()
	f := &testFile{}
	var err error
	f.lineFile, err = openLineFile(c, func(reason string) { f.cuts = append(f.cuts, reason) })
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.close() }) // a test may have closed it
	return f
}

func (f *testFile) writeAll(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		require.NoError(t, f.write([]byte(line)))
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestOpen_WhatIsThere_IsFollowedByWholeLines(t *testing.T) {
	for name, tc := range map[string]struct {
		there, want string
		cuts        []string
	}{
		"nothing":             {"", "a\nb\n", nil},
		"whole lines":         {"x\ny\n", "x\ny\na\nb\n", nil},
		"a cut line":          {"x\ny", "x\ny\na\nb\n", []string{processEnded}},
		"a cut line alone":    {"y", "y\na\nb\n", []string{processEnded}},
		"a line without text": {"x\n\n", "x\n\na\nb\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f.jsonl")
			require.NoError(t, os.WriteFile(path, []byte(tc.there), 0o600))
			f := open(t, &Config{Path: path})
			assert.Equal(t, tc.there, content(t, path), "nothing to write yet")
			f.writeAll(t, "a", "b")
			assert.Equal(t, tc.want, content(t, path))
			assert.Equal(t, tc.cuts, f.cuts)
		})
	}
}

func TestOpen_WhatCannotBeOpened_SaysWhy(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "missing", "f"): "open file: open " + filepath.Join(dir, "missing", "f") + ": no such file or directory",
		dir:                                "open file: open " + dir + ": is a directory",
	} {
		_, err := openLineFile(&Config{Path: path}, nil)
		assert.EqualError(t, err, want)
	}
}

// What has been acknowledged is in the file before anything is closed.
func TestWrite_WithoutClose_IsInTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f := open(t, &Config{Path: path})
	f.writeAll(t, "a")
	assert.Equal(t, "a\n", content(t, path))
}

// Processes that write one file do not mix their lines.
func TestWrite_TwoFilesOfOnePath_KeepLinesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	const lines = 200
	var writers sync.WaitGroup
	for _, letter := range []string{"a", "b"} {
		f := open(t, &Config{Path: path})
		writers.Go(func() {
			for i := range lines {
				assert.NoError(t, f.write([]byte(strings.Repeat(letter, 100*(i+1)))))
			}
		})
	}
	writers.Wait()
	counts := map[string]int{}
	for line := range strings.Lines(content(t, path)) {
		line = strings.TrimSuffix(line, "\n")
		assert.Equal(t, line, strings.Repeat(line[:1], len(line)), "of one writer")
		counts[line[:1]] += len(line) / 100
	}
	assert.Equal(t, map[string]int{"a": lines * (lines + 1) / 2, "b": lines * (lines + 1) / 2}, counts)
}

// After another process truncates the file, as logrotate's copytruncate does, lines start at its beginning.
func TestWrite_FileCutShort_GoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f := open(t, &Config{Path: path})
	f.writeAll(t, "a")
	require.NoError(t, os.Truncate(path, 0))
	f.writeAll(t, "b")
	assert.Equal(t, "b\n", content(t, path))
}

func TestWrite_Fails_IsAnErrorAndCutsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f := open(t, &Config{Path: path})
	require.NoError(t, f.close())
	assert.ErrorContains(t, f.write([]byte("a")), "write line: ")
	assert.Empty(t, f.cuts)
}

func TestRotate_KeepsTheLimitAndTheNewestBackups(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.jsonl")
	f := open(t, &Config{Path: path, Rotation: &RotationConfig{MaxMegabytes: 1, MaxBackups: 2}})
	line := func(n int) string { return fmt.Sprint(n) + strings.Repeat("x", 1<<19-3) }
	for n := range 9 {
		f.writeAll(t, line(n)) // two fill a file
	}
	for name, want := range map[string]string{
		"f.jsonl": line(8) + "\n", "f.1.jsonl": line(6) + "\n" + line(7) + "\n", "f.2.jsonl": line(4) + "\n" + line(5) + "\n",
	} {
		assert.Equal(t, want, content(t, filepath.Join(dir, name)), name)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 3)
}

func TestRotate_LineLargerThanTheLimit_HasAFileOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	f := open(t, &Config{Path: path, Rotation: &RotationConfig{MaxMegabytes: 1, MaxBackups: 3}})
	large := strings.Repeat("x", 3<<20)
	f.writeAll(t, large, "a")
	assert.Equal(t, "a\n", content(t, path))
	assert.Equal(t, large+"\n", content(t, path+".1"))
}

// A cut line stays in the backup: the new file does not begin with an end of it.
func TestRotate_AfterACutLine_BeginsTheNewFileWithALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	cut := strings.Repeat("x", 1<<20)
	require.NoError(t, os.WriteFile(path, []byte(cut), 0o600))
	open(t, &Config{Path: path, Rotation: &RotationConfig{MaxMegabytes: 1, MaxBackups: 1}}).writeAll(t, "a")
	assert.Equal(t, "a\n", content(t, path))
	assert.Equal(t, cut, content(t, path+".1"))
}

func TestRotate_FileBehindALink_RotatesThatFile(t *testing.T) {
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	path := filepath.Join(dir, "f")
	require.NoError(t, os.Symlink(path, link))
	f := open(t, &Config{Path: link, Rotation: &RotationConfig{MaxMegabytes: 1, MaxBackups: 1}})
	f.writeAll(t, strings.Repeat("x", 1<<20), "a")
	assert.Equal(t, "a\n", content(t, link))
	assert.FileExists(t, path+".1")
}

// Where a backup cannot be made, the file does not grow: the line is refused, and can be sent again.
func TestRotate_Fails_RefusesTheLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f := open(t, &Config{Path: path, Rotation: &RotationConfig{MaxMegabytes: 1, MaxBackups: 1}})
	full := strings.Repeat("x", 1<<20-1)
	f.writeAll(t, full)
	require.NoError(t, os.MkdirAll(filepath.Join(path+".1", "in the way"), 0o700))
	assert.ErrorContains(t, f.write([]byte("a")), "rotate file: ")
	require.NoError(t, os.RemoveAll(path+".1"))
	f.writeAll(t, "a")
	assert.Equal(t, "a\n", content(t, path))
}
