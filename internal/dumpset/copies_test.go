// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
)

// withOwn gives each dump a group of its rank alone, which says whose it is.
func withOwn(dumps []*frwrite.Dump) []*frwrite.Dump {
	for r, d := range dumps {
		d.Groups = append(d.Groups, frwrite.Group{Name: "own", Desc: "own", Ranks: []int64{int64(r)}})
	}
	return dumps
}

// A backup beside the dumps is not a job of its own, under whatever name.
func TestABackupIsLeftOut(t *testing.T) {
	for name, dir := range map[string]string{"_dump_1.bak": "", "copy_of_1": "", "_dump_1": "old"} {
		t.Run(filepath.Join(dir, name), func(t *testing.T) {
			top := t.TempDir()
			dumps := withOwn(world(4, 0))
			paths := write(t, filepath.Join(top, dir), "x", nil)
			paths = append(paths, put(t, filepath.Join(top, dir, name), frwrite.Pickle(dumps[1])))
			paths = append(paths, write(t, top, "_dump_", dumps)...)
			r := Read(t.Context(), paths, Options{})
			require.Len(t, r.Hangs, 1, problemsOf(r))
			assert.Equal(t, 4, r.Hangs[0].Files)
			assert.Equal(t, 1, r.Stats.Copies)
			assert.Contains(t, problemsOf(r), "the copy is left out")
			namesRank2(t, &r.Hangs[0])
		})
	}
}

// An older dump of a rank under a name that is none of a dump does not speak beside the one
// that has the name.
func TestANameThatTellsNoRankYields(t *testing.T) {
	dir := t.TempDir()
	dumps := withOwn(world(4, 0))
	paths := write(t, dir, "_dump_", dumps)
	older := withOwn(world(4, -60))[1]
	older.Entries = older.Entries[:5]
	paths = append(paths, put(t, filepath.Join(dir, "_dump_1.bak"), frwrite.Pickle(older)))
	r := Read(t.Context(), paths, Options{})
	require.Len(t, r.Hangs, 1, problemsOf(r))
	assert.Contains(t, problemsOf(r), "_dump_1.bak: tell dumps of rank 1 apart: its name does not say that rank, and another's beside it does; the dump is left out")
	namesRank2(t, &r.Hangs[0])
	assert.Empty(t, r.Hangs[0].Absent)
}

// One process has one rank: of two names that say different ones, one is wrong.
func TestOneContentUnderTwoRanks(t *testing.T) {
	dir := t.TempDir()
	dumps := world(4, 0)
	dumps[3] = dumps[0]
	r := Read(t.Context(), write(t, dir, "rank_", dumps), Options{})
	require.Len(t, r.Hangs, 1)
	assert.Contains(t, problemsOf(r), "rank_0: find rank of dump: "+filepath.Join(dir, "rank_3")+" has the same content, under the name of rank 3: one of the two names is wrong")
	assert.Contains(t, problemsOf(r), "rank_3: find rank of dump: "+filepath.Join(dir, "rank_0")+" has the same content, under the name of rank 0")
	assert.Len(t, r.Hangs[0].Absent, 2)

	t.Run("one of which has its own", func(t *testing.T) {
		dir := t.TempDir()
		dumps := world(4, 0)
		paths := write(t, dir, "_dump_", dumps)
		paths = append(paths, put(t, filepath.Join(dir, "_dump_1_3"), frwrite.Pickle(dumps[1])))
		r := Read(t.Context(), paths, Options{})
		require.Len(t, r.Hangs, 1, problemsOf(r))
		assert.Contains(t, problemsOf(r), "_dump_1_3: has the same content as "+filepath.Join(dir, "_dump_1"))
		assert.Empty(t, r.Hangs[0].Absent)
		namesRank2(t, &r.Hangs[0])
	})
}

// Ranks that recorded nothing have equal dumps, and are no copies.
func TestEmptyDumpsAreNoCopies(t *testing.T) {
	dumps := world(4, 0)
	for _, d := range dumps {
		d.Entries, d.Status = nil, nil
	}
	r := Read(t.Context(), write(t, t.TempDir(), "rank_", dumps), Options{})
	assert.Zero(t, r.Stats.Copies)
	assert.Equal(t, 4, r.Hangs[0].Files)
	assert.Empty(t, r.Problems)
}

func TestSameContent(t *testing.T) {
	dir := t.TempDir()
	long := bytes.Repeat([]byte("x"), 3*comparedAt)
	other := bytes.Clone(long)
	other[2*comparedAt+5] = 'y'
	a := put(t, filepath.Join(dir, "a"), long)
	assert.True(t, sameContent(a, put(t, filepath.Join(dir, "b"), long)))
	assert.False(t, sameContent(a, put(t, filepath.Join(dir, "c"), other)))
	assert.False(t, sameContent(a, put(t, filepath.Join(dir, "d"), long[:2*comparedAt])))
	assert.False(t, sameContent(a, filepath.Join(dir, "none")))
	assert.False(t, sameContent(filepath.Join(dir, "none"), a))
}
