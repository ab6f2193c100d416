// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ring"
)

// ringFile is a ring that a test writes as docs/format/ring.md says, so that it knows of each
// record what becomes of it. Its process is rank 0 of 1, and every lane has a communicator of
// its own besides the world's.
type ringFile struct {
	tb       testing.TB
	path     string
	file     *os.File
	offset   [9]uint64 // by kind of section
	capacity uint64
	heads    []uint64
	now      uint64 // of its clock, ns
	created  uint64
}

const (
	wordsOfRecord = 16
	codeAllReduce = 1 // in its strings
)

func newRingFile(tb testing.TB, dir string, lanes int, capacity, created uint64) *ringFile {
	tb.Helper()
	f := &ringFile{tb: tb, path: filepath.Join(dir, "7-7-0000000a.ring"), capacity: capacity, heads: make([]uint64, lanes), now: 1e9, created: created}
	var err error
	f.file, err = os.Create(f.path)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = f.file.Close() })
	sizes := [9]uint64{1: 4096, 64, 192, 64, 128, 256, 128, 128}
	counts := [9]uint64{1: 1, 8, 8, 2, 8, 4, uint64(lanes), uint64(lanes) * capacity}
	at := uint64(4096)
	for kind := 1; kind <= 8; kind++ {
		f.offset[kind] = at
		f.set(1024+uint64(kind-1)*32, uint64(kind)|sizes[kind]<<32, at, counts[kind])
		at += (sizes[kind]*counts[kind] + 4095) / 4096 * 4096
	}
	require.NoError(tb, f.file.Truncate(int64(at)))
	f.set(0, binary.NativeEndian.Uint64([]byte("LKSTRING")), 1|4096<<32, at)
	f.set(40, 7, 7, created) // pid, start time, created
	f.set(64, 0, 1)          // rank 0, local rank 0, world 1, restart 0
	f.set(88, f.now, 1, 0)   // heartbeat, live, step
	f.set(128, binary.NativeEndian.Uint64([]byte("job\x00\x00\x00\x00\x00")))
	f.set(2048, f.now, 1_700_000_000e9, 100, 1) // clock pair
	f.set(f.offset[2]+64*codeAllReduce, 2, binary.NativeEndian.Uint64([]byte("AllReduc")), 'e')
	for i := uint64(1); i <= uint64(lanes); i++ {
		f.set(f.offset[3]+192*i, 2, 0xfeed+i, 1, 1|5<<32) // live, hash, ranks and rank, nodes and version
		f.set(f.offset[3]+192*i+48, binary.NativeEndian.Uint64([]byte(fmt.Sprintf("group %02d", i))))
	}
	return f
}

// set writes words from an offset on.
func (f *ringFile) set(at uint64, words ...uint64) {
	b := make([]byte, 0, 8*len(words))
	for _, w := range words {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	_, err := f.file.WriteAt(b, int64(at))
	require.NoError(f.tb, err)
}

// emit writes a record as its producer would.
func (f *ringFile) emit(lane int, rec ring.Record) {
	n := f.heads[lane]
	rec[0] = n + 1
	f.set(f.offset[8]+(uint64(lane)*f.capacity+n%f.capacity)*wordsOfRecord*8, rec[:]...)
	f.heads[lane]++
	f.set(f.offset[7]+uint64(lane)*128+8, f.heads[lane])
}

// mark begins a step.
func (f *ringFile) mark(step int64) {
	f.now += 1000
	f.set(88, f.now, 1, uint64(step))
	f.emit(1, ring.Record{1: uint64(ring.KindStep) | 1<<8, 2: uint64(step), 3: f.now})
}

// unmarked is the step of what a program that marks none does.
const unmarked = 1<<32 - 1

// op writes an all-reduce of a step, which took 500 ns; seq is its number on the communicator.
func (f *ringFile) op(lane int, comm uint16, step int64, seq uint64) {
	f.now += 1000
	f.emit(lane, ring.Record{
		1: uint64(ring.KindOp) | 1<<8 | uint64(ring.FlagProxy)<<16 | uint64(comm)<<32 | codeAllReduce<<48,
		3: seq, 4: 64, 6: f.now - 500, 7: 100 | uint64(step)<<32, 11: f.now, 12: 1 | 4<<32, 13: 1 << 32,
	})
}

func (f *ringFile) written() (n uint64) {
	for _, head := range f.heads {
		n += head
	}
	return n
}
