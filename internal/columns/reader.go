// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/klauspost/compress/zstd"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Magic is what a Parquet file begins and ends with.
const Magic = "PAR1"

// Limits of what is read.
const (
	maxFooter = 16 << 20
	// maxChunk bounds the compressed bytes of a column of a row group.
	maxChunk = 64 << 20
	// maxUnfolded bounds the uncompressed bytes of all columns of a row group. Rows that wait for a row group take
	// at most groupBytes, so that files of a writer stay far below.
	maxUnfolded = 128 << 20
)

// ErrNoParquet is the error of a file that is none.
var ErrNoParquet = errors.New("got no Parquet file")

// File is a file that is read. It is used by one goroutine at a time.
type File struct {
	Meta   Meta
	r      io.ReaderAt
	size   int64
	groups []group
	unzip  *zstd.Decoder
}

// Batch are operations of one rank, and the summaries of its steps by their index among the operations.
type Batch struct {
	model.RankOps
	Summaries map[int]*model.Summary
}

// Open reads the metadata of a file of so many bytes.
func Open(r io.ReaderAt, size int64) (*File, error) {
	b, err := footerOf(r, size)
	if err != nil {
		return nil, err
	}
	foot, err := parseFooter(b)
	if err != nil {
		return nil, err
	}
	if err := foot.check(); err != nil {
		return nil, err
	}
	if err := foot.within(size); err != nil {
		return nil, err
	}
	m, err := parseMeta(foot.pairs)
	if err != nil {
		return nil, err
	}
	f, err := newFile()
	if err != nil {
		return nil, err
	}
	f.Meta, f.r, f.size, f.groups = m, r, size, foot.groups
	return f, nil
}

// newFile returns a file of nothing, which can uncompress.
func newFile() (*File, error) {
	unzip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnfolded), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("make decoder of zstd: %w", err)
	}
	return &File{unzip: unzip}, nil
}

// Close frees what the file holds. The reader stays open.
func (f *File) Close() { f.unzip.Close() }

// footerOf returns the bytes of the metadata of a file.
func footerOf(r io.ReaderAt, size int64) ([]byte, error) {
	const end = 4 + len(Magic)
	var head [len(Magic)]byte
	if _, err := r.ReadAt(head[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read beginning of file: %w", err)
	}
	if string(head[:]) != Magic {
		return nil, fmt.Errorf("read beginning of file: %w; want %s at its beginning", ErrNoParquet, Magic)
	}
	var tail [end]byte
	if size < int64(len(Magic)+end) {
		return nil, errCut
	}
	if _, err := r.ReadAt(tail[:], size-int64(end)); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read end of file: %w", err)
	}
	if string(tail[4:]) != Magic {
		return nil, errCut
	}
	n := int64(binary.LittleEndian.Uint32(tail[:4]))
	if n > maxFooter || n > size-int64(len(Magic)+end) {
		return nil, fmt.Errorf("read end of file: got metadata of %d bytes; want at most %d, and no more than the file has", n, maxFooter)
	}
	b := make([]byte, n)
	if _, err := r.ReadAt(b, size-int64(end)-n); err != nil {
		return nil, fmt.Errorf("read metadata: %w", err)
	}
	return b, nil
}

var errCut = fmt.Errorf("read end of file: got no %s: the file is cut short, or is still being copied; want a whole file", Magic)

// check reports whether the file is one of this format, of a version that is known.
func (f *footer) check() error {
	version, known := f.pairs[keyVersion]
	if known {
		n, err := strconv.Atoi(version)
		switch {
		case err != nil || n < 1:
			return fmt.Errorf("read metadata: got %s %q; want 1 to %d", keyVersion, shorten(version), Version)
		case n > Version:
			return fmt.Errorf("read metadata: got format version %d; want at most %d: read the file with the version of lockstep that wrote it (%s), or a later one",
				n, Version, shorten(f.pairs[keyProducer]))
		}
	}
	columns, err := f.leaves()
	if err != nil {
		return fmt.Errorf("read schema: %w", err)
	}
	for i := range table {
		if err := table[i].check(columns); err != nil {
			return fmt.Errorf("read schema: %w%s", err, f.foreign())
		}
	}
	if !known {
		return fmt.Errorf("read metadata: got no %s%s", keyVersion, f.foreign())
	}
	for i := range f.groups {
		if n := f.groups[i].rows; n < 0 || n > MaxGroupRows {
			return fmt.Errorf("read metadata: got row group %d of %d rows; want at most %d%s", i, n, MaxGroupRows, f.foreign())
		}
	}
	return nil
}

// within reports whether the columns of all row groups find room in a file of so many bytes: each byte belongs to
// one of them, so that a small file has no row group many times.
func (f *footer) within(size int64) error {
	left := size
	for i := range f.groups {
		for k := range f.groups[i].chunks {
			c := &f.groups[i].chunks[k]
			if left -= c.size; c.size < 0 || left < 0 {
				return fmt.Errorf("read metadata: got row groups of more than the %d bytes of the file", size)
			}
		}
	}
	return nil
}

// foreign names the program that wrote a file.
func (f *footer) foreign() string {
	return fmt.Sprintf(" (written by %q); want a file of the parquet exporter of Lockstep", shorten(f.creator))
}

// leaves returns the columns of a schema without groups, by name.
func (f *footer) leaves() (map[string]element, error) {
	if len(f.schema) == 0 || f.schema[0].physical >= 0 {
		return nil, errors.New("got no root")
	}
	columns := map[string]element{}
	for _, e := range f.schema[1:] {
		if e.physical >= 0 {
			columns[e.name] = e
		}
	}
	return columns, nil
}

// check reports whether the columns have this one, as the format has it.
func (c *column) check(columns map[string]element) error {
	e, ok := columns[c.name]
	want := int64(1)
	if c.required {
		want = 0
	}
	switch {
	case !ok:
		return fmt.Errorf("got no column %s", c.name)
	case e.physical != c.physical():
		return fmt.Errorf("got column %s of type %s; want %s", c.name, typeName(e.physical), typeName(c.physical()))
	case e.repetition != want:
		return fmt.Errorf("got column %s with repetition %d; want %d", c.name, e.repetition, want)
	}
	return nil
}

// Groups returns how many row groups the file has.
func (f *File) Groups() int { return len(f.groups) }

// Read reads a row group, and returns its operations by rank, in the order of the file.
func (f *File) Read(i int) ([]Batch, error) {
	g := &f.groups[i]
	chunks := map[string]*chunk{}
	for k := range g.chunks {
		if c := &g.chunks[k]; c.depth == 1 {
			chunks[c.path] = c
		}
	}
	load := &loading{file: f, chunks: chunks, budget: maxUnfolded}
	batches, err := load.rows(int(g.rows))
	if err != nil {
		return nil, fmt.Errorf("read row group %d: %w", i, err)
	}
	return batches, nil
}
