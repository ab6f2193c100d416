// SPDX-License-Identifier: Apache-2.0

//go:build unix

package jsonlinesexporter

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// fileLimit is the environment variable by which the test starts itself: the path to write.
const fileLimit = "LOCKSTEP_TEST_FILE_LIMIT"

// A write that ends half way, as on a full disk, is an error, and the line comes again as a whole one.
func TestWrite_DiskFull_EndsTheCutLine(t *testing.T) {
	if path := os.Getenv(fileLimit); path != "" {
		writeBeyondLimit(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "f")
	// A process of its own, since the limit on the size of files is that of a process.
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // this test
	cmd.Env = append(os.Environ(), fileLimit+"="+path)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "a\n"+strings.Repeat("b", 98)+"\nbbb\n", content(t, path))
}

func writeBeyondLimit(t *testing.T, path string) {
	t.Helper()
	f := open(t, &Config{Path: path})
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 100, Max: old.Max}))
	f.writeAll(t, "a")
	require.ErrorContains(t, f.write([]byte(strings.Repeat("b", 200))), "write line: ")
	require.Error(t, f.write([]byte("c")), "still full")
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &old))
	f.writeAll(t, "bbb")
	assert.Equal(t, []string{writeFailed}, f.cuts, "one line is cut")
}

// A rotation that failed half way continues where it ended: it shifts no backup twice.
func TestRotate_OpenFails_KeepsTheBackups(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.jsonl")
	f := open(t, &Config{Path: path, Rotation: &RotationConfig{MaxMegabytes: 1, MaxBackups: 3}})
	line := func(letter string) string { return strings.Repeat(letter, 1<<20-1) }
	f.writeAll(t, line("a"), line("b"), line("c"), line("d"))

	restore := refuseFiles(t)
	for range 4 {
		require.ErrorContains(t, f.write([]byte("e")), "too many open files")
	}
	restore()
	f.writeAll(t, "e")
	for name, want := range map[string]string{"f.jsonl": "e", "f.1.jsonl": line("d"), "f.2.jsonl": line("c"), "f.3.jsonl": line("b")} {
		assert.Equal(t, want+"\n", content(t, filepath.Join(dir, name)), name)
	}
}

// refuseFiles lets this process open no file until the test restores the limit, or ends.
func refuseFiles(t *testing.T) (restore func()) {
	t.Helper()
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	restore = func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) }
	t.Cleanup(restore)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: old.Max}))
	return restore
}

func TestOpen_NoRegularFile_IsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(path, 0o600))
	f := open(t, &Config{Path: path, Rotation: &RotationConfig{MaxMegabytes: 1, MaxBackups: 1}})
	reader, err := os.Open(path)
	require.NoError(t, err)
	defer reader.Close()
	f.writeAll(t, "a")
	var got [2]byte
	_, err = reader.Read(got[:])
	require.NoError(t, err)
	assert.Equal(t, "a\n", string(got[:]))
}

func TestOpen_NotWritable_SaysWhy(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write every file")
	}
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, nil, 0o400))
	_, err := openLineFile(&Config{Path: path}, nil)
	assert.EqualError(t, err, "open file: open "+path+": permission denied")
}
