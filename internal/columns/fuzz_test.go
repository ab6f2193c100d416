// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Whatever a file holds, it is read or refused.
func FuzzFile(f *testing.F) {
	whole := small(f)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte(Magic + Magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, batches, err := read(b)
		if err != nil {
			return
		}
		// What was read is written and read again.
		_, again, err := read(written(t, Meta{Resolution: Exact}, batches))
		assert.NoError(t, err)
		assert.Equal(t, countOps(batches), countOps(again))
	})
}

func countOps(batches []Batch) (n int) {
	for i := range batches {
		n += len(batches[i].Ops)
	}
	return n
}

// Pages without a checksum, of each column.
func FuzzPages(f *testing.F) {
	pagesOf := func(which int) []byte {
		whole := small(f)
		b, err := footerOf(bytes.NewReader(whole), int64(len(whole)))
		if err != nil {
			f.Fatal(err)
		}
		foot, err := parseFooter(b)
		if err != nil {
			f.Fatal(err)
		}
		c := foot.groups[0].chunks[which]
		return whole[c.start : c.start+c.size]
	}
	for i := range table {
		f.Add(uint8(i), uint8(2), pagesOf(i))
	}
	f.Add(uint8(0), uint8(3), []byte{0x15, 6, 0x15, 8, 0x15, 8, 0x5c, 0x15, 6, 0x15, 0, 0x15, 6, 0x15, 0, 0x15, 4, 0x15, 0, 0, 0, 6, 1, 'a', 'b'})
	f.Fuzz(func(_ *testing.T, which, n uint8, b []byte) {
		c := &table[int(which)%len(table)]
		rows := make([]row, n)
		for i := range rows {
			rows[i] = row{rank: &model.Rank{}, op: &model.Op{}, unit: 1}
		}
		budget := int64(1 << 20)
		file, err := newFile()
		if err != nil {
			return
		}
		defer file.Close()
		_ = c.read(&pages{b: b, codec: codecZstd, unzip: file.uncompress, budget: &budget}, rows)
		_ = c.read(&pages{b: b, codec: codecNone, budget: &budget}, rows)
	})
}
