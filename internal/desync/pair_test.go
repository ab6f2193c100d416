// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// Of two ranks one is in an operation that the other has not come to: who is right, only what
// others wait in can tell.
func TestTwoRanksAreLessSure(t *testing.T) {
	alone := conclude(t, "group W 0-1\nrank 0: W ar 41 done; W ar 42\nrank 1: W ar 41 done")
	require.Len(t, alone.Roots, 1)
	f := &alone.Roots[0].Finding
	assert.Equal(t, model.ClassNotScheduled, f.Class)
	assert.Equal(t, model.Some[int64](1), f.Rank)
	assert.Contains(t, evidence.Encode(f.Evidence), "one too many")

	both := conclude(t, "group T 0-1\ngroup D 1-2\nrank 0: T ar 41 done; T ar 42\nrank 1: T ar 41 done; D ar 7 done\nrank 2: D ar 7 done; D ar 8")
	require.Len(t, both.Roots, 1)
	g := &both.Roots[0].Finding
	assert.Equal(t, f.Rank, g.Rank)
	assert.NotContains(t, evidence.Encode(g.Evidence), "one too many")
	assert.Greater(t, g.Confidence, f.Confidence)
}
