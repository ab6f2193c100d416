// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"
	"unsafe"
)

// DefaultMaxFileBytes is the largest file that is opened where Options do not
// say: 16 times what a producer makes by default, twice the most that it makes.
const DefaultMaxFileBytes = 1 << 30

// Options say which files are taken for rings, and when their processes are dead.
type Options struct {
	// MaxFileBytes limits the size of a file; 0: DefaultMaxFileBytes.
	MaxFileBytes int64
	// Owner judges a file's owner. nil: our own user, root, a group that we belong
	// to, and in a directory that not everybody may write to, whoever root or we let
	// in, or its owner.
	Owner func(uid, gid uint32) bool
	// DeadAfter is how long a process must be silent to count as dead; 0: DeathSilence.
	DeadAfter time.Duration
}

func (o Options) deadAfter() time.Duration {
	if o.DeadAfter > 0 {
		return o.DeadAfter
	}
	return DeathSilence
}

func (o Options) maxFile() int64 {
	if o.MaxFileBytes > 0 {
		return o.MaxFileBytes
	}
	return DefaultMaxFileBytes
}

// Ring is one open ring. It belongs to one goroutine: no two of its methods may
// run at once.
type Ring struct {
	path  string
	file  *os.File
	shape *shape
	// deadAfter is how long the process must be silent to count as dead.
	deadAfter time.Duration
	// mapping is the whole file, read-only; nil once closed.
	mapping []byte
	// control is the control page, mapped for writing by the first SetLevel.
	control []byte

	header    []uint64
	frontiers []uint64
	slots     []uint64
	comms     []uint64
	gpus      []uint64
	lanes     []lane
	strings   stringTable

	rec   Record // handed to callbacks, so that none is allocated
	total Counts
	// missingUntil is MissingUntil of the last poll.
	missingUntil uint64
	resuming     bool // the next poll reads only what the reader before had read
	faults       uint64
	err          error
}

// errClosed is why a closed ring yields nothing.
var errClosed = errors.New("use ring: closed")

// Open opens and checks the ring at path. Nothing of a file that is not a
// regular one, whose owner is not wanted, or whose header lies is mapped; the
// error is then an *Error.
func Open(path string, o Options) (*Ring, error) {
	if err := inspect(path, o); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, openFlags, 0)
	if err != nil {
		return nil, failed(path, "file", err, "one that may be read")
	}
	r, err := openFile(path, file, o)
	if err != nil {
		_ = file.Close() // only read from
		return nil, err
	}
	return r, nil
}

func openFile(path string, file *os.File, o Options) (*Ring, error) {
	// Judged again: the name may lead elsewhere since it was looked at.
	info, err := file.Stat()
	if err != nil {
		return nil, failed(path, "file", err, "its status")
	}
	if err := judge(path, info, o); err != nil {
		return nil, err
	}
	head := make([]byte, page)
	if _, err := file.ReadAt(head, 0); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, refuse(path, "file", fmt.Sprintf("%d bytes", info.Size()), fmt.Sprintf("a header of %d bytes", page))
		}
		return nil, failed(path, "header", err, "to read it")
	}
	shape, err := parse(path, head, info.Size())
	if err != nil {
		return nil, err
	}
	mapping, err := mapFile(file, 0, int(info.Size()), false)
	if err != nil {
		return nil, failed(path, "mapping", err, fmt.Sprintf("%d bytes mapped", info.Size()))
	}
	r := &Ring{path: path, file: file, shape: shape, deadAfter: o.deadAfter(), mapping: mapping}
	r.lay()
	r.guarded(func() {
		for i := range r.lanes {
			r.lanes[i].opened = load(&r.lanes[i].state[laneHead])
		}
	})
	return r, r.err
}

// lay finds the tables in the mapping.
func (r *Ring) lay() {
	r.header = r.words(0, page)
	table := func(kind int) []uint64 {
		s := r.shape.section[kind]
		return r.words(s.offset, s.size*s.count)
	}
	r.frontiers, r.slots = table(sFrontiers), table(sSlots)
	r.comms, r.gpus = table(sComms), table(sGPUs)
	r.strings.words = table(sStrings)
	heads, records := table(sLanes), table(sRecords)
	r.lanes = make([]lane, r.shape.Lanes)
	each := int(r.shape.Capacity) * words
	for i := range r.lanes {
		r.lanes[i] = lane{
			state: heads[i*laneWords:][:laneWords:laneWords], words: records[i*each:][:each:each],
			mask: r.shape.Capacity - 1, shared: i == 0,
		}
	}
}

// words views a checked extent of the mapping, which is aligned to 8 bytes.
func (r *Ring) words(offset, length uint64) []uint64 {
	b := r.mapping[offset:][:length:length]
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

// Path that the ring was opened by.
func (r *Ring) Path() string { return r.path }

// Header says whose ring it is.
func (r *Ring) Header() Header { return r.shape.Header }

// Err is why the ring yields nothing any more: it was closed, or its file was
// truncated while mapped (an *Error). nil while all is well.
func (r *Ring) Err() error { return r.err }

// Close gives everything back. Calls after the first do nothing.
func (r *Ring) Close() error {
	if r.err == nil {
		r.err = errClosed
	}
	return r.release()
}

func (r *Ring) release() error {
	if r.mapping == nil {
		return nil
	}
	err := errors.Join(unmap(r.mapping), unmap(r.control), r.file.Close())
	r.mapping, r.control, r.header, r.frontiers, r.slots = nil, nil, nil, nil, nil
	r.comms, r.gpus, r.strings.words = nil, nil, nil
	for i := range r.lanes {
		r.lanes[i].state, r.lanes[i].words = nil, nil
	}
	if err != nil {
		return fmt.Errorf("close ring %s: %w", r.path, err)
	}
	return nil
}

// guarded runs f, which reads the mapping. A file that was truncated under it
// makes that a fault, which ends the ring rather than the process.
func (r *Ring) guarded(f func()) {
	if r.err != nil {
		return
	}
	defer r.caught(debug.SetPanicOnFault(true))
	f()
}

// caught is deferred by what reads the mapping.
func (r *Ring) caught(before bool) {
	debug.SetPanicOnFault(before)
	v := recover() //nolint:revive // every caller defers it
	if v == nil {
		return
	}
	at, ours := r.faultOffset(v)
	if !ours {
		panic(v)
	}
	r.faults++
	r.err = refuse(r.path, "mapping", fmt.Sprintf("a fault at byte %d: truncated while mapped", at),
		fmt.Sprintf("%d bytes until it is closed", r.shape.FileSize))
	_ = r.release() // the fault is the error to tell
}

// faultOffset says where in the file a fault was; other panics, such as a
// callback's, are not ours.
func (r *Ring) faultOffset(v any) (uintptr, bool) {
	fault, ok := v.(interface{ Addr() uintptr })
	if !ok {
		return 0, false
	}
	if at, ok := within(r.mapping, fault.Addr()); ok {
		return at, true
	}
	at, ok := within(r.control, fault.Addr())
	return uintptr(r.shape.section[sControl].offset) + at, ok
}

func within(b []byte, addr uintptr) (uintptr, bool) {
	at := addr - uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return at, at < uintptr(len(b))
}

func load(w *uint64) uint64 { return atomic.LoadUint64(w) }

// word reads one word of the header; 0 once the ring has ended.
func (r *Ring) word(at int) (w uint64) {
	r.guarded(func() { w = load(&r.header[at/8]) })
	return w
}
