// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// What waits has a limit in bytes: one huge dump does not take the room of all others, and
// what was told of gives its room back.
func TestWhatWaitsHasABudget(t *testing.T) {
	in := NewIncidents(IncidentConfig{Wait: time.Second, MaxWait: time.Minute, Window: time.Minute, MaxRanks: 10, MaxJobs: 2, MaxBytes: 200_000})
	add := func(rank int64, stack int) {
		in.Add(at(0), Dump{Job: "j", Source: fmt.Sprint("f", rank), Rank: rank, Time: at(0), State: &model.RankState{
			Rank: model.Rank{Rank: rank}, Stacks: []string{strings.Repeat("x", stack)},
		}})
	}
	add(0, 1<<20)
	add(1, 50_000)
	add(2, 50_000)
	refused := in.TakeOverflow()
	require.Len(t, refused, 1)
	assert.Equal(t, []any{RefusedOverflow, int64(0)}, []any{refused[0].Reason, refused[0].Rank})
	assert.Contains(t, refused[0].What, "want at most 200000 in all")
	add(1, 140_000)
	assert.Empty(t, in.TakeOverflow(), "in place of what it was before")
	add(1, 50_000)

	out := in.End(false)
	require.Len(t, out, 1)
	assert.Len(t, out[0].States, 2)
	assert.Zero(t, in.bytes)
	add(3, 150_000)
	assert.Empty(t, in.TakeOverflow())
}

func TestIncidents_JobsHeardOfAtOneTime_FirstThatWaitsForNothingLeaves(t *testing.T) {
	const jobs = 16
	in := NewIncidents(IncidentConfig{MaxRanks: 10, MaxJobs: jobs})
	add := func(job string) { in.Add(at(0), Dump{Job: job, Source: "f", Rank: 1, Fault: "torn"}) }
	var all []string
	for i := range jobs {
		all = append(all, fmt.Sprint("job ", i))
		add(all[i])
	}
	in.End(false)
	add(all[0])
	add("another")
	assert.Equal(t, append(slices.Delete(all, 1, 2), "another"), slices.Collect(in.jobs.Keys()))
}

// Of too many dumps of one rank the oldest goes, and that is told.
func TestTooManyTwinsAreTold(t *testing.T) {
	in := NewIncidents(IncidentConfig{MaxRanks: 10, MaxJobs: 2})
	for i := range maxTwins + 2 {
		in.Add(at(0), Dump{Job: "j", Source: fmt.Sprint("f", i), Rank: 1, Fault: "torn"})
	}
	refused := in.TakeOverflow()
	require.Len(t, refused, 2)
	assert.Equal(t, []string{RefusedTwin, "f0", "f1"}, []string{refused[0].Reason, refused[0].Source, refused[1].Source})
	in.End(false)
	assert.Zero(t, in.bytes)
}

// A folder that is looked at in part is told of.
func TestFolderOfTooManyNames(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		write(t, filepath.Join(dir, fmt.Sprint("rank_", i)), "x")
	}
	f := Finder{Include: []string{dir}, Name: flightrecorder.RankOf, MaxFiles: 10, maxNames: 3}
	l := f.List()
	assert.Len(t, l.Files, 3)
	assert.Equal(t, 1, l.Cut)
	require.Len(t, l.Problems, 1)
	assert.Contains(t, l.Problems[0], "got more than 3 names")
	f.maxNames = 5
	l = f.List()
	assert.Len(t, l.Files, 5)
	assert.Zero(t, l.Cut)
	assert.Empty(t, l.Problems)
}

// A name of which the pattern makes a rank that no job has is refused.
func TestRanksOutOfRange(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"-3", "-9223372036854775808", "131072", "7"} {
		write(t, filepath.Join(dir, name), "x")
	}
	name := func(path string) (rank int64, prefix string, ok bool) {
		_, err := fmt.Sscan(filepath.Base(path), &rank)
		return rank, filepath.Dir(path), err == nil
	}
	l := (&Finder{Include: []string{dir}, Name: name, MaxFiles: 10}).List()
	require.Len(t, l.Files, 1)
	assert.Equal(t, int64(7), l.Files[0].Rank)
	assert.Equal(t, 3, l.Outside)
	require.Len(t, l.Problems, 1)
	assert.Contains(t, l.Problems[0], "want 0 to 131071")
}

// Groups of jobs that are over do not stay for ever.
func TestPullerForgets(t *testing.T) {
	p := NewPuller(time.Second, 100, flightrecorder.Options{Cache: flightrecorder.NewCache()})
	defer p.Close()
	first := p.cache.Load()
	require.NotNil(t, first)
	p.Renew()
	assert.NotSame(t, first, p.cache.Load())
}

// Patterns look at no more names than folders do, and tell of what they can not look into.
func TestPatternsAreBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		write(t, filepath.Join(dir, "a", "rank_"+strconv.Itoa(i)), "x")
		write(t, filepath.Join(dir, "b", "rank_"+strconv.Itoa(i)), "x")
	}
	f := Finder{Include: []string{filepath.Join(dir, "a", "rank_*")}, Name: flightrecorder.RankOf, MaxFiles: 10, maxNames: 3}
	l := f.List()
	assert.Len(t, l.Files, 3)
	assert.Equal(t, 1, l.Cut)
	require.Len(t, l.Problems, 1)
	assert.Contains(t, l.Problems[0], "got more than 3 names; want at most that")

	f.maxNames = 5
	f.Include = []string{filepath.Join(dir, "?", "rank_*")}
	l = f.List()
	assert.Len(t, l.Files, 5, "of two folders as many together")
	assert.Equal(t, 1, l.Cut)
	require.Len(t, l.Problems, 1)
	assert.Contains(t, l.Problems[0], "got more than 5 matches; want at most that")

	f.maxNames = 10
	assert.Len(t, f.List().Files, 10)
	f.Include = []string{filepath.Join(dir, "none", "rank_*"), filepath.Join(dir, "[", "rank_*")}
	l = f.List()
	assert.Empty(t, l.Files)
	require.Len(t, l.Problems, 1)
	assert.Contains(t, l.Problems[0], "syntax error in pattern")
}
