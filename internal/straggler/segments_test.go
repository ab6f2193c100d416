// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// collective returns an all-reduce of the given bytes, from and to in ms.
func collective(step, seq, bytes int64, from, to float64) model.Op {
	return model.Op{
		Kind: model.KindCollective, Name: model.AllReduce, Seq: seq, Start: nanos(from), End: nanos(to),
		Step: model.Some(step), Stream: model.Some(seq), Comm: model.Comm{ID: "world", Size: model.Some(int64(2))},
		Collective: model.Collective{
			Name: model.AllReduce, Seq: model.Some(seq), SeqScope: model.ScopeOrdinal, Bytes: model.Some(bytes),
		},
	}
}

// alone delivers a step of rank 0 alone, whose collectives have members that never come.
func (w *world) alone(ops []model.Op) []*StepReport {
	return append(w.e.Add(w.rank(0), ops), w.e.Flush()...)
}

func stepOp(step int64, from, to float64) model.Op {
	return model.Op{Kind: model.KindStep, Name: "step", Start: nanos(from), End: nanos(to), Step: model.Some(step)}
}

func TestOverlappingCollectivesShareNoOwnTime(t *testing.T) {
	for name, same := range map[string]bool{"anchored in the step before": false, "anchored in the same step": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			for r, late := range []float64{0, 10} {
				// The first is over at 1 ms; the two others run side by side, so
				// that both of their segments begin there.
				first, others := collective(1, 0, 8, 0, 1), []model.Op{
					collective(2, 0, 16, 1+late, 13), collective(2, 1, 32, 2+late, 14), stepOp(2, 1, 14),
				}
				if same {
					first = collective(2, 0, 8, 0, 1)
					others = []model.Op{collective(2, 1, 16, 1+late, 13), collective(2, 2, 32, 2+late, 14), stepOp(2, 0, 14)}
				} else {
					others = append(others, stepOp(1, 0, 1))
				}
				w.reports = append(w.reports, w.e.Add(w.rank(int64(r)), append(others, first))...)
			}
			rep := w.reports[len(w.reports)-1]
			assert.Equal(t, int64(2), rep.Step)
			assert.Equal(t, 10*ms, rep.Ranks[1].Excess[model.ClassHost], "10 ms of idleness count once")
			assert.Equal(t, 20*ms, rep.Ranks[1].WaitCaused, "but both collectives waited")
		})
	}
}

func TestOrdinalsAreResynchronisedByBytes(t *testing.T) {
	for name, tc := range map[string]struct {
		bytes    []int64 // of the three that rank 0 saw; rank 1 saw the last two
		meetings int
	}{
		"bytes tell":        {[]int64{8, 16, 32}, 2},
		"bytes do not tell": {[]int64{8, 8, 8}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			b := tc.bytes
			w.e.Add(w.rank(0), []model.Op{
				collective(1, 0, b[0], 0, 1), collective(1, 1, b[1], 10, 11), collective(1, 2, b[2], 20, 21), stepOp(1, 0, 30),
			})
			// Its numbers begin at 0 because its recording began later.
			reports := w.e.Add(w.rank(1), []model.Op{collective(1, 0, b[1], 10, 11), collective(1, 1, b[2], 20, 21), stepOp(1, 5, 30)})
			require.Len(t, reports, 1)
			assert.Len(t, reports[0].Meetings, tc.meetings)
			for _, m := range reports[0].Meetings {
				assert.Equal(t, m.Members[0].Enter, m.Members[1].Enter, "partners are those that began together")
			}
		})
	}
}

func TestGroupsOfOneNameAreKeptApart(t *testing.T) {
	for name, tc := range map[string]struct {
		digests []string // of the group that each rank is in
		want    [][]int64
	}{
		"two groups":                  {[]string{"a", "a", "b", "b"}, [][]int64{{0, 1}, {2, 3}}},
		"nobody knows":                {[]string{"", "", "", ""}, [][]int64{{0, 1, 2, 3}}},
		"one does not know, of one":   {[]string{"a", "", "a", "a"}, [][]int64{{0, 1, 2, 3}}},
		"one does not know, of two":   {[]string{"a", "a", "", "b"}, [][]int64{{0, 1}}},
		"a group of one meets nobody": {[]string{"a", "b", "b", "b"}, [][]int64{{1, 2, 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4)
			for r, digest := range tc.digests {
				c := collective(1, 0, 8, 0, 1)
				c.Comm.Digest, c.Comm.Size = digest, model.Optional[int64]{}
				w.reports = append(w.reports, w.e.Add(w.rank(int64(r)), []model.Op{c, stepOp(1, 0, 1)})...)
			}
			require.Len(t, w.reports, 1)
			var got [][]int64
			for _, m := range w.reports[0].Meetings {
				var ranks []int64
				for _, x := range m.Members {
					ranks = append(ranks, x.Rank)
				}
				slices.Sort(ranks)
				got = append(got, ranks)
			}
			slices.SortFunc(got, slices.Compare)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestIdlenessBelongsToTheScopeThatBeganLast(t *testing.T) {
	for name, tc := range map[string]struct {
		scopes [][2]float64 // named a, b, ... in order; ms
		want   map[string]float64
	}{
		"nested":      {[][2]float64{{0, 10}, {2, 5}}, map[string]float64{"a": 7, "b": 3, otherKey: 10}},
		"overlapping": {[][2]float64{{0, 10}, {5, 15}}, map[string]float64{"a": 5, "b": 10, otherKey: 5}},
		"three deep":  {[][2]float64{{0, 20}, {2, 12}, {4, 6}}, map[string]float64{"a": 10, "b": 8, "c": 2}},
		"none":        {nil, map[string]float64{otherKey: 20}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			ops := []model.Op{stepOp(1, 0, 20)}
			for i, s := range tc.scopes {
				ops = append(ops, model.Op{Kind: model.KindScope, Name: string(rune('a' + i)), Start: nanos(s[0]), End: nanos(s[1]), Step: model.Some(int64(1))})
			}
			w.e.Add(w.rank(0), ops)
			j := w.e.sorted()[0]
			got := map[string]float64{}
			for _, of := range j.window[0].ranks[0].idleBy {
				key, ns := of.key, of.ns
				got[j.keys.name(key)] = float64(ns) / 1e6
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestOldStepsCanBeFreed(t *testing.T) {
	w := newWorld(t, 2, func(c *Config) { c.Window = 3 })
	for n := range int64(10) {
		w.step(n, "c1 * c1 *", "c1 * c1 *")
	}
	j := w.e.sorted()[0]
	require.Len(t, j.window, 3)
	for _, mr := range j.window[0].meets {
		for i := range mr.members {
			m := &mr.members[i]
			assert.NotEqual(t, anchoredBefore, m.anchored)
			if m.anchor != nil {
				assert.True(t, slices.ContainsFunc(j.window[0].meets, func(o *meetingRecord) bool { return m.anchor == &o.members[i] }),
					"an anchor must not keep an old step alive")
			}
		}
	}
	assert.Equal(t, anchoredBefore, j.window[1].meets[0].members[0].anchored, "the segment across steps is kept inside the window")
}
