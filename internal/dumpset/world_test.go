// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// A size that the dumps themselves contradict is not used, and the dump that does is named.
func TestASizeThatDumpsContradict(t *testing.T) {
	for size, want := range map[int64]string{
		4: "rank_7: find size of job: got a dump of rank 7; want less than 4, the size that was given; it is not used",
		7: "rank_7: find size of job: got a dump of rank 7; want less than 7, the size that was given; it is not used",
	} {
		r := Read(t.Context(), write(t, filepath.Join(t.TempDir(), "llama"), "rank_", world(8, 0)), Options{WorldSize: size})
		assert.Contains(t, problemsOf(r), want)
		require.Len(t, r.Hangs, 1)
		namesRank2(t, &r.Hangs[0])
		assert.True(t, r.Hangs[0].SizeRefused)
	}
	dumps := world(8, 0)
	dumps[7], dumps[6] = nil, nil
	r := Read(t.Context(), write(t, filepath.Join(t.TempDir(), "llama"), "rank_", dumps), Options{WorldSize: 6})
	assert.Contains(t, problemsOf(r), "rank_5: find size of job: got a process group with rank 7; want less than 6, the size that was given; it is not used")
	assert.Len(t, r.Hangs[0].Absent, 2)
}

// A job may have more ranks than its groups show.
func TestASizeThatIsGiven(t *testing.T) {
	r := Read(t.Context(), write(t, filepath.Join(t.TempDir(), "llama"), "rank_", world(4, 0)), Options{WorldSize: 6})
	assert.Empty(t, r.Problems)
	assert.Len(t, r.Hangs[0].Absent, 2)
	assert.False(t, r.Hangs[0].SizeRefused)
}

// What lies beside the dumps of a job and cannot be read is no rank of it for its name alone.
func TestANameMakesNoRank(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "llama")
	paths := write(t, dir, "rank_", world(4, 0))
	paths = append(paths, put(t, filepath.Join(dir, "rank_4"), []byte("no dump")))
	r := Read(t.Context(), paths, Options{})
	assert.Contains(t, problemsOf(r), "rank_4: ")
	require.Len(t, r.Hangs, 1)
	assert.Empty(t, r.Hangs[0].Absent)
	namesRank2(t, &r.Hangs[0])
	// Nor where nobody says how many the job has.
	gloo := world(4, 0)
	for _, d := range gloo {
		d.Groups[0].Ranks = nil
		for i := range d.Entries {
			d.Entries[i].Name = "gloo:all_reduce"
		}
	}
	paths = append(write(t, dir, "rank_", gloo), put(t, filepath.Join(dir, "rank_99999"), []byte("no dump")))
	r = Read(t.Context(), paths, Options{})
	assert.Contains(t, problemsOf(r), "rank_99999: ")
	require.Len(t, r.Hangs, 1)
	assert.Empty(t, r.Hangs[0].Absent)
	assert.True(t, r.Hangs[0].Unlisted)
	// Of a rank that it has, it is why there is no state.
	paths = append(write(t, dir, "rank_", world(8, 0)), put(t, filepath.Join(dir, "rank_5"), []byte("no dump")))
	r = Read(t.Context(), paths[:8], Options{})
	require.Len(t, r.Hangs[0].Absent, 1)
	assert.Equal(t, model.AbsentUnreadable, r.Hangs[0].Absent[0].Reason)
}

// The rank that holds all others up has nothing open: its dump alone says nothing of the job.
func TestTheDumpOfOneRank(t *testing.T) {
	dumps := world(8, 0)
	for r := range dumps {
		if r != 2 {
			dumps[r] = nil
		}
	}
	r := Read(t.Context(), write(t, filepath.Join(t.TempDir(), "llama"), "rank_", dumps), Options{})
	require.Len(t, r.Hangs, 1)
	h := &r.Hangs[0]
	assert.Equal(t, desync.Undecided, h.Verdict)
	assert.Contains(t, h.MayRun, "of 7 of 8 ranks there is no state")
	assert.Empty(t, h.Roots)
}

// A dump of which nothing could be taken is no evidence of anything.
func TestADumpOfNothing(t *testing.T) {
	for _, text := range []string{
		`{"version": "2.10", "entries": [1, 2, "x", null]}`,
		`{"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0]"}}, "entries": [{"collective_seq_id": -1, "process_group": ["0", "default_pg"], "profiling_name": "nccl:all_reduce", "state": "scheduled"}]}`,
	} {
		path := put(t, filepath.Join(t.TempDir(), "rank_0"), []byte(text))
		r := Read(t.Context(), []string{path}, Options{})
		require.Len(t, r.Hangs, 1, text)
		assert.Equal(t, desync.NoData, r.Hangs[0].Verdict, text)
		assert.Zero(t, r.Hangs[0].Entries)
		assert.Equal(t, 1, r.Hangs[0].Partial)
		assert.Contains(t, problemsOf(r), "operations")
	}
}

// Of several incidents nothing says of which a dump without a time is.
func TestDumpsWithoutTimes(t *testing.T) {
	for later, want := range map[int64]string{
		18 * 60: "The dump of rank 7 tells no time; that it is of the same incident is not certain.",
		0:       "",
	} {
		dumps := mixed(later)
		for i := range dumps[7].Entries {
			dumps[7].Entries[i].Created = 0
		}
		r := Read(t.Context(), write(t, filepath.Join(t.TempDir(), "llama"), "rank_", dumps), Options{})
		of := slices.IndexFunc(r.Hangs, func(h Hang) bool {
			return !slices.ContainsFunc(h.Absent, func(a model.Absence) bool { return a.Rank == 7 })
		})
		assert.Equal(t, want, r.Hangs[of].Times)
	}
}

// Groups that are small name ranks of a large job: it has at least those.
func TestRanksOfSmallGroups(t *testing.T) {
	dumps := world(4, 0)
	for r, d := range dumps {
		first := int64(r)
		d.Groups[0].Desc, d.Groups[0].Ranks = "data", []int64{first, first + 4, first + 8, first + 12}
		for i := range d.Entries {
			d.Entries[i].Desc = "data"
		}
	}
	dir := filepath.Join(t.TempDir(), "llama")
	paths := append(write(t, dir, "rank_", dumps), put(t, filepath.Join(dir, "rank_12"), []byte("no dump")))
	r := Read(t.Context(), paths, Options{})
	require.Len(t, r.Hangs, 1)
	require.Len(t, r.Hangs[0].Absent, 12)
	for _, a := range r.Hangs[0].Absent {
		want := model.AbsentMissing
		if a.Rank == 12 {
			want = model.AbsentUnreadable
		}
		assert.Equal(t, want, a.Reason, a.Rank)
	}
	for _, root := range r.Hangs[0].Roots {
		assert.NotContains(t, evidence.Encode(root.Finding.Evidence), `"world_size":4`)
	}
}
