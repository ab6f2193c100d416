// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/columns"
	"github.com/lockstep-otel/lockstep/internal/model"
)

var begin = time.UnixMilli(1_700_000_000_000)

// seen is what a spool reported.
type seen struct {
	files, operations, bytes int64
	dropped                  map[string]int64
	deleted                  map[string]int64
	cut                      int64
}

func (s *seen) events() Events {
	s.dropped, s.deleted = map[string]int64{}, map[string]int64{}
	return Events{
		Written: func(operations, bytes int64) {
			s.files, s.operations, s.bytes = s.files+1, s.operations+operations, s.bytes+bytes
		},
		Dropped: func(operations int64, reason string) { s.dropped[reason] += operations },
		Deleted: func(reason string) { s.deleted[reason]++ },
		Cut:     func(texts int64) { s.cut += texts },
	}
}

func testConfig(t *testing.T) Config {
	t.Helper()
	return Config{
		Directory: filepath.Join(t.TempDir(), "ring"), MaxBytes: 1 << 30, MaxFileRows: 1 << 20, MaxFileBytes: 1 << 24, MaxAge: 10 * time.Second,
		MaxMemory: 1 << 27, Resolution: columns.Exact, Producer: "1.0",
	}
}

func opened(t *testing.T, c Config) (*Spool, *seen) {
	t.Helper()
	s := &seen{}
	sp, err := Open(c, s.events())
	require.NoError(t, err)
	return sp, s
}

// steps returns an operation in each step.
func steps(job string, at ...int64) []columns.Batch {
	b := columns.Batch{RankOps: model.RankOps{Rank: model.Rank{JobID: job, Incarnation: "life"}}}
	for _, step := range at {
		b.Ops = append(b.Ops, model.Op{Kind: model.KindCompute, Name: "gemm", Step: model.Some(step), Start: step, End: step + 1})
	}
	return []columns.Batch{b}
}

// files returns the files below a directory, with slashes, and the steps that each has.
func files(t *testing.T, dir string) map[string][]int64 {
	t.Helper()
	out := map[string][]int64{}
	require.NoError(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() || info.Name() == lockName {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		out[filepath.ToSlash(rel)] = stepsIn(t, path)
		return nil
	}))
	return out
}

func stepsIn(t *testing.T, path string) (all []int64) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	f, err := columns.Open(file, info.Size())
	require.NoError(t, err, path)
	defer f.Close()
	for i := range f.Groups() {
		batches, err := f.Read(i)
		require.NoError(t, err)
		for _, b := range batches {
			for _, op := range b.Ops {
				all = append(all, op.Step.V)
			}
		}
	}
	return all
}

func TestSpool_Age_ClosesTheFile(t *testing.T) {
	c := testConfig(t)
	s, seen := opened(t, c)
	require.NoError(t, s.Add(steps("job", 3, 4), begin))
	require.NoError(t, s.Tick(begin.Add(c.MaxAge-1)))
	assert.Empty(t, files(t, c.Directory))
	assert.EqualValues(t, 2, s.Waiting())
	require.NoError(t, s.Tick(begin.Add(c.MaxAge)))
	assert.Equal(t, map[string][]int64{"job/life/steps-0000000003-0000000004-1700000000000.parquet": {3, 4}}, files(t, c.Directory))
	assert.Zero(t, s.Waiting())
	assert.EqualValues(t, 2, seen.operations)
	assert.Equal(t, seen.bytes, s.Bytes())
	require.NoError(t, s.Close(begin))
}

func TestSpool_LimitsOfAFile_CloseIt(t *testing.T) {
	rows := func(c *Config) { c.MaxFileRows = 2 }
	ranges := func(c *Config) { c.MaxFileSteps = 10 }
	for name, tc := range map[string]struct {
		change func(*Config)
		want   [][]int64
	}{
		"rows":  {rows, [][]int64{{1, 8}, {9, 10}, {25}}},
		"steps": {ranges, [][]int64{{1, 8, 9}, {10}, {25}}},
	} {
		c := testConfig(t)
		tc.change(&c)
		s, _ := opened(t, c)
		require.NoError(t, s.Add(steps("job", 1, 8, 9, 10, 25), begin))
		require.NoError(t, s.Close(begin))
		var got [][]int64
		for _, in := range files(t, c.Directory) {
			got = append(got, in)
		}
		assert.ElementsMatch(t, tc.want, got, name)
	}
}

func TestSpool_Memory_IsBounded(t *testing.T) {
	c := testConfig(t)
	c.MaxMemory = 4 << 20
	s, _ := opened(t, c)
	for i := range int64(20_000) {
		require.NoError(t, s.Add(steps("job", i), begin))
		require.LessOrEqual(t, s.Memory(), c.MaxMemory)
	}
	require.NoError(t, s.Close(begin))
	n := 0
	for _, in := range files(t, c.Directory) {
		n += len(in)
	}
	assert.Equal(t, 20_000, n)
}

func TestSpool_ManyJobs_LeaveFewFilesOpen(t *testing.T) {
	c := testConfig(t)
	s, _ := opened(t, c)
	for i := range maxOpen + 10 {
		require.NoError(t, s.Add(steps(strings.Repeat("j", i+1), 1), begin))
	}
	assert.Len(t, files(t, c.Directory), 10)
	require.NoError(t, s.Close(begin))
	assert.Len(t, files(t, c.Directory), maxOpen+10)
}

func TestSpool_Limit_DeletesTheOldest(t *testing.T) {
	c := testConfig(t)
	s, _ := opened(t, c)
	require.NoError(t, s.Add(steps("job", 1), begin))
	require.NoError(t, s.Close(begin))
	size := s.Bytes()

	c.MaxBytes = 3*size + size/2
	s, seen := opened(t, c)
	for step := int64(2); step < 6; step++ {
		require.NoError(t, s.Add(steps("job"+string(rune('0'+step)), step), begin.Add(time.Duration(step)*time.Hour)))
		require.NoError(t, s.Tick(begin.Add(time.Duration(step+1)*time.Hour)))
		assert.LessOrEqual(t, s.Bytes(), c.MaxBytes)
	}
	var left []int64
	for _, in := range files(t, c.Directory) {
		left = append(left, in...)
	}
	assert.ElementsMatch(t, []int64{3, 4, 5}, left)
	assert.Equal(t, map[string]int64{Limit: 2}, seen.deleted)
	assert.NoDirExists(t, filepath.Join(c.Directory, "job"), "an empty folder goes, too")
	require.NoError(t, s.Close(begin))

	c.MaxBytes, c.Uploads = size+size/2, true
	s, seen = opened(t, c)
	assert.Equal(t, map[string]int64{LimitBeforeUpload: 2}, seen.deleted, "a smaller limit holds from the start")
	f, n := s.Unsent()
	assert.Equal(t, 1, n)
	s.Sent(f)
	_, n = s.Unsent()
	assert.Zero(t, n)
	require.NoError(t, s.Close(begin))
}

func TestSpool_ManyFiles_DeleteTheOldest(t *testing.T) {
	c := testConfig(t)
	c.MaxFileRows = 1
	s, seen := opened(t, c)
	s.ring.most = 3
	require.NoError(t, s.Add(steps("job", 1, 2, 3, 4, 5), begin))
	require.NoError(t, s.Close(begin))
	var left []int64
	for _, in := range files(t, c.Directory) {
		left = append(left, in...)
	}
	assert.ElementsMatch(t, []int64{3, 4, 5}, left)
	assert.Equal(t, map[string]int64{Limit: 2}, seen.deleted)
}

func TestSpool_DiskTakesNothing_RefusesAndLosesNothing(t *testing.T) {
	c := testConfig(t)
	s, seen := opened(t, c)
	inTheWay := filepath.Join(c.Directory, "job")
	require.NoError(t, os.WriteFile(inTheWay, nil, 0o600))
	require.NoError(t, s.Add(steps("job", 1), begin))
	later := begin.Add(c.MaxAge)
	require.Error(t, s.Tick(later))
	for range 100 {
		require.ErrorContains(t, s.Add(steps("job", 2), later), "write operations to "+c.Directory)
	}
	assert.EqualValues(t, 1, s.Waiting(), "what is refused is not kept")
	require.NoError(t, os.Remove(inTheWay))
	require.Error(t, s.Add(steps("job", 2), later.Add(retryAfter-1)), "the disk is left alone for a second")
	require.NoError(t, s.Add(steps("job", 2), later.Add(retryAfter)))
	require.NoError(t, s.Close(later))
	var got []int64
	for _, in := range files(t, c.Directory) {
		got = append(got, in...)
	}
	assert.ElementsMatch(t, []int64{1, 2}, got)
	assert.Empty(t, seen.dropped)
}

func TestSpool_DiskTakesNothingByTheEnd_CountsWhatIsLost(t *testing.T) {
	c := testConfig(t)
	s, seen := opened(t, c)
	require.NoError(t, os.WriteFile(filepath.Join(c.Directory, "job"), nil, 0o600))
	require.NoError(t, s.Add(steps("job", 1, 2, 3), begin))
	require.ErrorContains(t, s.Close(begin), "write operations to")
	assert.Equal(t, map[string]int64{NoRoom: 3}, seen.dropped)
}

func TestOpen_LeftoversOfAKill_AreRemovedAndCounted(t *testing.T) {
	c := testConfig(t)
	s, _ := opened(t, c)
	require.NoError(t, s.Add(steps("job", 1), begin))
	require.NoError(t, s.Close(begin))
	cut := filepath.Join(c.Directory, "job", "life", "steps-0000000002-0000000002-1700000000009.parquet.tmp")
	other := filepath.Join(c.Directory, "job", "notes.parquet")
	require.NoError(t, os.WriteFile(cut, []byte("PAR1"), 0o600))
	require.NoError(t, os.WriteFile(other, []byte("PAR1"), 0o600))

	s, seen := opened(t, c)
	assert.Equal(t, map[string]int64{Leftover: 1}, seen.deleted)
	assert.NoFileExists(t, cut)
	assert.FileExists(t, other, "a file of another name is not ours")
	_, n := s.Unsent()
	assert.Equal(t, 1, n)
	require.NoError(t, s.Add(steps("job", 3), begin.Add(-time.Hour)))
	require.NoError(t, s.Close(begin))
	assert.FileExists(t, filepath.Join(c.Directory, "job", "life", "steps-0000000003-0000000003-1700000000001.parquet"), "numbers go up, though the clock went back")
}

func TestOpen_WhatCannotBe_SaysWhatToDo(t *testing.T) {
	c := testConfig(t)
	s, _ := opened(t, c)
	_, err := Open(c, (&seen{}).events())
	require.EqualError(t, err, "open directory "+c.Directory+": another exporter writes there; want a directory for each")
	require.NoError(t, s.Close(begin))
	s, _ = opened(t, c)
	require.NoError(t, s.Close(begin))

	c.Directory = filepath.Join(t.TempDir(), "none", "ring")
	_, err = Open(c, (&seen{}).events())
	require.ErrorContains(t, err, "want a folder that the collector can make, or one that is there")
	assert.Contains(t, writable(&os.PathError{Op: "open", Path: "x", Err: os.ErrPermission}).Error(),
		"permission denied; want a folder that the collector's user may write: change its owner, or set another directory")
}

func TestFolder_NamesFromOutside_StayInside(t *testing.T) {
	for _, name := range []string{"", "..", "../../etc", "a/b", `a\b`, ".hidden", "...", "\x00", "ä", strings.Repeat("../", 99)} {
		got := Folder(name)
		assert.Regexp(t, `^[A-Za-z0-9_-][A-Za-z0-9._-]*$`, got, "%q", name)
		assert.LessOrEqual(t, len(got), maxFolder, "%q", name)
	}
	assert.Equal(t, "unnamed", Folder(""))
	assert.Equal(t, "llama-70b_v1.2", Folder("llama-70b_v1.2"))
	assert.NotEqual(t, Folder("a/b"), Folder("a b"), "two jobs stay two")
	assert.NotEqual(t, Folder("unnamed"), Folder(""))
	long := Folder(strings.Repeat("x", 300))
	assert.Len(t, long, maxFolder)
	assert.NotEqual(t, long, Folder(strings.Repeat("x", 301)))
}
