// SPDX-License-Identifier: Apache-2.0

package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// The layout is that of bbolt v1.5.0, internal/common (page.go, meta.go, bucket.go), on a little-endian machine.
const (
	magic, version = 0xED0CDAED, 2

	pageHeader  = 16 // id u64, flags u16, count u16, overflow u32
	elementSize = 16 // leaf: flags, position, key and value bytes, u32 each; branch: position, key bytes u32, page u64
	bucketSize  = 16 // root page u64, sequence u64
	metaSize    = 64 // magic, version, page size, flags u32, root bucket, freelist, pages, transaction, checksum u64

	branchPage, leafPage = 0x01, 0x02
	bucketLeaf           = 0x01 // flag of a leaf's element

	minPage, maxPage = 1 << 10, 1 << 25
	maxKey           = 32768
	maxDepth         = 64 // far more than a tree of any file has, and buckets in buckets
)

// ErrDamaged is the error of a file that bbolt cannot use. Other errors are those of reading.
var ErrDamaged = errors.New("damaged")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

// Check returns what is wrong with a file of so many bytes; nil where bbolt can open and walk it. An empty file is
// one that bbolt initialises. Values are not read: nothing in the file shows whether one has changed.
func Check(file io.ReaderAt, size int64) error {
	if size == 0 {
		return nil
	}
	m, err := newestMeta(file, size)
	if err != nil {
		return err
	}
	c := &checker{file: file, size: size, meta: m, seen: map[uint64]bool{}}
	return c.bucket(m.root, 0)
}

// meta is what a page at the beginning of the file says of the rest.
type meta struct {
	pageSize, root, pages, transaction uint64
}

// newestMeta returns the meta page of the last transaction. The second one is at the page size, which the first has.
func newestMeta(file io.ReaderAt, size int64) (*meta, error) {
	first, err := metaAt(file, size, 0)
	if err != nil {
		return nil, err
	}
	var second *meta
	for at := int64(minPage); at <= maxPage && second == nil; at <<= 1 {
		if first != nil && uint64(at) != first.pageSize {
			continue
		}
		if second, err = metaAt(file, size, at); err != nil {
			return nil, err
		}
		if second != nil && second.pageSize != uint64(at) {
			second = nil
		}
	}
	switch {
	case first == nil && second == nil:
		return nil, damaged("got no valid meta page; want one at least")
	case first == nil || second != nil && second.transaction > first.transaction:
		first = second
	}
	if size < 2*int64(first.pageSize) { //nolint:gosec // at most maxPage
		return nil, damaged("got %d bytes; want two pages of %d at least", size, first.pageSize)
	}
	return first, nil
}

// metaAt returns the meta page at an offset; nil where there is no valid one.
func metaAt(file io.ReaderAt, size, at int64) (*meta, error) {
	if at+pageHeader+metaSize > size {
		return nil, nil //nolint:nilnil // no page is no error
	}
	var b [metaSize]byte
	if _, err := file.ReadAt(b[:], at+pageHeader); err != nil {
		return nil, fmt.Errorf("read meta page: %w", err)
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSize-8])
	word, long := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	m := &meta{pageSize: uint64(word(b[8:])), root: long(b[16:]), pages: long(b[40:]), transaction: long(b[48:])}
	if word(b[:]) != magic || word(b[4:]) != version || long(b[metaSize-8:]) != sum.Sum64() ||
		m.pageSize < minPage || m.pageSize > maxPage || m.pageSize&(m.pageSize-1) != 0 {
		return nil, nil //nolint:nilnil // no valid page is no error
	}
	return m, nil
}

// checker walks the pages of a file.
type checker struct {
	file io.ReaderAt
	size int64
	meta *meta
	seen map[uint64]bool // pages that were met
}

// page is a page with those that follow it as one.
type page struct {
	id, bytes    uint64
	at           int64
	flags, count uint16
}

// open reads the header of a page, and notes that it was met.
func (c *checker) open(id uint64) (*page, error) {
	if id < 2 || id >= c.meta.pages || id > uint64(c.size)/c.meta.pageSize { //nolint:gosec // a size is not negative
		return nil, damaged("page %d: got one of %d pages in %d bytes", id, c.meta.pages, c.size)
	}
	at := int64(id * c.meta.pageSize) //nolint:gosec // at most size
	var b [pageHeader]byte
	if at+pageHeader > c.size {
		return nil, damaged("page %d: got %d bytes; want the page at %d", id, c.size, at)
	}
	if _, err := c.file.ReadAt(b[:], at); err != nil {
		return nil, fmt.Errorf("read page %d: %w", id, err)
	}
	own, more := binary.LittleEndian.Uint64(b[:]), uint64(binary.LittleEndian.Uint32(b[12:]))
	p := &page{id: id, at: at, bytes: (more + 1) * c.meta.pageSize, flags: binary.LittleEndian.Uint16(b[8:]), count: binary.LittleEndian.Uint16(b[10:])}
	switch {
	case own != id:
		return nil, damaged("page %d: got the number %d in it", id, own)
	case p.flags != branchPage && p.flags != leafPage:
		return nil, damaged("page %d: got flags %#x; want a branch or a leaf", id, p.flags)
	case id+more >= c.meta.pages || p.bytes > uint64(c.size-at): //nolint:gosec // at is within size
		return nil, damaged("page %d: got %d pages that follow it; want the end within %d pages and %d bytes", id, more, c.meta.pages, c.size)
	case p.dataAt() > p.bytes:
		return nil, damaged("page %d: got %d elements; want what %d bytes hold", id, p.count, p.bytes)
	}
	for n := id; n <= id+more; n++ {
		if c.seen[n] {
			return nil, damaged("page %d: it is met twice", n)
		}
		c.seen[n] = true
	}
	return p, nil
}

// bucket walks the tree of a bucket.
func (c *checker) bucket(root uint64, depth int) error { return c.tree(root, nil, nil, depth) }

// tree walks the tree below a page, whose first key is the one that the page above it has, and whose others are below
// the next of that page; nil: any.
func (c *checker) tree(id uint64, from, below []byte, depth int) error {
	if depth > maxDepth {
		return damaged("page %d: got a tree deeper than %d", id, maxDepth)
	}
	p, err := c.open(id)
	if err != nil {
		return err
	}
	elements := make([]byte, int(p.count)*elementSize)
	if _, err := c.file.ReadAt(elements, p.at+pageHeader); err != nil {
		return fmt.Errorf("read page %d: %w", id, err)
	}
	if p.flags == leafPage {
		return c.leaf(p, elements, from, below, depth)
	}
	return c.branch(p, elements, from, below, depth)
}

func (c *checker) branch(p *page, elements, from, below []byte, depth int) error {
	if p.count == 0 {
		return damaged("page %d: got a branch without elements", p.id)
	}
	keys, children, end := make([][]byte, p.count), make([]uint64, p.count), p.dataAt()
	for i := range keys {
		e := elements[i*elementSize:]
		key, err := c.key(p, i, &end, binary.LittleEndian.Uint32(e), binary.LittleEndian.Uint32(e[4:]), 0)
		if err != nil {
			return err
		}
		keys[i], children[i] = key, binary.LittleEndian.Uint64(e[8:])
	}
	if err := ordered(p, keys, from, below); err != nil {
		return err
	}
	for i, child := range children {
		next := below
		if i+1 < len(keys) {
			next = keys[i+1]
		}
		if err := c.tree(child, keys[i], next, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) leaf(p *page, elements, from, below []byte, depth int) error {
	keys, end := make([][]byte, p.count), p.dataAt()
	for i := range keys {
		e := elements[i*elementSize:]
		position, keyBytes, valueBytes := binary.LittleEndian.Uint32(e[4:]), binary.LittleEndian.Uint32(e[8:]), binary.LittleEndian.Uint32(e[12:])
		key, err := c.key(p, i, &end, position, keyBytes, valueBytes)
		if err != nil {
			return err
		}
		keys[i] = key
		if binary.LittleEndian.Uint32(e)&bucketLeaf != 0 {
			value := p.at + int64(pageHeader+i*elementSize) + int64(position) + int64(keyBytes)
			if err := c.inner(p, value, valueBytes, depth); err != nil {
				return err
			}
		}
	}
	return ordered(p, keys, from, below)
}

// inner walks a bucket that is an element of a leaf. One without pages of its own has a page within its value.
func (c *checker) inner(p *page, at int64, length uint32, depth int) error {
	if length < bucketSize {
		return damaged("page %d: got a bucket of %d bytes; want %d at least", p.id, length, bucketSize)
	}
	var b [bucketSize]byte
	if _, err := c.file.ReadAt(b[:], at); err != nil {
		return fmt.Errorf("read page %d: %w", p.id, err)
	}
	if root := binary.LittleEndian.Uint64(b[:]); root != 0 {
		return c.bucket(root, depth+1)
	}
	if length < bucketSize+pageHeader {
		return damaged("page %d: got a bucket of %d bytes without a page", p.id, length)
	}
	var header [pageHeader]byte
	if _, err := c.file.ReadAt(header[:], at+bucketSize); err != nil {
		return fmt.Errorf("read page %d: %w", p.id, err)
	}
	in := &page{id: p.id, at: at + bucketSize, bytes: uint64(length - bucketSize), flags: binary.LittleEndian.Uint16(header[8:]), count: binary.LittleEndian.Uint16(header[10:])}
	if in.flags != leafPage || in.dataAt() > in.bytes || depth >= maxDepth {
		return damaged("page %d: got a bucket in it with flags %#x and %d elements; want a leaf that fits", p.id, in.flags, in.count)
	}
	elements := make([]byte, int(in.count)*elementSize)
	if _, err := c.file.ReadAt(elements, in.at+pageHeader); err != nil {
		return fmt.Errorf("read page %d: %w", p.id, err)
	}
	return c.leaf(in, elements, nil, nil, depth+1)
}

// dataAt returns where the keys and values of a page begin.
func (p *page) dataAt() uint64 { return pageHeader + uint64(p.count)*elementSize }

// key reads the key of an element, whose position counts from the element, and checks that its key and value follow
// those of the element before, whose end it moves.
func (c *checker) key(p *page, i int, end *uint64, position, keyBytes, valueBytes uint32) ([]byte, error) {
	begin := uint64(pageHeader+i*elementSize) + uint64(position) //nolint:gosec // an index is not negative
	if keyBytes == 0 || keyBytes > maxKey || begin != *end || begin+uint64(keyBytes)+uint64(valueBytes) > p.bytes {
		return nil, damaged("page %d: got an element of %d and %d bytes at %d; want it at %d and within %d bytes", p.id, keyBytes, valueBytes, begin, *end, p.bytes)
	}
	*end = begin + uint64(keyBytes) + uint64(valueBytes)
	key := make([]byte, keyBytes)
	if _, err := c.file.ReadAt(key, p.at+int64(begin)); err != nil { //nolint:gosec // within the page
		return nil, fmt.Errorf("read page %d: %w", p.id, err)
	}
	return key, nil
}

// ordered checks that keys ascend, begin with one and are below another; nil: any.
func ordered(p *page, keys [][]byte, from, below []byte) error {
	if len(keys) == 0 && from != nil {
		return damaged("page %d: it is empty", p.id)
	}
	for i, key := range keys {
		switch {
		case i == 0 && from != nil && !bytes.Equal(key, from):
			return damaged("page %d: the first key is not that of the page above", p.id)
		case i > 0 && bytes.Compare(key, keys[i-1]) <= 0:
			return damaged("page %d: key %d is out of order", p.id, i)
		case below != nil && bytes.Compare(key, below) >= 0:
			return damaged("page %d: key %d belongs to another page", p.id, i)
		}
	}
	return nil
}
