// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSimulate(t *testing.T) {
	cfg := config{k: 6, rate: 10, load: 0.5, warm: 3, windows: 2, seed: 1}
	var out strings.Builder
	require.NoError(t, run(&out, cfg, "12, 24"))
	assert.Contains(t, out.String(), "100.000%")
	assert.Contains(t, out.String(), "12 to 24 nodes: time grows")
	require.ErrorContains(t, run(&out, cfg, "12,many"), `"many"`)
}

// Errors, bounds and what is counted as contained are of the same placements.
func TestResultCounts(t *testing.T) {
	r, err := simulate(config{nodes: 16, k: 6, rate: 10, load: 0.5, warm: 3, windows: 2, seed: 1})
	require.NoError(t, err)
	assert.Len(t, r.nodeErr, 15*3*2)
	assert.Len(t, r.bounds, 15*2)
	assert.Len(t, r.edgeErr, r.edges*2-r.missing)
	assert.Zero(t, r.outside)
}

// A power is that of the number of edges: ten times the edges, a hundred times the
// time is 2.
func TestExponent(t *testing.T) {
	assert.InDelta(t, 2, exponent(10, 100, 3, 300), 1e-12)
	require.NoError(t, judge([]result{{nodes: 64}}))
	assert.Error(t, judge([]result{{nodes: 64, outside: 1}}))
}
