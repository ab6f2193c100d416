// SPDX-License-Identifier: Apache-2.0

package ocdbt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Magic numbers, big-endian, of the blocks that are read.
const (
	manifestMagic = 0x0cdb3a2a
	nodeMagic     = 0x0cdb20de
)

const (
	headerLen = 4 + 8 + 1 + 1 // magic, length, version, compression: the last two are varints below 128
	crcLen    = 4
	// maxBody bounds a block that is unpacked, bytes. TensorStore's nodes are 8 MiB by default.
	maxBody = 128 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var unpacker = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBody))
})

// body checks a block (magic, length, version, compression, body, CRC-32C) and unpacks its body.
func body(b []byte, magic uint32) ([]byte, error) {
	if len(b) < headerLen+crcLen {
		return nil, fmt.Errorf("got %d bytes; want at least %d", len(b), headerLen+crcLen)
	}
	if got := binary.BigEndian.Uint32(b); got != magic {
		return nil, fmt.Errorf("got magic number %08x; want %08x", got, magic)
	}
	if got := binary.LittleEndian.Uint64(b[4:]); got != uint64(len(b)) {
		return nil, fmt.Errorf("got a length of %d; want the %d bytes that are there", got, len(b))
	}
	sum := len(b) - crcLen
	if got, want := crc32.Checksum(b[:sum], castagnoli), binary.LittleEndian.Uint32(b[sum:]); got != want {
		return nil, fmt.Errorf("got checksum %08x; want %08x", got, want)
	}
	if b[12] != 0 {
		return nil, fmt.Errorf("got version %d; want 0", b[12])
	}
	switch packed := b[headerLen:sum]; b[13] {
	case 0:
		return packed, nil
	case 1:
		z, err := unpacker()
		if err != nil {
			return nil, fmt.Errorf("make zstd reader: %w", err)
		}
		out, err := z.DecodeAll(packed, nil)
		switch {
		case errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded):
			return nil, fmt.Errorf("unpack: got more than %d bytes; want at most that: %w", maxBody, ErrLimit)
		case err != nil:
			return nil, fmt.Errorf("unpack: %w", err)
		}
		return out, nil
	}
	return nil, fmt.Errorf("got compression %d; want 0 or 1", b[13])
}

var errShort = errors.New("got an end in the midst of it; want all of it")

// reader takes values from the front of a body. After an error it gives zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) bytes(n uint64) []byte {
	if r.err != nil || n > uint64(len(r.b)) {
		r.fail(errShort)
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

func (r *reader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) varint() uint64 {
	v, n := binary.Uvarint(r.b)
	if r.err != nil || n <= 0 {
		r.fail(errShort)
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads how many entries follow. Each has a byte at least.
func (r *reader) count() int {
	n := r.varint()
	if n > uint64(len(r.b)) {
		r.fail(fmt.Errorf("got %d entries; want at most the %d bytes that follow", n, len(r.b)))
		return 0
	}
	return int(n)
}

func (r *reader) varints(n int) []uint64 {
	if n > len(r.b) {
		r.fail(errShort)
		n = 0
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = r.varint()
	}
	return out
}

// skipKeys passes over n keys, which are written as lengths of what each but the first shares
// with the one before, lengths of the rest, and all rests.
func (r *reader) skipKeys(n int, interior bool) {
	r.varints(max(n-1, 0))
	rest := r.varints(n)
	if interior {
		r.varints(n) // how much of the key all below have in common
	}
	total := uint64(0)
	for _, k := range rest {
		total += k
		if total > maxBody {
			r.fail(errShort)
			return
		}
	}
	r.bytes(total)
}
