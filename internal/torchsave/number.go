// SPDX-License-Identifier: Apache-2.0

package torchsave

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// Number returns a whole number: an int, a float without a fraction, or a tensor of one
// element, whose few bytes are read. False where v is something else, or where its bytes could not
// be read, of which Err tells.
func (f *File) Number(m *pickle.Machine, v pickle.Value) (int64, bool) {
	switch v.Kind() {
	case pickle.Int:
		return v.Int(), true
	case pickle.Float:
		return integral(v.Float())
	case pickle.Object:
		return f.scalar(m, v)
	}
	return 0, false
}

func integral(x float64) (int64, bool) {
	const exact = 1 << 53 // beyond, a float64 does not hold every whole number
	if x != math.Trunc(x) || math.Abs(x) > exact {
		return 0, false
	}
	return int64(x), true
}

// scalar reads a tensor of one element: torch._utils._rebuild_tensor_v2(storage, offset,
// size, stride, ...), where the storage is a persistent id.
func (f *File) scalar(m *pickle.Machine, v pickle.Value) (int64, bool) {
	args := m.Args(v)
	if !m.Is(v, "torch._utils", "_rebuild_tensor_v2") || len(args) < 3 {
		return 0, false
	}
	for _, n := range m.Items(args[2]) {
		if n.Kind() != pickle.Int || n.Int() != 1 {
			return 0, false
		}
	}
	if args[0].Kind() != pickle.Persistent || args[1].Kind() != pickle.Int || args[2].Kind() != pickle.Tuple {
		return 0, false
	}
	class, key, elements, ok := storage(m, m.Items(args[0])[0])
	if !ok {
		return 0, false
	}
	return f.element(class, key, args[1].Int(), elements)
}

// maxWhole bounds a record that is read whole for a number in it, bytes: optimizers keep one storage for
// each number, and a page is read at once anyway.
const maxWhole = 4096

// element reads the element at offset of a storage.
func (f *File) element(class, key string, offset, elements int64) (int64, bool) {
	width := map[string]int64{"FloatStorage": 4, "DoubleStorage": 8, "LongStorage": 8, "IntStorage": 4}[class]
	if width == 0 || offset < 0 || offset >= elements || elements > math.MaxInt64/width {
		return 0, false
	}
	e := f.storageRecord(key)
	if e == nil {
		f.fail(fmt.Errorf("got no record data/%s; want the storage of a number", key))
		return 0, false
	}
	b, err := f.part(e, offset*width, width)
	if err != nil {
		f.fail(fmt.Errorf("read record data/%s: %w", key, err))
		return 0, false
	}
	switch class {
	case "FloatStorage":
		return integral(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	case "DoubleStorage":
		return integral(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case "IntStorage":
		return int64(int32(binary.LittleEndian.Uint32(b))), true
	}
	return int64(binary.LittleEndian.Uint64(b)), true
}

// part reads n bytes of a record. Of a large one, which the number is a view into, nothing else is read,
// so that its checksum is not compared: Verify does.
func (f *File) part(e *zip.File, off, n int64) ([]byte, error) {
	if e.UncompressedSize64 < uint64(off+n) {
		return nil, fmt.Errorf("got %d bytes; want at least %d", e.UncompressedSize64, off+n)
	}
	if e.Method == zip.Store && e.UncompressedSize64 > maxWhole {
		at, err := e.DataOffset()
		if err != nil {
			return nil, err
		}
		b := make([]byte, n)
		_, err = io.ReadFull(io.NewSectionReader(f.at, at+off, n), b)
		return b, err
	}
	b, err := f.record(e, maxWhole)
	if err == nil && int64(len(b)) < off+n {
		err = fmt.Errorf("got %d bytes; want at least %d", len(b), off+n)
	}
	if err != nil {
		return nil, err
	}
	return b[off : off+n], nil
}

func (f *File) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}
