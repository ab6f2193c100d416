// SPDX-License-Identifier: Apache-2.0

package torchsave

import (
	"archive/zip"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// widths are the bytes of an element, by the class of storage. Of other classes only torch knows.
var widths = map[string]int64{
	"DoubleStorage": 8, "FloatStorage": 4, "HalfStorage": 2, "BFloat16Storage": 2,
	"LongStorage": 8, "IntStorage": 4, "ShortStorage": 2, "CharStorage": 1, "ByteStorage": 1, "BoolStorage": 1,
	"ComplexFloatStorage": 8, "ComplexDoubleStorage": 16,
	"QInt8Storage": 1, "QUInt8Storage": 1, "QInt32Storage": 4,
	"UntypedStorage": 1, // its elements are bytes, of whatever type the tensor is
}

// storage reads the persistent id of a storage: ("storage", class, key, location, elements).
func storage(m *pickle.Machine, id pickle.Value) (class, key string, elements int64, ok bool) {
	part := m.Items(id)
	if id.Kind() != pickle.Tuple || len(part) < 5 || string(m.Text(part[0])) != "storage" || part[4].Kind() != pickle.Int {
		return "", "", 0, false
	}
	_, name, _ := m.Class(part[1])
	return string(name), string(m.Text(part[2])), part[4].Int(), true
}

// storageRecord finds the record of a storage; nil where there is none.
func (f *File) storageRecord(key string) *zip.File {
	if f.records == nil {
		f.records = make(map[string]*zip.File, len(f.zip.File)) // maxDirectory bounds them
		for _, e := range f.zip.File {
			if key, ok := strings.CutPrefix(e.Name, f.prefix+"/data/"); ok && f.records[key] == nil {
				f.records[key] = e
			}
		}
	}
	return f.records[key]
}

// Lost returns what is wrong with the first storage that the pickle names and that has no record, or
// one that torch.load would not read: of so many a save can be short, although its ends are whole. It
// tells it of the last Value that was read to its end.
func (f *File) Lost() error { return f.lost }

// Storages reads the value only to tell what is Lost. Of a value that is larger than what is read of
// one, it is not known.
func (f *File) Storages(l pickle.Limits) error {
	_, _, err := f.Value(l)
	switch {
	case errors.Is(err, pickle.ErrLimit) || errors.Is(err, ErrLimit):
		return nil
	case err != nil:
		return err
	}
	return f.lost
}

// persist looks for the record of a storage as soon as its id is read, so that no ids are kept. torch
// writes, and wants, a record for one without elements too.
func (f *File) persist(m *pickle.Machine, id pickle.Value) {
	if f.lost != nil {
		return
	}
	class, key, elements, ok := storage(m, id)
	if !ok {
		return
	}
	if err := checkStorage(f.storageRecord(key), class, elements); err != nil {
		f.lost = fmt.Errorf("read record data/%.80s: %w", key, err)
	}
}

func checkStorage(e *zip.File, class string, elements int64) error {
	if e == nil {
		return errors.New("got none; want the storage that the pickle names")
	}
	if e.Method != zip.Store && e.Method != zip.Deflate {
		return fmt.Errorf("got compression method %d; want 0 or 8, which torch.load reads", e.Method)
	}
	width, known := widths[class]
	if !known {
		return nil
	}
	if elements < 0 || elements > math.MaxInt64/width {
		return fmt.Errorf("got %d elements of %d bytes; want a number that a file can have", elements, width)
	}
	if e.UncompressedSize64 < uint64(elements*width) {
		return fmt.Errorf("got %d bytes; want at least %d, of %d elements", e.UncompressedSize64, elements*width, elements)
	}
	return nil
}
