// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A pipe under the name of a dump is not opened: nobody may ever write into it.
func TestAnalyzeAPipe(t *testing.T) {
	dir := writeDumps(t, 2)
	pipe := filepath.Join(dir, "nccl_trace_rank_3")
	require.NoError(t, os.Remove(pipe))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	var files []string
	for r := range 4 {
		files = append(files, filepath.Join(dir, "nccl_trace_rank_"+strconv.Itoa(r)))
	}
	for _, paths := range [][]string{{dir}, files} {
		status, stdout, _ := call(append([]string{"analyze"}, paths...)...)
		assert.Equal(t, exitFindings, status)
		assert.Contains(t, strings.Join(strings.Fields(stdout), " "), "nccl_trace_rank_3: read dump: got a named pipe; want a regular file")
		assert.Contains(t, stdout, "unreadable: 3")
	}
	status, _, stderr := call("analyze", pipe)
	assert.Equal(t, exitUnusable, status)
	assert.Contains(t, stderr, "want a regular file")
}

// A pipe under the name of a log is not opened either, alone, in its folder or beside a log, and is reported.
func TestAnalyze_PipeNamedAsALog_IsRefused(t *testing.T) {
	alone, beside := t.TempDir(), t.TempDir()
	for _, dir := range []string{alone, beside} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "rank_0.log"), 0o600))
	}
	putFile(t, timedOut(1), beside, "rank_1.log")
	for _, path := range []string{alone, filepath.Join(alone, "rank_0.log"), beside} {
		done := make(chan string, 1)
		go func() {
			_, stdout, stderr := call("analyze", path)
			done <- strings.Join(strings.Fields(stdout+stderr), " ")
		}()
		select {
		case text := <-done:
			assert.Contains(t, text, "rank_0.log: tell format: got a named pipe; want a regular file")
		case <-time.After(10 * time.Second):
			require.Fail(t, "analyze waits for a writer of the pipe")
		}
	}
}

// The pipes of PyTorch's Flight Recorder, which lie beside logs, are no problem.
func TestDiscover_PipesOfPyTorch_ArePassedOver(t *testing.T) {
	dir := t.TempDir()
	putFile(t, timedOut(1), dir, "rank_1.log")
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "nccl_trace_rank_0.pipe"), 0o600))
	var p problems
	discover([]string{dir}, &p)
	assert.Empty(t, p.list)
}

// A folder, or a link that leads nowhere, under the name of a dump is one that can not be read.
func TestAnalyzeWhatIsNoFile(t *testing.T) {
	for what, make := range map[string]func(path string) error{
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"link":   func(path string) error { return os.Symlink("nowhere", path) },
	} {
		dir := writeDumps(t, 2)
		path := filepath.Join(dir, "nccl_trace_rank_3")
		require.NoError(t, os.Remove(path))
		require.NoError(t, make(path))
		status, stdout, _ := call("analyze", dir)
		assert.Equal(t, exitFindings, status, what)
		assert.Contains(t, stdout, "unreadable: 3", what)
		assert.NotContains(t, stdout, "missing: 3", what)
	}
}

// A folder of dumps may end in a number, too.
func TestAnalyzeAFolderWithTheNameOfADump(t *testing.T) {
	dir := filepath.Join(filepath.Dir(writeDumps(t, 2)), "run_3")
	require.NoError(t, os.Rename(writeDumps(t, 2), dir))
	status, stdout, _ := call("analyze", filepath.Dir(dir))
	assert.Equal(t, exitFindings, status)
	assert.NotContains(t, stdout, "run_3: ")
}
