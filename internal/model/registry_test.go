// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRegistryJoinsWhatSourcesKnow(t *testing.T) {
	r := NewRegistry(DefaultRegistryLimit)
	r.Add(Group{ID: "0xaa", Hashes: []string{"0xbb"}})
	r.Add(Group{ID: "dp_1", Hashes: []string{"0xbb"}, Name: "dp_1", Description: "data parallel"})
	g := r.Add(Group{ID: "0xbb", Ranks: []int64{4, 6}})
	for _, id := range []string{"0xaa", "0xbb", "dp_1"} {
		assert.Same(t, g, r.Get(id), id)
	}
	assert.Equal(t, Group{
		ID: "0xaa", Hashes: []string{"0xbb", "dp_1"}, Name: "dp_1", Description: "data parallel",
		Ranks: []int64{4, 6}, Digest: RanksDigest([]int64{4, 6}),
	}, *g)
	assert.Nil(t, r.Get("unheard of"))
}

func TestRegistryGlobalRank(t *testing.T) {
	r := NewRegistry(10)
	r.Add(Group{ID: "c", Ranks: []int64{4, 6}})
	r.Add(Group{ID: "dark"})
	tests := []struct {
		id    string
		local int64
		want  Optional[int64]
	}{
		{"c", 0, Some(int64(4))},
		{"c", 1, Some(int64(6))},
		{"c", 2, Optional[int64]{}},
		{"c", -1, Optional[int64]{}},
		{"dark", 0, Optional[int64]{}},
		{"unknown", 0, Optional[int64]{}},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, r.GlobalRank(tt.id, tt.local), "%s/%d", tt.id, tt.local)
	}
}

func TestRegistryIsBounded(t *testing.T) {
	r := NewRegistry(2)
	r.Add(Group{ID: "a"})
	r.Add(Group{ID: "b"})
	g := r.Add(Group{ID: "c", Ranks: []int64{1}})
	require.NotNil(t, g)
	assert.Equal(t, int64(1), r.Overflow())
	assert.Nil(t, r.Get("c"))
	r.Add(Group{ID: "a", Name: "still joined"})
	assert.Equal(t, "still joined", r.Get("a").Name)
	assert.Equal(t, int64(1), r.Overflow())
}

// Groups first seen apart become one when a source names both. What was handed
// out before must not disagree with what is found later.
func TestRegistryBridge(t *testing.T) {
	r := NewRegistry(10)
	r.Add(Group{ID: "a", Name: "n"})
	r.Add(Group{ID: "b", Ranks: []int64{1, 2}})
	r.Add(Group{ID: "a", Hashes: []string{"b"}})
	assert.Same(t, r.Get("a"), r.Get("b"))
	assert.Equal(t, Some(int64(2)), r.GlobalRank("a", 1))
}

func TestOptional(t *testing.T) {
	assert.Equal(t, 3, Optional[int]{}.Or(3))
	assert.Equal(t, 0, Some(0).Or(3))
}

func TestOpLaneAndKey(t *testing.T) {
	op := Op{Name: "n", ThreadID: Some(int64(9)), Start: 10, End: 4}
	assert.Equal(t, int64(9), op.Lane())
	assert.Equal(t, "n", op.ComparisonKey())
	assert.Zero(t, op.Duration(), "never negative")
	op.Stream, op.Key = Some(int64(0)), "k"
	assert.Equal(t, int64(0), op.Lane(), "stream 0 is a stream")
	assert.Equal(t, "k", op.ComparisonKey())
	for kind, want := range map[OpKind]bool{KindCollective: true, KindSend: true, KindRecv: true, KindCompute: false, KindStep: false} {
		assert.Equal(t, want, kind.IsComm(), string(kind))
	}
}
