// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/columns"
	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestMeasure_AllOperations_AreCounted(t *testing.T) {
	s := &source{name: "test"}
	for rank := range int64(3) {
		ops := make([]model.Op, batchSpans)
		for i := range ops {
			ops[i] = model.Op{Kind: model.KindCompute, Name: "gemm", Seq: int64(i), Start: int64(i) * 1000, End: int64(i)*1000 + 10}
		}
		s.batches = append(s.batches, model.RankOps{Rank: model.Rank{JobID: "job", Rank: rank}, Ops: ops[:batchSpans-1]})
	}
	m, err := measure(s)
	require.NoError(t, err)
	assert.Equal(t, 3*(batchSpans-1), m.ops)
	assert.Less(t, m.core, m.file)
	assert.LessOrEqual(t, m.coarse, m.file)
	assert.Less(t, m.zipped, m.otlp)
	assert.Equal(t, "none", (&measured{ops: 1, core: 6, file: 20, zipped: 60}).missed())
	assert.Equal(t, "core all share", (&measured{ops: 1, core: 7, file: 21, zipped: 60}).missed())
}

func TestCore_Names_AreColumns(t *testing.T) {
	assert.Subset(t, columns.Names(), core)
}
