// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// image is a ring made in Go, word by word, so that tests can put anything into
// it. Its file may be written while it is mapped.
type image struct {
	b        []byte
	offset   [sections + 1]uint64
	lanes    int
	capacity uint64
	file     *os.File // set by save
}

var imageCounts = [sections + 1]uint64{sControl: 1, sStrings: 8, sComms: 4, sGPUs: 2, sFrontiers: 4, sSlots: 4}

// newImage lays a valid ring out as a producer does: each section on a page of
// its own.
func newImage(lanes int, capacity uint64) *image {
	return newImageOf(lanes, capacity, func(*[sections + 1]uint64) {})
}

// newImageOf makes tables of other sizes.
func newImageOf(lanes int, capacity uint64, resize func(*[sections + 1]uint64)) *image {
	m := &image{lanes: lanes, capacity: capacity}
	counts := imageCounts
	resize(&counts)
	counts[sLanes], counts[sRecords] = uint64(lanes), uint64(lanes)*capacity
	size := uint64(page)
	for kind := 1; kind <= sections; kind++ {
		m.offset[kind] = size
		size += (rules[kind].size*counts[kind] + page - 1) / page * page
	}
	m.b = make([]byte, size)
	m.set(atMagic, magic)
	m.set32(atVersion, version)
	m.set32(atHeaderSize, page)
	m.set(atFileSize, size)
	m.set(atPID, 1)
	m.set(atState, 1)
	for kind := 1; kind <= sections; kind++ {
		m.section(kind, uint64(kind)|rules[kind].size<<32, m.offset[kind], counts[kind])
	}
	return m
}

func (m *image) set(at, value uint64) {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], value)
	m.write(at, b[:])
}

func (m *image) set32(at uint64, value uint32) {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], value)
	m.write(at, b[:])
}

func (m *image) write(at uint64, b []byte) {
	copy(m.b[at:], b)
	if m.file != nil {
		if _, err := m.file.WriteAt(b, int64(at)); err != nil {
			panic(err)
		}
	}
}

func (m *image) section(kind int, sizeAndKind, offset, count uint64) {
	at := uint64(atSections + (kind-1)*sectionSize)
	m.set(at, sizeAndKind)
	m.set(at+8, offset)
	m.set(at+16, count)
}

// word is where word i of record n of a lane is.
func (m *image) word(lane int, n uint64, i int) uint64 {
	return m.offset[sRecords] + ((uint64(lane)*m.capacity+n&(m.capacity-1))*words+uint64(i))*8
}

func (m *image) head(lane int, n uint64) {
	m.set(m.offset[sLanes]+uint64(lane)*laneWords*8+laneHead*8, n)
}

// emit writes records from up to to of a lane as its producer would, all of one
// level, word 3 their number.
func (m *image) emit(lane int, from, to uint64, level Level) {
	for n := from; n < to; n++ {
		m.set(m.word(lane, n, 1), uint64(KindOp)|uint64(level)<<8)
		m.set(m.word(lane, n, 3), n)
		m.set(m.word(lane, n, 0), n+1)
		m.head(lane, n+1)
	}
}

func (m *image) save(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "1-2-00000003.ring")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = file.Close() })
	_, err = file.Write(m.b)
	require.NoError(tb, err)
	m.file = file
	return path
}

// open saves and opens the image.
func (m *image) open(tb testing.TB) *Ring {
	tb.Helper()
	return openRing(tb, m.save(tb))
}

func openRing(tb testing.TB, path string) *Ring {
	tb.Helper()
	r, err := Open(path, Options{})
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = r.Close() })
	return r
}

func ignore(int, *Record) {}

// numbers polls once and returns the numbers read, by lane.
func numbers(r *Ring, level Level) (read [][]uint64, c Counts) {
	read = make([][]uint64, len(r.lanes))
	c = r.Poll(level, func(lane int, rec *Record) { read[lane] = append(read[lane], rec.Number()) })
	return read, c
}
