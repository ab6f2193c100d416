// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"encoding/binary"
	"math"
	"strconv"
)

// maxDims bounds the dimensions of the tensors of one operation: coalesced operations of
// some hundred tensors have some hundreds. Many operations may share one list.
const maxDims = 2048

// sizes gathers the sizes of tensors in a form that is quickly compared: each dimension as
// 8 bytes, each tensor closed by a dimension of -1.
type sizes struct{ key []byte }

func newSizes(scratch []byte) sizes { return sizes{scratch[:0]} }

// dim adds a dimension; false where it is none, or there are too many.
func (s *sizes) dim(n int64) bool {
	if n < 0 || len(s.key) >= 8*maxDims {
		return false
	}
	s.key = binary.LittleEndian.AppendUint64(s.key, uint64(n))
	return true
}

// close ends a tensor; false where there are too many.
func (s *sizes) close() bool {
	s.key = binary.LittleEndian.AppendUint64(s.key, math.MaxUint64)
	return len(s.key) < 8*maxDims
}

// shapeOf writes sizes as PyTorch shows them, "[[2048, 1, 5120]]", and counts elements.
func shapeOf(key []byte) Shape {
	text := []byte{'['}
	total, tensor, dims := int64(0), int64(1), 0
	opened := false
	for ; len(key) >= 8; key = key[8:] {
		if !opened {
			if len(text) > 1 {
				text = append(text, ',', ' ')
			}
			text = append(text, '[')
			opened = true
		}
		n := int64(binary.LittleEndian.Uint64(key))
		if n < 0 {
			text = append(text, ']')
			total = plus(total, tensor)
			tensor, dims, opened = 1, 0, false
			continue
		}
		if dims++; dims > 1 {
			text = append(text, ',', ' ')
		}
		text = strconv.AppendInt(text, n, 10)
		tensor = times(tensor, n)
	}
	return Shape{string(append(text, ']')), total}
}

// times multiplies counts; -1 where that overflows, or one is unknown.
func times(a, b int64) int64 {
	if a < 0 || b < 0 || b > 0 && a > math.MaxInt64/b {
		return -1
	}
	return a * b
}

func plus(a, b int64) int64 {
	if a < 0 || b < 0 || a > math.MaxInt64-b {
		return -1
	}
	return a + b
}

// types writes element types: the one where all agree, else all, "Float, Long".
type types struct {
	text  []byte
	first []byte
	mixed bool
}

func newTypes(scratch []byte) types { return types{text: scratch[:0]} }

// add takes the next type; false where it is none, or there are too many.
func (t *types) add(name []byte) bool {
	if len(name) == 0 || len(t.text)+len(name) > maxTypeBytes {
		return false
	}
	if t.first == nil {
		t.first = name
	} else {
		t.text = append(t.text, ',', ' ')
		t.mixed = t.mixed || string(name) != string(t.first)
	}
	t.text = append(t.text, name...)
	return true
}

func (t *types) end() []byte {
	if !t.mixed {
		return t.text[:len(t.first)]
	}
	return t.text
}

// maxTypeBytes bounds the element types of one operation as shown.
const maxTypeBytes = 16 << 10
