// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// sharded are two answers of a job whose ranks gather within shards of so many and reduce across them.
// Those of behind have not launched the last reduction, those of dark do not answer.
func sharded(ranks, shard int64, behind, dark []int64) *desync.Analyzer {
	a := desync.New(desync.Config{})
	a.SetSaved(false, "")
	for _, at := range []time.Duration{30 * time.Second, 0} {
		for r := range ranks {
			if slices.Contains(dark, r) {
				continue
			}
			var own, across []int64
			for o := range ranks {
				if o/shard == r/shard {
					own = append(own, o)
				}
				if o%shard == r%shard {
					across = append(across, o)
				}
			}
			n := int64(40)
			if slices.Contains(behind, r) {
				n--
			}
			answered(a, at, r,
				counted{"shard" + string(rune('a'+r/shard)), own, map[string]int64{model.AllGather: 60}},
				counted{"across" + string(rune('a'+r%shard)), across, map[string]int64{model.AllReduce: n}})
		}
	}
	for _, r := range dark {
		a.AddAbsence(model.Absence{Rank: r, Reason: model.AbsentMissing, Detail: "it does not answer NCCL's RAS"})
	}
	return a
}

// A rank that is behind may wait for one that does not answer, in a communicator that is not listed as
// members of it differ: it is not accused.
func TestSavedAnswers_BesideOneThatDoesNotAnswer_NamesNobody(t *testing.T) {
	for name, c := range map[string]struct {
		ranks, shard int64
		behind, dark []int64
		named        []int64
		first        int64 // candidate
	}{
		"a shard waits for it":         {8, 4, []int64{4, 5, 7}, []int64{6}, nil, 6},
		"of many shards one":           {32, 8, []int64{8, 9, 10, 11, 12, 14, 15}, []int64{13}, nil, 13},
		"two do not answer":            {16, 4, []int64{4, 5}, []int64{6, 7}, nil, 6},
		"it has nothing to do with it": {16, 4, []int64{9}, []int64{2}, []int64{9}, -1},
		"all answer":                   {16, 4, []int64{9}, nil, []int64{9}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			rep := sharded(c.ranks, c.shard, c.behind, c.dark).Conclude(0)
			require.NotEmpty(t, rep.Roots)
			assert.Equal(t, c.named, blamedIn(rep))
			if c.first < 0 {
				return
			}
			require.Len(t, rep.Roots, 1, "one reason is reported once")
			f := &rep.Roots[0].Finding
			assert.Equal(t, model.ClassIncompleteEvidence, f.Class)
			require.NotEmpty(t, f.Candidates)
			assert.Equal(t, c.first, f.Candidates[0])
			assert.Subset(t, f.Candidates, c.behind)
			assert.Contains(t, evidence.Encode(f.Evidence), "may wait for one that does not answer")
		})
	}
}
