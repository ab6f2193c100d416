// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// clocked is a job of n ranks that is through all_reduce 12, with times as clocks give them.
func clocked(n int) []*frwrite.Dump {
	dumps := world(n, 0)
	for r, d := range dumps {
		last := d.Entries[0]
		d.Entries = nil
		for seq := int64(1); seq <= 12; seq++ {
			e := last
			e.RecordID, e.CollectiveSeq, e.OpID = seq-1, seq, seq
			e.Created += seq*1_000_000_123 + seq*seq*7_919 + int64(r)*1_003*seq
			e.Completed = e.Created + 100
			d.Entries = append(d.Entries, e)
		}
		d.Status = []frwrite.Status{{PGID: 0, Enqueued: 12, Started: -1, Completed: 12}}
	}
	return dumps
}

// waiting opens the newest operation.
func waiting(d *frwrite.Dump) {
	e := &d.Entries[len(d.Entries)-1]
	e.State, e.Completed, e.Retired = frwrite.Scheduled, 0, false
	d.Status[0].Completed = 11
}

func TestRead_OneDumpUnderAllNames_IsNoHealth(t *testing.T) {
	for name, change := range map[string]func([]*frwrite.Dump){
		"through all":   func([]*frwrite.Dump) {},
		"waiting in it": func(d []*frwrite.Dump) { waiting(d[1]) },
		"in one rhythm": func(d []*frwrite.Dump) {
			for i := range d[1].Entries {
				d[1].Entries[i].Created = 1758580155_000_005_000 + int64(i)*30_000_000
			}
		},
		"without frames":    func(d []*frwrite.Dump) { clearFrames(d[1]) },
		"of two ranks":      func(d []*frwrite.Dump) { d[2], d[3] = nil, nil },
		"two of four":       func(d []*frwrite.Dump) { fresh := clocked(4); d[0], d[3] = fresh[0], fresh[3] },
		"three of four":     func(d []*frwrite.Dump) { d[3] = clocked(4)[3] },
		"three, two others": func(d []*frwrite.Dump) { d[0] = clocked(4)[0] },
	} {
		t.Run(name, func(t *testing.T) {
			dumps := clocked(4)
			for r := range dumps {
				dumps[r] = dumps[1]
			}
			change(dumps)
			r := Read(t.Context(), write(t, t.TempDir(), "rank_", dumps), Options{})
			require.Len(t, r.Hangs, 1, problemsOf(r))
			assert.NotEqual(t, desync.Healthy, r.Hangs[0].Verdict)
			assert.Contains(t, problemsOf(r), "are copies of one")
			assert.Equal(t, 1, r.Stats.Repeated)
		})
	}
}

func TestRead_OneDumpGatheredForAllRanks_IsNoHealth(t *testing.T) {
	all := map[string]json.RawMessage{}
	one := frwrite.JSON(clocked(4)[1])
	for _, rank := range []string{"0", "1", "2", "3"} {
		all[rank] = one
	}
	data, err := json.Marshal(all)
	require.NoError(t, err)
	r := Read(t.Context(), []string{put(t, filepath.Join(t.TempDir(), "all.json"), data)}, Options{})
	require.Len(t, r.Hangs, 1, problemsOf(r))
	assert.Equal(t, desync.Undecided, r.Hangs[0].Verdict, problemsOf(r))
	assert.Equal(t, "the dumps of ranks 0-3 are copies of one: their operations have the same times to the nanosecond, which those of two processes do not have", r.Hangs[0].MayRun)
	assert.Empty(t, r.Hangs[0].Roots)
}

func TestRead_EqualDumpsThatMayBeOfTwoRanks_AreTaken(t *testing.T) {
	for name, change := range map[string]func([]*frwrite.Dump){
		"each its own":              func([]*frwrite.Dump) {},
		"milliseconds, two of four": func(d []*frwrite.Dump) { rounded(d...); d[2] = d[1] },
		"milliseconds, three of four in one step": func(d []*frwrite.Dump) {
			rounded(d...)
			for r := 1; r < 4; r++ {
				*d[r] = *d[0]
			}
			d[3].Entries = d[3].Entries[1:]
		},
		"rounded": func(d []*frwrite.Dump) {
			for r := range d {
				d[r] = d[0]
			}
			rounded(d[0])
		},
		"without times": func(d []*frwrite.Dump) {
			for r := range d {
				d[r] = d[0]
			}
			clearTimes(d[0])
		},
	} {
		t.Run(name, func(t *testing.T) {
			dumps := clocked(4)
			change(dumps)
			r := Read(t.Context(), write(t, t.TempDir(), "rank_", dumps), Options{})
			require.Len(t, r.Hangs, 1, problemsOf(r))
			assert.Equal(t, desync.Healthy, r.Hangs[0].Verdict)
			assert.Empty(t, r.Problems)
		})
	}
}

// rounded cuts times to milliseconds.
func rounded(dumps ...*frwrite.Dump) {
	for _, d := range dumps {
		for i := range d.Entries {
			d.Entries[i].Created -= d.Entries[i].Created % 1_000_000
		}
	}
}

// Of ranks whose dumps are copies nothing is known: what these have entered, or lack, decides nothing.
func TestRead_CopiesOfDumps_AreNoEvidence(t *testing.T) {
	copied := func(d []*frwrite.Dump, from int, to ...int) {
		for _, r := range to {
			d[r] = d[from]
		}
	}
	apart := func(d []*frwrite.Dump) { // by more than milliseconds
		for r := range d {
			for i := range d[r].Entries {
				d[r].Entries[i].Created += int64(r) * 7_000_000
			}
		}
	}
	for name, tc := range map[string]struct {
		change func(d []*frwrite.Dump)
		known  int
		ranks  []int64 // that may be at fault
	}{
		"one that waits, for the one that lacks it": {func(d []*frwrite.Dump) { copied(d, 0, 5) }, 6, []int64{0, 5}},
		"a node of three":                      {func(d []*frwrite.Dump) { copied(d, 4, 5, 6) }, 5, []int64{4, 5, 6}},
		"two nodes":                            {func(d []*frwrite.Dump) { copied(d, 0, 1, 2); copied(d, 4, 5, 6) }, 2, []int64{0, 1, 2, 3, 4, 5, 6, 7}},
		"one that lacks it, for two that wait": {func(d []*frwrite.Dump) { copied(d, 5, 2, 3) }, 5, []int64{2, 3, 5}},
		"in milliseconds, others finer": {func(d []*frwrite.Dump) {
			rounded(d[4])
			copied(d, 4, 5)
		}, 6, []int64{4, 5}},
		"all in milliseconds": {func(d []*frwrite.Dump) {
			apart(d)
			rounded(d...)
			copied(d, 6, 4, 5)
		}, 5, []int64{4, 5, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, hung := range []bool{false, true} {
				dumps := clocked(8)
				for r, d := range dumps {
					if waiting(d); r == 5 {
						d.Entries, d.Status[0] = d.Entries[:11], frwrite.Status{Enqueued: 11, Started: -1, Completed: 11}
					}
				}
				tc.change(dumps)
				r := Read(t.Context(), write(t, t.TempDir(), "rank_", dumps), Options{Hung: hung})
				require.Len(t, r.Hangs, 1, problemsOf(r))
				h := &r.Hangs[0]
				assert.Equal(t, tc.known, h.Ranks)
				assert.Contains(t, problemsOf(r), "are copies of one")
				assert.NotEqual(t, desync.Healthy, h.Verdict)
				for i := range h.Roots {
					f := &h.Roots[i].Finding
					assert.NotEqual(t, model.ClassStalledOp, f.Class)
					assert.Subset(t, tc.ranks, f.Ranks)
					assert.Subset(t, tc.ranks, f.Candidates)
					for _, rank := range tc.ranks {
						assert.NotContains(t, f.Waiting, rank)
					}
				}
			}
		})
	}
}

// Where every dump has a copy, nothing is known of any rank.
func TestRead_EachDumpCopied_KnowsNothing(t *testing.T) {
	dumps := clocked(8)
	for r, d := range dumps {
		if waiting(d); r > 3 {
			dumps[r] = dumps[4]
		} else {
			dumps[r] = dumps[0]
		}
	}
	rounded(dumps[0])
	r := Read(t.Context(), write(t, t.TempDir(), "rank_", dumps), Options{Hung: true})
	require.Len(t, r.Hangs, 1, problemsOf(r))
	assert.Equal(t, desync.Undecided, r.Hangs[0].Verdict)
	assert.Empty(t, r.Hangs[0].Roots)
	assert.Contains(t, r.Hangs[0].MayRun, "ranks 0-3")
	assert.Contains(t, r.Hangs[0].MayRun, "ranks 4-7")
}

// The report names the unit in which the times of copies are equal.
func TestRead_CopiesInMilliseconds_AreNotCalledEqualToTheNanosecond(t *testing.T) {
	for name, tc := range map[string]struct {
		change    func(d []*frwrite.Dump)
		want, not string
	}{
		"exact":                      {func([]*frwrite.Dump) {}, "the same times to the nanosecond", "millisecond"},
		"whole ms, others finer":     {func(d []*frwrite.Dump) { rounded(d[1]) }, "the same times to the millisecond", "nanosecond"},
		"whole ms, two others apart": {apartInMilliseconds, "the same times to the millisecond", "nanosecond"},
	} {
		t.Run(name, func(t *testing.T) {
			dumps := clocked(4)
			tc.change(dumps)
			dumps[2] = dumps[1]
			r := Read(t.Context(), write(t, t.TempDir(), "rank_", dumps), Options{})
			assert.Contains(t, problemsOf(r), tc.want)
			assert.NotContains(t, problemsOf(r), tc.not)
		})
	}
}

func apartInMilliseconds(d []*frwrite.Dump) {
	for r := range d {
		for i := range d[r].Entries {
			d[r].Entries[i].Created += int64(r) * 7_000_000
		}
	}
	rounded(d...)
}
