// SPDX-License-Identifier: Apache-2.0

package torchsave

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
)

// Name returns the name under which the file was saved, without its extension. torch.save takes it from the path;
// a file that was saved through a stream is called "archive".
func (f *File) Name() string { return f.prefix }

// Content returns a digest of what the file says of its records: their names, sizes and checksums. Files with the same
// digest hold the same. It is false where the tensors have no checksums, or there are none.
func (f *File) Content() (digest [sha256.Size]byte, ok bool) {
	h := sha256.New()
	tensors := f.tensors()
	for _, e := range append([]*zip.File{f.root}, tensors...) {
		if e.CRC32 == 0 && e.UncompressedSize64 > 0 {
			return digest, false
		}
		var n [12]byte
		binary.LittleEndian.PutUint64(n[:], e.UncompressedSize64)
		binary.LittleEndian.PutUint32(n[8:], e.CRC32)
		_, _ = h.Write(n[:])
	}
	return [sha256.Size]byte(h.Sum(nil)), len(tensors) > 0
}

// tensors are the records of storages, by their names.
func (f *File) tensors() (all []*zip.File) {
	for _, e := range f.zip.File {
		if strings.HasPrefix(e.Name, f.prefix+"/data/") {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Tensors returns how many storages of tensors the file has, and how many bytes they hold together.
func (f *File) Tensors() (n int, bytes uint64) {
	all := f.tensors()
	for _, e := range all {
		bytes += e.UncompressedSize64
	}
	return len(all), bytes
}

// Varies reports whether the beginning of a tensor holds several values. Tensors that are filled with one value, as
// with zeros, are alike without being copies.
func (f *File) Varies() bool {
	const most, period = 1 << 16, 16 // bytes; period is a multiple of the widths of elements
	tensors := f.tensors()
	slices.SortStableFunc(tensors, func(a, b *zip.File) int {
		return int(min(b.UncompressedSize64, most)) - int(min(a.UncompressedSize64, most))
	})
	const looked = 16 // tensors, the largest first
	for _, e := range tensors[:min(looked, len(tensors))] {
		at, err := e.DataOffset()
		if err != nil || e.Method != zip.Store {
			continue
		}
		data := make([]byte, min(e.UncompressedSize64, most))
		n, _ := f.at.ReadAt(data, at)
		data = data[:n]
		for i := period; i < len(data); i++ {
			if data[i] != data[i-period] {
				return true
			}
		}
	}
	return false
}
