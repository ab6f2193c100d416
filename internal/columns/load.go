// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"errors"
	"fmt"
	"io"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// loading reads a row group.
type loading struct {
	file   *File
	chunks map[string]*chunk
	budget int64
}

// rows reads n rows. The ranks are read first: neighbours mostly have the same.
func (l *loading) rows(n int) ([]Batch, error) {
	if n == 0 {
		return nil, nil
	}
	rows := make([]row, n)
	ranks := make([]model.Rank, n)
	for i := range rows {
		rows[i].rank, rows[i].unit = &ranks[i], int64(l.file.Meta.Resolution)
	}
	if err := l.columns(rankColumns, rows); err != nil {
		return nil, err
	}
	batches := split(ranks)
	at := 0
	for b := range batches {
		ops := batches[b].Ops
		for i := range ops {
			rows[at].rank, rows[at].op = nil, &ops[i]
			at++
		}
	}
	for _, part := range [][]column{opColumns, summaryColumns} {
		if err := l.columns(part, rows); err != nil {
			return nil, err
		}
	}
	at = 0
	for b := range batches {
		for i := range batches[b].Ops {
			if rows[at].strange {
				return nil, fmt.Errorf("got row %d with a link that is none, or another unit of time than the metadata have", at)
			}
			batches[b].note(i, rows[at].summary)
			at++
		}
	}
	return batches, nil
}

// split returns a batch for each run of equal ranks, with room for its operations.
func split(ranks []model.Rank) (batches []Batch) {
	for i := 0; i < len(ranks); {
		end := i + 1
		for end < len(ranks) && ranks[end] == ranks[i] {
			end++
		}
		batches = append(batches, Batch{RankOps: model.RankOps{Rank: ranks[i], Ops: make([]model.Op, end-i)}})
		i = end
	}
	return batches
}

func (b *Batch) note(i int, s *model.Summary) {
	if s == nil {
		return
	}
	if b.Summaries == nil {
		b.Summaries = map[int]*model.Summary{}
	}
	b.Summaries[i] = s
}

// columns reads the values of columns into rows.
func (l *loading) columns(columns []column, rows []row) error {
	for i := range columns {
		c := &columns[i]
		chunk := l.chunks[c.name]
		if chunk == nil {
			return fmt.Errorf("got no column %s", c.name)
		}
		p, err := l.pages(c, chunk)
		if err == nil {
			err = c.read(p, rows)
		}
		if err != nil {
			return fmt.Errorf("read column %s: %w", c.name, err)
		}
	}
	return nil
}

// pages reads the bytes of a column.
func (l *loading) pages(c *column, of *chunk) (*pages, error) {
	f := l.file
	switch {
	case of.physical != c.physical():
		return nil, fmt.Errorf("got type %s; want %s", typeName(of.physical), typeName(c.physical()))
	case of.codec != codecZstd && of.codec != codecNone:
		return nil, fmt.Errorf("got compression number %d; want zstd", of.codec)
	case of.size < 0 || of.size > maxChunk || of.start < int64(len(Magic)) || of.start > f.size-of.size:
		return nil, fmt.Errorf("got %d bytes from byte %d on; want at most %d, within the file", of.size, of.start, maxChunk)
	}
	b := make([]byte, of.size)
	if _, err := f.r.ReadAt(b, of.start); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read pages: %w", err)
	}
	return &pages{b: b, codec: of.codec, unzip: f.uncompress, budget: &l.budget}, nil
}

// uncompress returns what compressed bytes unfold to, which must be so many bytes.
func (f *File) uncompress(b []byte, size int64) ([]byte, error) {
	out, err := f.unzip.DecodeAll(b, make([]byte, 0, size))
	switch {
	case err != nil:
		return nil, fmt.Errorf("uncompress page: %w", err)
	case int64(len(out)) != size:
		return nil, fmt.Errorf("uncompress page: got %d bytes; want %d", len(out), size)
	}
	return out, nil
}
