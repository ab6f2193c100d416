// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
)

// evicted is a job whose buffers hold the operations of its first group only, all over. Of the
// others nothing but the counts is left: those of counts, by the process's own number of the group.
func evicted(n int, names []string, counts map[int64][2]int64) []*frwrite.Dump {
	dumps := world(n, 0)
	for r, d := range dumps {
		d.Entries, d.Status = nil, nil
		ranks := make([]int64, n)
		for i := range ranks {
			ranks[i] = int64(i)
		}
		d.Groups = nil
		for _, name := range names {
			d.Groups = append(d.Groups, frwrite.Group{Name: name, Desc: "of " + name, Ranks: ranks})
		}
		for i := range int64(40) {
			e := frwrite.Entry{
				RecordID: 1000 + i, PGID: 0, Group: names[0], Desc: "of " + names[0], CollectiveSeq: 500 + i, OpID: 500 + i, Name: "nccl:all_reduce",
				Created: 1758580155_000_000_000 + i*1e6 + int64(r), In: [][]int64{{4}}, Out: [][]int64{{4}},
				InTypes: []string{"Float"}, OutTypes: []string{"Float"}, State: frwrite.Completed, Retired: true, TimeoutMS: 600_000,
			}
			e.Completed = e.Created + 1000
			d.Entries = append(d.Entries, e)
		}
		d.Status = []frwrite.Status{{PGID: 0, Enqueued: 539, Started: -1, Completed: 539}}
		for id, c := range counts {
			d.Status = append(d.Status, frwrite.Status{PGID: id, Enqueued: c[0], Started: -1, Completed: c[1]})
		}
	}
	return dumps
}

// What was enqueued, and is not over, is no health where its entry was overwritten.
func TestEvictedOperations_AreNoHealth(t *testing.T) {
	for name, c := range map[string]struct {
		names  []string
		counts map[int64][2]int64
	}{
		"groups named by numbers":          {[]string{"0", "1"}, map[int64][2]int64{1: {10, 9}}},
		"groups named by hashes":           {[]string{"0", "mesh_shard"}, map[int64][2]int64{1: {10, 9}}},
		"counts of groups without a name":  {[]string{"0"}, map[int64][2]int64{1: {10, 9}, 2: {4, 4}}},
		"more groups than counts":          {[]string{"0", "1", "2"}, map[int64][2]int64{2: {7, 3}}},
		"several behind":                   {[]string{"0", "a", "b"}, map[int64][2]int64{1: {7, 3}, 2: {20, 19}}},
		"nothing of it was ever completed": {[]string{"0", "a"}, map[int64][2]int64{1: {1, -1}}},
	} {
		for form, encode := range map[string]func(*frwrite.Dump) []byte{"pickle": frwrite.Pickle, "json": frwrite.JSON} {
			t.Run(name+" "+form, func(t *testing.T) {
				dir := t.TempDir()
				var paths []string
				for r, d := range evicted(4, c.names, c.counts) {
					paths = append(paths, put(t, filepath.Join(dir, "rank_"+strconv.Itoa(r)), encode(d)))
				}
				res := Read(t.Context(), paths, Options{})
				require.Len(t, res.Hangs, 1)
				h := res.Hangs[0]
				assert.NotEqual(t, desync.Healthy, h.Verdict)
				assert.NotEqual(t, desync.NoData, h.Verdict)
				for _, root := range h.Roots {
					assert.Empty(t, root.Finding.Ranks, "nobody is accused")
				}
			})
		}
	}
	for name, counts := range map[string]map[int64][2]int64{
		"all of it is over": {1: {10, 10}},
		"never used":        {1: {-1, -1}},
		"none":              {},
	} {
		t.Run(name, func(t *testing.T) {
			res := Read(t.Context(), write(t, t.TempDir(), "rank_", evicted(4, []string{"0", "mesh_shard"}, counts)), Options{})
			require.Len(t, res.Hangs, 1)
			assert.Equal(t, desync.Healthy, res.Hangs[0].Verdict, res.Hangs[0].MayRun)
		})
	}
}

// One rank alone says that it has something open.
func TestEvictedOperations_OfOneRank(t *testing.T) {
	dumps := evicted(4, []string{"0", "mesh_shard"}, map[int64][2]int64{1: {10, 10}})
	dumps[2].Status[1].Completed = 9
	res := Read(t.Context(), write(t, t.TempDir(), "rank_", dumps), Options{})
	require.Len(t, res.Hangs, 1)
	assert.Equal(t, desync.Undecided, res.Hangs[0].Verdict)
	require.NotEmpty(t, res.Hangs[0].Roots)
	assert.Contains(t, res.Hangs[0].Roots[0].Finding.Candidates, int64(2))
}
