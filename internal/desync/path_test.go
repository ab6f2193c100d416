// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A way names with each operation why that one does not end.
func TestAWayGivesReasonsOfItsOperations(t *testing.T) {
	rep := conclude(t, `
group D 0-1
group P 1-2
rank 0: D ar 5
rank 1: P send>2 nth=1; D ar 4 done; D ar 5
rank 2: P=0/0`)
	require.Len(t, rep.Roots, 1)
	require.Len(t, rep.Roots[0].Path, 1)
	h := rep.Roots[0].Path[0]
	assert.Equal(t, int64(0), h.Rank)
	assert.Equal(t, "all_reduce", h.Op.Name)
	assert.Equal(t, int64(2), h.For)
	assert.Equal(t, "which stands behind send 1 -> 2 of P, whose other end rank 2 has not enqueued", h.Why)
}
