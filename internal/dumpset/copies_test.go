// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"bytes"
	"path/filepath"
	"strconv"
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

// Ranks that do the same can write the same bytes: the names tell them apart.
func TestOneContentUnderTheNamesOfTwoRanks_BothAreTaken(t *testing.T) {
	same := func(dumps []*frwrite.Dump, as int, ranks ...int) {
		for _, r := range ranks {
			dumps[r] = dumps[as]
		}
	}
	for name, alike := range map[string]func([]*frwrite.Dump){
		"two":                    func(d []*frwrite.Dump) { same(d, 0, 3) },
		"all that wait":          func(d []*frwrite.Dump) { same(d, 0, 1, 3) },
		"neighbours":             func(d []*frwrite.Dump) { same(d, 0, 1) },
		"without times":          func(d []*frwrite.Dump) { same(d, 1, 3); clearTimes(d[1]) },
		"without call stacks":    func(d []*frwrite.Dump) { same(d, 1, 0); clearFrames(d[1]) },
		"of one older operation": func(d []*frwrite.Dump) { same(d, 3, 0); d[3].Entries = d[3].Entries[1:] },
	} {
		for form, write := range map[string]func(*testing.T, []*frwrite.Dump) []string{
			"in one folder": func(t *testing.T, d []*frwrite.Dump) []string { t.Helper(); return write(t, t.TempDir(), "rank_", d) },
			"a folder for each": func(t *testing.T, d []*frwrite.Dump) (paths []string) {
				t.Helper()
				dir := t.TempDir()
				for r := range d {
					one := make([]*frwrite.Dump, len(d))
					one[r] = d[r]
					paths = append(paths, write(t, filepath.Join(dir, "node"+strconv.Itoa(r)), "rank_", one)...)
				}
				return paths
			},
		} {
			t.Run(name+" "+form, func(t *testing.T) {
				dumps := world(4, 0)
				alike(dumps)
				r := Read(t.Context(), write(t, dumps), Options{})
				require.Len(t, r.Hangs, 1, problemsOf(r))
				assert.Equal(t, 4, r.Hangs[0].Ranks, problemsOf(r))
				assert.Empty(t, r.Hangs[0].Absent)
				assert.Zero(t, r.Stats.Copies)
				namesRank2(t, &r.Hangs[0])
			})
		}
	}
}

func clearTimes(d *frwrite.Dump) {
	for i := range d.Entries {
		d.Entries[i].Created = 0
	}
}

func clearFrames(d *frwrite.Dump) {
	for i := range d.Entries {
		d.Entries[i].Frames = nil
	}
}

func TestOneContentUnderTwoNames_TheCopyIsLeftOut(t *testing.T) {
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
