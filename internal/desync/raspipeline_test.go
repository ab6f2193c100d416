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
)

// A pipeline of three stages with four replicas, of which one stands still in one stage: the others of its
// replica wait for it in messages, and all three lack the last reduction of their stage. That a stage has
// more communicators than others is no evidence.
func TestCounts_StagesOfOneReplicaBehind_AccuseNobody(t *testing.T) {
	for name, more := range map[string]map[int64][]int64{ // by stage, the replicas that share one more communicator
		"alike":                     {},
		"first stage has experts":   {0: {0, 1, 2, 3}},
		"last stage has experts":    {2: {0, 1, 2, 3}},
		"embeddings of some":        {0: {0, 1}},
		"two stages have something": {0: {0, 1, 2, 3}, 1: {0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			a := desync.New(desync.Config{})
			a.SetSaved(false, "")
			for _, at := range []time.Duration{30 * time.Second, 0} {
				for r := range int64(12) {
					stage, n := r/4, int64(40)
					if r%4 == 0 {
						n--
					}
					all := []int64{4 * stage, 4*stage + 1, 4*stage + 2, 4*stage + 3}
					of := string(rune('a' + stage))
					counts := []counted{{"dp" + of, all, map[string]int64{model.AllReduce: n}}}
					var members []int64
					for _, replica := range more[stage] {
						members = append(members, 4*stage+replica)
					}
					if slices.Contains(members, r) {
						counts = append(counts, counted{"edp" + of, members, map[string]int64{model.AllReduce: n}})
					}
					answered(a, at, r, counts...)
				}
			}
			rep := a.Conclude(0)
			require.Len(t, rep.Roots, 1)
			assert.Empty(t, rep.Roots[0].Finding.Ranks)
			assert.Equal(t, []int64{0, 4, 8}, rep.Roots[0].Finding.Candidates)
		})
	}
}
