// SPDX-License-Identifier: Apache-2.0

package torchsave

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Records of a zip file, APPNOTE.TXT 6.3.9, 4.3.7, 4.3.9 and 4.3.12.
const (
	entryLen = 46 // without name, extra fields and comment
	localLen = 30 // without name and extra fields

	descriptorLen   = 16 // with its signature
	descriptor64Len = 24

	flagDescriptor = 1 << 3 // checksum and sizes lie behind the data
	// flagsUnread are of records that torch's reader, miniz, does not read: encrypted, patched,
	// strongly encrypted, and with a masked directory.
	flagsUnread = 1<<0 | 1<<5 | 1<<6 | 1<<13
	// attrFolder of MS-DOS makes miniz read nothing of a record.
	attrFolder = 1 << 4
)

var (
	entryMagic      = []byte("PK\x01\x02")
	localMagic      = []byte("PK\x03\x04")
	descriptorMagic = []byte("PK\x07\x08")
)

// checkDirectory compares what a zip file says in two places. Each reader believes one of them: miniz,
// which torch.load uses, others than we do, and no checksum is of either.
func (f *File) checkDirectory() error {
	dir, entries, err := f.checkEnd()
	if err != nil {
		return err
	}
	if dir.size > maxDirectory {
		return fmt.Errorf("got %d bytes; want at most %d: %w", dir.size, maxDirectory, ErrLimit)
	}
	b := make([]byte, dir.size)
	if _, err := io.ReadFull(io.NewSectionReader(f.at, dir.offset, dir.size), b); err != nil {
		return err
	}
	if entries != uint64(len(f.zip.File)) {
		return fmt.Errorf("got %d records; want %d, as its end says", len(f.zip.File), entries)
	}
	names := make(map[string]bool, len(f.zip.File))
	for _, e := range f.zip.File {
		n, err := f.checkEntry(e, b, dir.offset)
		if err == nil && names[e.Name] {
			err = errors.New("got two of the name; want one")
		}
		if err != nil {
			return fmt.Errorf("record %.80q: %w", e.Name, err)
		}
		names[e.Name] = true
		b = b[n:]
	}
	if len(b) > 0 {
		return fmt.Errorf("got %d bytes behind its last record; want none", len(b))
	}
	return f.checkNames(names)
}

// checkNames looks for what torch.load asks for before any value: the folder is that of the first
// record, and has a version.
func (f *File) checkNames(names map[string]bool) error {
	if first := f.zip.File[0].Name; !strings.HasPrefix(first, f.prefix+"/") {
		return fmt.Errorf("got %.80q first; want a record of %.80q, as data.pkl is", first, f.prefix)
	}
	if !names[f.prefix+"/version"] && !names[f.prefix+"/.data/version"] {
		return errors.New("got no record version; want it")
	}
	return nil
}

// checkEnd reads the end, and the one of zip64, which miniz follows wherever there is one: both must say
// the same. Nothing may lie between the directory and its end.
func (f *File) checkEnd() (dir directory, entries uint64, err error) {
	end, at, err := findEnd(f.at, f.size)
	if err != nil {
		return dir, 0, err
	}
	le := binary.LittleEndian
	small := []uint64{
		uint64(le.Uint16(end[4:])), uint64(le.Uint16(end[6:])), uint64(le.Uint16(end[8:])),
		uint64(le.Uint16(end[10:])), uint64(le.Uint32(end[12:])), uint64(le.Uint32(end[16:])),
	}
	if n, want := int(le.Uint16(end[20:])), len(end)-endLen; n != want {
		return dir, 0, fmt.Errorf("got a comment of %d bytes; want %d", n, want)
	}
	large, stop, err := f.end64(at)
	if err != nil {
		return dir, 0, err
	}
	if large == nil {
		large = small
	}
	ones := []uint64{0xffff, 0xffff, 0xffff, 0xffff, 0xffffffff, 0xffffffff}
	for i, v := range small {
		if v != large[i] && v != ones[i] {
			return dir, 0, fmt.Errorf("got %d in its end; want %d, as the end of zip64 says", v, large[i])
		}
	}
	if large[0] != 0 || large[1] != 0 || large[2] != large[3] {
		return dir, 0, errors.New("got one of several disks; want one")
	}
	if large[4] > uint64(stop) || large[5] != uint64(stop)-large[4] {
		return dir, 0, fmt.Errorf("got %d bytes at %d; want them to end at %d", large[4], large[5], stop)
	}
	return directory{offset: int64(large[5]), size: int64(large[4])}, large[3], nil
}

// end64 reads the end of zip64: the two disks, the records on one and on all, size and offset of the
// directory. They are nil where there is none. stop is where the directory must end.
func (f *File) end64(at int64) (large []uint64, stop int64, err error) {
	stop = at - endLocator64 - end64Len
	if stop < 0 {
		return nil, at, nil
	}
	b := make([]byte, end64Len+endLocator64)
	if _, err := io.ReadFull(io.NewSectionReader(f.at, stop, int64(len(b))), b); err != nil {
		return nil, 0, err
	}
	end, loc := b[:end64Len], b[end64Len:]
	if !bytes.HasPrefix(loc, locator64Magic) {
		return nil, at, nil
	}
	le := binary.LittleEndian
	if off := le.Uint64(loc[8:]); off != uint64(stop) {
		return nil, 0, fmt.Errorf("got a locator of zip64 to %d; want %d, before itself", off, stop)
	}
	if le.Uint32(loc[4:]) != 0 || le.Uint32(loc[16:]) != 1 {
		return nil, 0, errors.New("got a locator of zip64 of several disks; want one")
	}
	if !bytes.HasPrefix(end, end64Magic) {
		return nil, 0, errors.New("got no signature of the end of zip64; want one")
	}
	if n := le.Uint64(end[4:]); n != end64Len-12 {
		return nil, 0, fmt.Errorf("got an end of zip64 of %d bytes; want %d", n, end64Len-12)
	}
	return []uint64{
		uint64(le.Uint32(end[16:])), uint64(le.Uint32(end[20:])), le.Uint64(end[24:]),
		le.Uint64(end[32:]), le.Uint64(end[40:]), le.Uint64(end[48:]),
	}, stop, nil
}

// checkEntry compares an entry, with which b begins, with what lies before and behind its data. stop is
// where the directory begins. It returns the length of the entry.
func (f *File) checkEntry(e *zip.File, b []byte, stop int64) (int, error) {
	if len(b) < entryLen || !bytes.HasPrefix(b, entryMagic) {
		return 0, errors.New("got no signature; want one")
	}
	le := binary.LittleEndian
	name, extra, comment := int(le.Uint16(b[28:])), int(le.Uint16(b[30:])), int(le.Uint16(b[32:]))
	n := entryLen + name + extra + comment
	if n > len(b) || string(b[entryLen:entryLen+name]) != e.Name {
		return 0, errors.New("got another name, or an end within it; want it whole")
	}
	if disk := le.Uint16(b[34:]); disk != 0 {
		return 0, fmt.Errorf("got disk %d; want 0", disk)
	}
	if bad := e.Flags & flagsUnread; bad != 0 {
		return 0, fmt.Errorf("got flags %#x; want none of %#x, which torch.load does not read", e.Flags, bad)
	}
	if e.Method != zip.Store && e.Method != zip.Deflate {
		return 0, fmt.Errorf("got compression method %d; want 0 or 8, which torch.load reads", e.Method)
	}
	if e.ExternalAttrs&attrFolder != 0 && e.UncompressedSize64 > 0 {
		return 0, errors.New("got the attribute of a folder; want it of a file, of which torch.load reads more than nothing")
	}
	if e.Method == zip.Store && e.CompressedSize64 != e.UncompressedSize64 {
		return 0, fmt.Errorf("got %d bytes in %d without compression; want as many", e.UncompressedSize64, e.CompressedSize64)
	}
	at, ok := entryOffset(b[:entryLen], b[entryLen+name:entryLen+name+extra])
	if !ok || at < 0 || at > stop-localLen {
		return 0, fmt.Errorf("got it at %d; want it before %d", at, stop)
	}
	return n, f.checkLocal(e, at, stop)
}

// entryOffset is where a record begins: in the field of zip64, where it does not fit the entry itself,
// behind the sizes that do not.
func entryOffset(b, extra []byte) (int64, bool) {
	le := binary.LittleEndian
	small := le.Uint32(b[42:])
	if small != 0xffffffff {
		return int64(small), true
	}
	skip := 0
	for _, size := range []uint32{le.Uint32(b[20:]), le.Uint32(b[24:])} {
		if size == 0xffffffff {
			skip += 8
		}
	}
	field := field64(extra)
	if len(field) < skip+8 {
		return 0, false
	}
	return int64(le.Uint64(field[skip:])), true
}

// field64 finds the extra field of zip64; nil where there is none.
func field64(extra []byte) []byte {
	le := binary.LittleEndian
	for len(extra) >= 4 {
		id, n := le.Uint16(extra), int(le.Uint16(extra[2:]))
		if n > len(extra)-4 {
			return nil
		}
		if id == 1 {
			return extra[4 : 4+n]
		}
		extra = extra[4+n:]
	}
	return nil
}

// checkLocal compares an entry with the header before its data.
func (f *File) checkLocal(e *zip.File, at, stop int64) error {
	b := make([]byte, min(int64(localLen+len(e.Name)), stop-at))
	if _, err := io.ReadFull(io.NewSectionReader(f.at, at, int64(len(b))), b); err != nil {
		return err
	}
	le := binary.LittleEndian
	if !bytes.HasPrefix(b, localMagic) {
		return fmt.Errorf("got no header at %d; want one", at)
	}
	if flags := le.Uint16(b[6:]); flags != e.Flags {
		return fmt.Errorf("got flags %#x; want %#x, as before the data", e.Flags, flags)
	}
	if method := le.Uint16(b[8:]); method != e.Method {
		return fmt.Errorf("got compression method %d; want %d, as before the data", e.Method, method)
	}
	if int(le.Uint16(b[26:])) != len(e.Name) || string(b[localLen:]) != e.Name {
		return fmt.Errorf("got another name than %.80q, as before the data; want it", b[localLen:])
	}
	extra := int64(le.Uint16(b[28:]))
	data := at + int64(len(b)) + extra
	if e.CompressedSize64 > uint64(stop) || data > stop-int64(e.CompressedSize64) {
		return fmt.Errorf("got %d bytes at %d; want them to end before %d", e.CompressedSize64, data, stop)
	}
	if e.Flags&flagDescriptor != 0 {
		return f.checkDescriptor(e, data+int64(e.CompressedSize64), stop)
	}
	field := make([]byte, extra)
	if _, err := io.ReadFull(io.NewSectionReader(f.at, data-extra, extra), field); err != nil {
		return err
	}
	field = field64(field)
	sizes := [2]uint64{uint64(le.Uint32(b[22:])), uint64(le.Uint32(b[18:]))} // in the order of field64
	for i := range sizes {
		if sizes[i] == 0xffffffff && len(field) >= 8 {
			sizes[i], field = le.Uint64(field), field[8:]
		}
	}
	return same(e, le.Uint32(b[14:]), sizes[1], sizes[0])
}

// checkDescriptor compares an entry with what lies behind its data. Its sizes are of 8 bytes where its
// writer needed zip64, for the sizes or for where the record lies.
func (f *File) checkDescriptor(e *zip.File, at, stop int64) error {
	b := make([]byte, min(descriptor64Len, stop-at))
	if _, err := io.ReadFull(io.NewSectionReader(f.at, at, int64(len(b))), b); err != nil {
		return err
	}
	if len(b) < descriptorLen || !bytes.HasPrefix(b, descriptorMagic) {
		return fmt.Errorf("got no descriptor at %d; want one behind the data", at)
	}
	le := binary.LittleEndian
	crc := le.Uint32(b[4:])
	err := same(e, crc, uint64(le.Uint32(b[8:])), uint64(le.Uint32(b[12:])))
	if err != nil && len(b) == descriptor64Len && same(e, crc, le.Uint64(b[8:]), le.Uint64(b[16:])) == nil {
		return nil
	}
	return err
}

func same(e *zip.File, crc uint32, compressed, size uint64) error {
	if e.CRC32 != crc || e.CompressedSize64 != compressed || e.UncompressedSize64 != size {
		return fmt.Errorf("got checksum %08x of %d bytes in %d; want %08x of %d in %d, as at the data",
			e.CRC32, e.UncompressedSize64, e.CompressedSize64, crc, size, compressed)
	}
	return nil
}
