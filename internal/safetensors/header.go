// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Limits bound what reading a header may cost. Zero limits mean the defaults.
type Limits struct {
	Header int64 // bytes; 100 MB is the format's own limit
}

const (
	maxHeader   = 100_000_000
	maxMetadata = 4 << 20 // bytes of __metadata__: many small entries cost far more in memory than in the file
)

// ErrLimit says that a header, or the __metadata__ in it, is larger than is read.
var ErrLimit = errors.New("header is larger than what is read of one")

// Tensor is one entry of a header.
type Tensor struct {
	Name       string
	DType      string
	Shape      []int64
	Begin, End int64 // bytes, from the end of the header
}

// Header is what a file holds.
type Header struct {
	Tensors  []Tensor // by where they lie
	Metadata map[string]string
}

// Read reads the header of a file of so many bytes: 8 bytes of length, little-endian, and a
// JSON object of {name: {dtype, shape, data_offsets}}. Tensors follow without a gap to the
// end of the file; a file that is shorter or longer is torn.
func Read(r io.ReaderAt, size int64, l Limits) (*Header, error) {
	limit := l.Header
	if limit <= 0 {
		limit = maxHeader
	}
	var length [8]byte
	if size < int64(len(length)) {
		return nil, fmt.Errorf("read header: got a file of %d bytes; want at least 8", size)
	}
	if _, err := r.ReadAt(length[:], 0); err != nil {
		return nil, fmt.Errorf("read header: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > uint64(size-8) {
		return nil, fmt.Errorf("read header: got a length of %d; want at most %d", n, size-8)
	}
	if n > uint64(limit) {
		return nil, fmt.Errorf("read header: got a length of %d; want at most %d: %w", n, limit, ErrLimit)
	}
	b := make([]byte, n)
	if _, err := r.ReadAt(b, 8); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read header: %w", err)
	}
	h, err := parse(b)
	if err == nil {
		err = h.fit(size - 8 - int64(n))
	}
	if err != nil {
		return nil, fmt.Errorf("read header: %w", err)
	}
	return h, nil
}

// object calls each for every key of an object, in order. A key that is there twice is refused, as the
// safetensors library does: which of its values is meant nobody can say.
func object(b []byte, each func(key string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(b))
	switch open, err := d.Token(); {
	case err != nil:
		return err
	case open != json.Delim('{'):
		return fmt.Errorf("got %.20q; want an object", fmt.Sprint(open))
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string) // an object has no other keys
		if seen[name] {
			return fmt.Errorf("got %.80q twice; want it once", name)
		}
		seen[name] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if err := each(name, value); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("got more behind the object; want white space")
	}
	return nil
}

func parse(b []byte) (*Header, error) {
	h := &Header{}
	err := object(b, func(name string, value json.RawMessage) error {
		if name == "__metadata__" {
			if len(value) > maxMetadata {
				return fmt.Errorf("read __metadata__: got %d bytes; want at most %d: %w", len(value), maxMetadata, ErrLimit)
			}
			if err := json.Unmarshal(value, &h.Metadata); err != nil {
				return fmt.Errorf("read __metadata__: %w", err)
			}
			return nil
		}
		t, err := tensor(name, value)
		if err != nil {
			return fmt.Errorf("read tensor %.80q: %w", name, err)
		}
		h.Tensors = append(h.Tensors, t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(h.Tensors, func(x, y Tensor) int {
		return cmp.Or(cmp.Compare(x.Begin, y.Begin), cmp.Compare(x.End, y.End), cmp.Compare(x.Name, y.Name))
	})
	return h, nil
}

// tensor reads one entry; keys of it that are not known are left out, as the library does.
func tensor(name string, b []byte) (Tensor, error) {
	t := Tensor{Name: name}
	var offsets []uint64
	err := object(b, func(key string, value json.RawMessage) error {
		switch key {
		case "dtype":
			return json.Unmarshal(value, &t.DType)
		case "shape":
			return json.Unmarshal(value, &t.Shape)
		case "data_offsets":
			return json.Unmarshal(value, &offsets)
		}
		return nil
	})
	switch {
	case err != nil:
		return t, err
	case len(offsets) != 2 || offsets[0] > offsets[1] || offsets[1] > 1<<62:
		return t, fmt.Errorf("got data_offsets %v; want begin and end", offsets)
	}
	t.Begin, t.End = int64(offsets[0]), int64(offsets[1])
	return t, t.check()
}

// bits are how long an element is, by its type. There are no others: version 0.8 of the library refuses
// a file that has one.
var bits = map[string]int64{
	"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
	"U16": 16, "I16": 16, "F16": 16, "BF16": 16, "U32": 32, "I32": 32, "F32": 32,
	"U64": 64, "I64": 64, "F64": 64, "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}

// check reports whether a tensor is of a known type, and as long as its shape.
func (t *Tensor) check() error {
	const most = 1 << 50 // bits: 140 TB
	size, known := bits[t.DType]
	if !known {
		return fmt.Errorf("got type %.80q; want one that safetensors knows", t.DType)
	}
	if t.Shape == nil {
		return errors.New("got no shape; want one, [] of a single number")
	}
	for _, n := range t.Shape {
		if n < 0 || n > most || size > 0 && n > most/size {
			return fmt.Errorf("got shape %v; want sizes of 0 and more, and at most %d bits in all", t.Shape, int64(most))
		}
		size *= n
	}
	if got := t.End - t.Begin; got != (size+7)/8 {
		return fmt.Errorf("got %d bytes; want %d of shape %v and type %s", got, (size+7)/8, t.Shape, t.DType)
	}
	return nil
}

// fit reports whether the tensors fill so many bytes, one behind the other.
func (h *Header) fit(size int64) error {
	at := int64(0)
	for i := range h.Tensors {
		t := &h.Tensors[i]
		if t.Begin != at {
			return fmt.Errorf("got tensor %.80q at %d; want it at %d, behind the one before", t.Name, t.Begin, at)
		}
		at = t.End
	}
	if at != size {
		return fmt.Errorf("got %d bytes of tensors; want %d", size, at)
	}
	return nil
}
