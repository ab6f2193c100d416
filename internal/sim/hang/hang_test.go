// SPDX-License-Identifier: Apache-2.0

package hang

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every family takes hold in some layout, and what physically waits, waits for who is at
// fault: the truth that is told is the one that was put in.
func TestWhoHangsWaitsForTheFault(t *testing.T) {
	for _, family := range Families() {
		t.Run(family, func(t *testing.T) {
			held := 0
			for _, l := range Layouts {
				for seed := range uint64(2) {
					j, err := Run(l, family, seed)
					if err != nil {
						require.ErrorIs(t, err, ErrNoPlace)
						continue
					}
					held++
					assertReached(t, j, l.Name)
				}
			}
			assert.Positive(t, held)
		})
	}
}

// assertReached: each rank that hangs is at fault, or in the operation at fault, or waits
// for one of these.
func assertReached(t *testing.T, j *Job, name string) {
	t.Helper()
	good := map[int]bool{}
	for _, f := range j.Truth().Faults {
		for _, r := range f.Ranks {
			good[int(r)] = true
		}
		for _, r := range f.Concerned {
			good[int(r)] = true
		}
	}
	for r := range j.ranks {
		if good[r] || !j.hung(r) {
			continue
		}
		reached := j.reach(r)
		assert.True(t, slices.ContainsFunc(j.ranks, func(o rank) bool { return good[o.id] && reached[o.id] }), "%s: rank %d hangs for another reason; %+v", name, r, j.Truth())
	}
}

func TestHealthyJobsEnd(t *testing.T) {
	for _, l := range Layouts {
		j, err := Run(l, Healthy, 1)
		require.NoError(t, err, l.Name)
		assert.Empty(t, j.Truth().Faults)
		for r := range j.ranks {
			assert.False(t, j.hung(r), "%s rank %d", l.Name, r)
		}
		t.Logf("%s: %d instructions, %.3f s", l.Name, len(j.ranks[0].program), float64(j.last-start)/1e9)
	}
}
