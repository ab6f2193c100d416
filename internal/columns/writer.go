// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

const (
	// MaxGroupRows bounds the rows of a row group that is read.
	MaxGroupRows = 1 << 16
	// groupRows is how many rows a row group has when it is written: a reader holds each with its operation, of
	// about 1 KB.
	groupRows = 1 << 15
	// groupBytes bounds what the rows of a row group take in memory before they are written.
	groupBytes = 32 << 20
	// blockRows is how many rows all columns are written of before the next: their operations stay in the
	// processor's cache meanwhile.
	blockRows = 256
	// pageBytes has room for a column of a row group, so that most columns have one page.
	pageBytes = 512 << 10
)

// codec compresses pages in the goroutine of the writer.
var codec = &zstd.Codec{Level: zstd.SpeedDefault, Concurrency: 1}

// Writer writes one file. It holds operations until a row group is full.
type Writer struct {
	meta    Meta
	out     *counter
	parquet *parquet.GenericWriter[any]
	rows    []row
	bytes   int // of the rows
	written int64
	cut     int64
	ranks   map[int64]bool
	values  []parquet.Value
	err     error
}

// counter counts what is written.
type counter struct {
	to io.Writer
	n  int64
}

// Write writes and counts.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}

// NewWriter begins a file. It fails for a resolution that the format does not have.
func NewWriter(out io.Writer, m Meta) (*Writer, error) {
	if !m.Resolution.known() {
		return nil, fmt.Errorf("begin file: got resolution %d ns; want %d or %d", m.Resolution, Exact, HundredNanosecs)
	}
	m.FirstStep, m.LastStep = model.Optional[int64]{}, model.Optional[int64]{}
	w := &Writer{meta: m, out: &counter{to: out}, ranks: map[int64]bool{}}
	w.parquet = parquet.NewGenericWriter[any](w.out, schemaOf(table),
		parquet.Compression(codec), parquet.DataPageVersion(2), parquet.DataPageStatistics(false), parquet.PageBufferSize(pageBytes),
		parquet.CreatedBy("lockstep", m.Producer, ""), unbounded(table))
	return w, nil
}

// unbounded leaves out the least and greatest values of each page of the columns by which no query selects: they
// would be a large part of small files.
func unbounded(columns []column) parquet.WriterOption {
	var options []parquet.WriterOption
	for i := range columns {
		switch columns[i].name {
		case "rank", "step", "start", "duration":
		default:
			options = append(options, parquet.SkipPageBounds(columns[i].name))
		}
	}
	return all(options)
}

type all []parquet.WriterOption

// ConfigureWriter applies all options.
func (a all) ConfigureWriter(c *parquet.WriterConfig) {
	for _, o := range a {
		o.ConfigureWriter(c)
	}
}

// Add adds operations of one rank, and the summaries of its steps by their index among the operations. The writer
// keeps the operations as they are until they are written; the caller changes them no more. An error is final.
func (w *Writer) Add(rank *model.Rank, ops []model.Op, summaries map[int]*model.Summary) error {
	for i := range ops {
		if err := w.AddOp(rank, &ops[i], summaries[i]); err != nil {
			return err
		}
	}
	return w.err
}

// AddOp adds one operation, and the summary of the step that it is; nil: it has none. See [Writer.Add].
func (w *Writer) AddOp(rank *model.Rank, op *model.Op, summary *model.Summary) error {
	if w.err != nil {
		return w.err
	}
	w.ranks[rank.Rank] = true
	w.noteStep(op.Step)
	w.rows = append(w.rows, row{rank: rank, op: op, summary: summary, unit: int64(w.meta.Resolution)})
	if n := len(w.rows); n < 2 || w.rows[n-2].rank != rank {
		w.bytes += rank.TextBytes()
	}
	w.bytes += op.Bytes()
	if summary != nil {
		w.bytes += len(summary.Histograms)
	}
	if len(w.rows) >= groupRows || w.bytes >= groupBytes {
		return w.Flush()
	}
	return nil
}

func (w *Writer) noteStep(step model.Optional[int64]) {
	if !step.OK {
		return
	}
	if !w.meta.FirstStep.OK {
		w.meta.FirstStep, w.meta.LastStep = step, step
	}
	w.meta.FirstStep.V = min(w.meta.FirstStep.V, step.V)
	w.meta.LastStep.V = max(w.meta.LastStep.V, step.V)
}

// Rows returns how many operations were added.
func (w *Writer) Rows() int64 { return w.written + int64(len(w.rows)) }

// Written returns the bytes that were written to the file.
func (w *Writer) Written() int64 { return w.out.n }

// Waiting returns about how many bytes of memory the operations take that are not yet in a row group.
func (w *Writer) Waiting() int { return w.bytes }

// Cut returns how many texts were longer than the format takes, and were cut or left out.
func (w *Writer) Cut() int64 { return w.cut }

// Steps returns the first and the last step of the operations; unknown where none has one.
func (w *Writer) Steps() (first, last model.Optional[int64]) {
	return w.meta.FirstStep, w.meta.LastStep
}

// Flush writes the operations that wait as a row group.
func (w *Writer) Flush() error {
	if w.err != nil || len(w.rows) == 0 {
		return w.err
	}
	sortRows(w.rows)
	to := w.parquet.ColumnWriters()
	for rows := w.rows; len(rows) > 0; rows = rows[min(blockRows, len(rows)):] {
		for i, c := range to {
			if err := w.write(i, c, rows[:min(blockRows, len(rows))]); err != nil {
				w.err = fmt.Errorf("write column %s: %w", table[i].name, err)
				return w.err
			}
		}
	}
	if err := w.parquet.Flush(); err != nil {
		w.err = fmt.Errorf("write row group: %w", err)
		return w.err
	}
	w.written += int64(len(w.rows))
	clear(w.rows) // what was written is not kept
	w.rows, w.bytes = w.rows[:0], 0
	return nil
}

// write writes the values of column i of rows.
func (w *Writer) write(i int, to *parquet.ColumnWriter, rows []row) error {
	c := &table[i]
	if cap(w.values) == 0 {
		w.values = make([]parquet.Value, blockRows)
	}
	values := w.values[:len(rows)]
	null, present := parquet.NullValue().Level(0, 0, i), 1
	if c.required {
		present = 0
	}
	for k := range rows {
		if i < len(rankColumns) && k > 0 && rows[k].rank == rows[k-1].rank {
			values[k] = values[k-1] // of one rank all rows are alike
			continue
		}
		v := c.get(&rows[k])
		if !v.ok {
			values[k] = null
			continue
		}
		if c.limit > 0 && len(v.s) > c.limit {
			v = w.shorten(c, v)
		}
		if values[k] = null; v.ok {
			values[k] = c.parquet(v).Level(0, present, i)
		}
	}
	_, err := to.WriteRowValues(values)
	return err
}

func (w *Writer) shorten(c *column, v value) value {
	w.cut++
	if c.whole {
		return value{}
	}
	v.s = cut.Bytes(v.s, c.limit)
	return v
}

func (c *column) parquet(v value) parquet.Value {
	switch c.kind {
	case delta, repeated:
		return parquet.Int64Value(v.i)
	case double:
		return parquet.DoubleValue(v.f)
	case flag:
		return parquet.BooleanValue(v.i != 0)
	default:
		return parquet.ByteArrayValue(unsafe.Slice(unsafe.StringData(v.s), len(v.s))) // which is only read
	}
}

// Close writes what waits, and the end of the file.
func (w *Writer) Close() error {
	if err := w.Flush(); err != nil {
		return err
	}
	for _, pair := range w.pairs() {
		w.parquet.SetKeyValueMetadata(pair[0], pair[1])
	}
	if err := w.parquet.Close(); err != nil {
		w.err = fmt.Errorf("write end of file: %w", err)
		return w.err
	}
	w.err = errClosed
	return nil
}

var errClosed = errors.New("write operations: the file is closed")
