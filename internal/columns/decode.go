// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Decoders of the encodings that the format has (Encodings.md of apache/parquet-format). Each is given how many
// values there must be, at most MaxGroupRows, and fails for data of fewer.

var errShort = errors.New("got too few bytes for its values")

// decodeHybrid decodes integers of a width in bits, in runs of equal ones and in packs of eight.
func decodeHybrid(b []byte, width, n int) ([]uint32, error) {
	if width < 0 || width > 32 {
		return nil, fmt.Errorf("got integers of %d bits; want at most 32", width)
	}
	out := make([]uint32, 0, n)
	for len(out) < n {
		head, size := binary.Uvarint(b)
		if size <= 0 {
			return nil, errShort
		}
		b = b[size:]
		if head&1 == 0 {
			v, rest, err := runValue(b, width)
			if err != nil {
				return nil, err
			}
			b = rest
			for range min(head>>1, uint64(n-len(out))) {
				out = append(out, v)
			}
			if head>>1 == 0 {
				return nil, errors.New("got a run of no values")
			}
			continue
		}
		groups := head >> 1
		if groups == 0 || groups > uint64(len(b)) && width > 0 {
			return nil, errShort
		}
		count := min(groups*8, uint64(n-len(out)))
		if groups*uint64(width) > uint64(len(b)) {
			return nil, errShort
		}
		pack := b[:groups*uint64(width)]
		b = b[len(pack):]
		for i := range count {
			out = append(out, uint32(bitsAt(pack, i*uint64(width), width)))
		}
	}
	return out, nil
}

// runValue reads the value of a run, of as many bytes as its width needs.
func runValue(b []byte, width int) (v uint32, rest []byte, err error) {
	size := (width + 7) / 8
	if size > len(b) {
		return 0, nil, errShort
	}
	for i, x := range b[:size] {
		v |= uint32(x) << (8 * i)
	}
	return v, b[size:], nil
}

// bitsAt returns the integer of a width up to 64 that begins at a bit, the least significant bit first.
func bitsAt(b []byte, at uint64, width int) uint64 {
	if width == 0 {
		return 0
	}
	first, shift := at/8, at%8
	var window [16]byte
	copy(window[:9], b[first:min(uint64(len(b)), first+9)])
	v := binary.LittleEndian.Uint64(window[:8]) >> shift
	if shift > 0 {
		v |= uint64(window[8]) << (64 - shift)
	}
	if width < 64 {
		v &= 1<<width - 1
	}
	return v
}

// maxBlock bounds the values of a block of the delta encoding.
const maxBlock = 1 << 16

// decodeDelta decodes DELTA_BINARY_PACKED.
func decodeDelta(b []byte, n int) ([]int64, error) {
	d := &thrift{b: b} // the varints are those of Thrift
	block, packs, total, first := d.uvarint(), d.uvarint(), d.uvarint(), d.int()
	switch {
	case d.err != nil:
		return nil, errShort
	case total != uint64(n):
		return nil, fmt.Errorf("got %d values; want %d", total, n)
	case block == 0 || block > maxBlock || packs == 0 || packs > block || block%packs != 0 || block/packs%8 != 0:
		return nil, fmt.Errorf("got blocks of %d values in %d packs", block, packs)
	case n == 0:
		return nil, nil
	}
	out := append(make([]int64, 0, n), first)
	perPack := int(block / packs)
	for len(out) < n {
		least := d.int()
		widths := d.bytes(int(packs))
		for _, width := range widths {
			if len(out) == n {
				break
			}
			if width > 64 {
				return nil, fmt.Errorf("got differences of %d bits; want at most 64", width)
			}
			pack := d.bytes(perPack * int(width) / 8)
			if d.err != nil {
				break
			}
			for i := range min(perPack, n-len(out)) {
				out = append(out, out[len(out)-1]+least+int64(bitsAt(pack, uint64(i)*uint64(width), int(width))))
			}
		}
		if d.err != nil {
			return nil, errShort
		}
	}
	return out, nil
}

// bytes reads so many bytes.
func (t *thrift) bytes(n int) []byte {
	if n > len(t.b)-t.at {
		t.fail(errThriftEnd)
		return nil
	}
	t.at += n
	return t.b[t.at-n : t.at]
}

// decodeFlags decodes booleans, a bit each.
func decodeFlags(b []byte, n int) ([]int64, error) {
	if len(b) < (n+7)/8 {
		return nil, errShort
	}
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(b[i/8] >> (i % 8) & 1)
	}
	return out, nil
}

// decodeIntegers decodes integers of 8 bytes each.
func decodeIntegers(b []byte, n int) ([]int64, error) {
	if len(b) != 8*n {
		return nil, fmt.Errorf("got %d bytes for %d integers; want %d", len(b), n, 8*n)
	}
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return out, nil
}

// decodeDoubles decodes BYTE_STREAM_SPLIT: first the first bytes of all doubles, then the second ones.
func decodeDoubles(b []byte, n int) ([]float64, error) {
	if len(b) != 8*n {
		return nil, fmt.Errorf("got %d bytes for %d doubles; want %d", len(b), n, 8*n)
	}
	out := make([]float64, n)
	for i := range out {
		var u uint64
		for k := range 8 {
			u |= uint64(b[k*n+i]) << (8 * k)
		}
		out[i] = math.Float64frombits(u)
	}
	return out, nil
}

// decodeTexts decodes texts of at most limit bytes, each behind its length.
func decodeTexts(b []byte, n, limit int) ([]string, error) {
	if 4*n > len(b) {
		return nil, errShort
	}
	out := make([]string, 0, n)
	for range n {
		if len(b) < 4 {
			return nil, errShort
		}
		size := uint64(binary.LittleEndian.Uint32(b))
		b = b[4:]
		switch {
		case size > uint64(limit):
			return nil, fmt.Errorf("got a text of %d bytes; want at most %d", size, limit)
		case size > uint64(len(b)):
			return nil, errShort
		}
		out = append(out, string(b[:size]))
		b = b[size:]
	}
	return out, nil
}
