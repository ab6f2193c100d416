// SPDX-License-Identifier: Apache-2.0

package torchsave

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Records at the end of a zip file, APPNOTE.TXT 6.3.9, 4.3.14 to 4.3.16.
const (
	endLen       = 22 // without the comment
	endLocator64 = 20
	end64Len     = 56
	maxComment   = 1<<16 - 1
)

var (
	endMagic       = []byte("PK\x05\x06")
	locator64Magic = []byte("PK\x06\x07")
	end64Magic     = []byte("PK\x06\x06")
)

// directory is where a zip file says that its directory lies.
type directory struct{ offset, size int64 }

// findDirectory reads the end of a zip file. torch.save writes no comment, so that the end
// record is as a rule the last 22 bytes.
func findDirectory(r io.ReaderAt, size int64) (directory, error) {
	tail, at, err := findEnd(r, size)
	if err != nil {
		return directory{}, err
	}
	d := directory{offset: int64(binary.LittleEndian.Uint32(tail[16:])), size: int64(binary.LittleEndian.Uint32(tail[12:]))}
	if binary.LittleEndian.Uint16(tail[10:]) == 0xffff || d.size == 0xffffffff || d.offset == 0xffffffff {
		if d, err = find64(r, at, d); err != nil {
			return directory{}, err
		}
	}
	if d.offset < 0 || d.size < 0 || d.offset > at || d.size > at-d.offset {
		return directory{}, fmt.Errorf("read end of zip file: got a directory of %d bytes at %d; want it to end before %d", d.size, d.offset, at)
	}
	return d, nil
}

func findEnd(r io.ReaderAt, size int64) (end []byte, at int64, err error) {
	for _, n := range []int64{endLen, endLen + maxComment} {
		n = min(n, size)
		b := make([]byte, n)
		if got, err := r.ReadAt(b, size-n); int64(got) < n {
			return nil, 0, fmt.Errorf("read end of file: %w", err)
		}
		if i := bytes.LastIndex(b, endMagic); i >= 0 && len(b)-i >= endLen {
			return b[i:], size - n + int64(i), nil
		}
	}
	return nil, 0, errors.New("got no end of a zip file; want one: the file is torn, or was not written by torch.save")
}

// find64 follows the locator before the end record, which large files need.
func find64(r io.ReaderAt, at int64, small directory) (directory, error) {
	if at < endLocator64 {
		return small, nil
	}
	var loc [endLocator64]byte
	if _, err := r.ReadAt(loc[:], at-endLocator64); err != nil {
		return directory{}, fmt.Errorf("read zip64 locator: %w", err)
	}
	if !bytes.HasPrefix(loc[:], locator64Magic) {
		return small, nil
	}
	off := int64(binary.LittleEndian.Uint64(loc[8:]))
	var end [end64Len]byte
	if off < 0 || off > at-end64Len {
		return directory{}, fmt.Errorf("read zip64 locator: got offset %d; want one before %d", off, at)
	}
	if _, err := r.ReadAt(end[:], off); err != nil {
		return directory{}, fmt.Errorf("read zip64 end: %w", err)
	}
	if !bytes.HasPrefix(end[:], end64Magic) {
		return directory{}, errors.New("read zip64 end: got no signature; want one")
	}
	return directory{offset: int64(binary.LittleEndian.Uint64(end[48:])), size: int64(binary.LittleEndian.Uint64(end[40:]))}, nil
}
