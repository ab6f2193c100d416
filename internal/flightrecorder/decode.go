// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/lockstep-otel/lockstep/internal/pickle"
	"github.com/lockstep-otel/lockstep/internal/regular"
)

// ErrEmpty says that there is nothing in a file: its writer had not begun, or died.
var ErrEmpty = errors.New("dump is empty")

// ErrNothing says that a dump ends before anything of it was whole.
var ErrNothing = errors.New("dump is cut off before anything was whole")

// Decode reads a dump, a pickle or JSON, which is told by its content. Of a dump that is
// cut off, what is whole is returned, and Partial says so. What is no dump, needs code or
// goes beyond a limit is an error.
func Decode(data []byte, o Options) (*Dump, error) {
	o = o.withDefaults()
	if len(data) > o.Limits.Pickle.Bytes {
		return nil, fmt.Errorf("read dump: got %d bytes; want at most %d", len(data), o.Limits.Pickle.Bytes)
	}
	text := bytes.TrimLeft(data, " \t\r\n")
	if len(text) == 0 {
		return nil, ErrEmpty
	}
	var b *builder
	var err error
	if text[0] == '{' || text[0] == '[' {
		b = newBuilder(o, len(data), JSON)
		err = b.json(text)
	} else {
		b = newBuilder(o, len(data), Pickle)
		err = b.pickle(data)
	}
	if err != nil && !errors.Is(err, pickle.ErrTruncated) {
		return nil, fmt.Errorf("read dump: %w", err)
	}
	if err != nil {
		if len(b.d.Entries) == 0 && len(b.d.Status) == 0 && len(b.d.Groups) == 0 {
			return nil, fmt.Errorf("read dump: %w: %w", ErrNothing, err)
		}
		b.d.truncated = true
		b.d.Partial = fmt.Sprintf("cut off: %v", err)
	}
	return b.finish()
}

// ReadFile reads the dump of a file, plain, gzip or zstd.
func ReadFile(path string, o Options) (*Dump, error) {
	data, sum, err := content(path, o)
	if err != nil {
		return nil, err
	}
	defer release(data)
	d, err := Decode(data, o)
	if err == nil {
		d.Sum = sum
	}
	return d, err
}

// ReadAll reads the dumps of a file, plain, gzip or zstd, which may hold those of many ranks; an
// error says that it cannot be read. A file of one dump gives that.
func ReadAll(path string, o Options) ([]Gathered, error) {
	data, sum, err := content(path, o)
	if err != nil {
		return nil, err
	}
	defer release(data)
	out := DecodeAll(data, o)
	if len(out) == 1 && out[0].Dump != nil {
		out[0].Dump.Sum = sum
	}
	return out, nil
}

// content returns what a file holds, uncompressed, and a hash of the file.
func content(path string, o Options) (data []byte, sum uint64, err error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("open dump: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	limit := int64(o.withDefaults().Limits.Pickle.Bytes)
	size := int64(0)
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	if size > limit {
		return nil, 0, fmt.Errorf("read dump: got %d bytes; want at most %d", size, limit)
	}
	data, err = readAll(f, size, limit)
	sum = maphash.Bytes(seed, data)
	switch {
	case err != nil:
	case bytes.HasPrefix(data, []byte{0x1f, 0x8b}):
		data, err = gunzip(data, limit)
	case bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		data, err = unzstd(data, limit)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read dump: %w", err)
	}
	return data, sum, nil
}

// unzstd inflates as far as it goes, as gunzip does.
func unzstd(data []byte, limit int64) ([]byte, error) {
	z, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit)))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	out, err := readAll(z, 0, limit)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return out, err
}

// seed is that of sums.
var seed = maphash.MakeSeed()

// contents are the bytes of files that were decoded: a Dump has nothing of them.
var contents sync.Pool

// maxContent bounds the contents that are kept for the next file, bytes.
const maxContent = 16 << 20

func release(data []byte) {
	if cap(data) <= maxContent {
		contents.Put(bytes.NewBuffer(data[:0]))
	}
}

// readAll reads all of what may be at most limit bytes.
func readAll(r io.Reader, size, limit int64) ([]byte, error) {
	buf, ok := contents.Get().(*bytes.Buffer)
	if !ok {
		buf = new(bytes.Buffer)
	}
	buf.Grow(int(min(size, limit)) + bytes.MinRead)
	_, err := buf.ReadFrom(io.LimitReader(r, limit+1))
	if int64(buf.Len()) > limit {
		return nil, fmt.Errorf("got more than %d bytes; want at most %d", limit, limit)
	}
	return buf.Bytes(), err
}

// gunzip inflates as far as it goes: what is cut off may have ended within the dump.
func gunzip(data []byte, limit int64) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out, err := readAll(z, 0, limit)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return out, err
}
