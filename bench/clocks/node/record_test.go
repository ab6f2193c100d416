// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/clock/pair"
)

func TestRecorderTellsOfEachPairOnce(t *testing.T) {
	var r recorder
	e := pair.New(pair.Config{Record: r.of("a", "b")})
	pair.New(pair.Config{Record: r.of("a", "idle")})
	e.Upper(1, 2, 3)
	e.Lower(4, 5, 6)
	e.Close(7)
	got := r.take()
	require.Len(t, got, 1)
	assert.True(t, got[0].Fresh)
	assert.Equal(t, [][4]int64{{0, 1, 2, 3}, {1, 4, 5, 6}, {2, 7, 0, 0}}, got[0].Inputs)
	assert.Empty(t, r.take())
	e.Close(8)
	got = r.take()
	require.Len(t, got, 1)
	assert.False(t, got[0].Fresh)
	assert.Equal(t, [][4]int64{{2, 8, 0, 0}}, got[0].Inputs)
}

func TestRecorderIsBounded(t *testing.T) {
	var r recorder
	record := r.of("a", "b")
	for range maxInputs + 5 {
		record(pair.Input{Kind: pair.InputUpper})
	}
	record(pair.Input{Kind: pair.InputClose})
	got := r.take()
	require.Len(t, got, 1)
	assert.Len(t, got[0].Inputs, maxInputs+1)
	assert.Equal(t, int64(5), got[0].Cut)
}
