// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Another reader finds in the file the values of the columns.
func TestFile_ReadByParquetGo_HasTheSameValues(t *testing.T) {
	batches := randomBatches(t, 5, 2, 40, true)
	b := written(t, Meta{Resolution: Exact}, batches)
	file, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	require.Len(t, file.RowGroups(), 1)
	chunks := file.RowGroups()[0].ColumnChunks()
	require.Len(t, chunks, len(table))
	for i := range table {
		c := &table[i]
		values := valuesOf(t, chunks[i])
		require.Len(t, values, 80, c.name)
		for k, v := range values {
			batch := &batches[k/40]
			want := c.get(&row{rank: &batch.Rank, op: &batch.Ops[k%40], summary: batch.Summaries[k%40], unit: 1})
			if !want.ok {
				assert.True(t, v.IsNull(), c.name)
				continue
			}
			switch c.kind {
			case delta, repeated:
				assert.Equal(t, want.i, v.Int64(), c.name)
			case double:
				assert.Equal(t, math.Float64bits(want.f), math.Float64bits(v.Double()), c.name)
			case flag:
				assert.Equal(t, want.i != 0, v.Boolean(), c.name)
			default:
				assert.Equal(t, want.s, string(v.ByteArray()), c.name)
			}
		}
	}
}

func valuesOf(t *testing.T, chunk parquet.ColumnChunk) (all []parquet.Value) {
	t.Helper()
	pages := chunk.Pages()
	defer func() { require.NoError(t, pages.Close()) }()
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		values := make([]parquet.Value, page.NumValues())
		n, err := page.Values().ReadValues(values)
		if !errors.Is(err, io.EOF) {
			require.NoError(t, err)
		}
		for _, v := range values[:n] {
			all = append(all, v.Clone())
		}
		parquet.Release(page)
	}
}
