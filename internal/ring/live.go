// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"unsafe"
)

// stateClosed is the header's state once its process closed the ring.
const stateClosed = 2

// Alive says whether the ring's process lives, which it shows by a record lock
// that the kernel takes back at its death, and whether it closed the ring. Pids
// are not asked: they mean nothing across containers. A process's own lock is
// invisible to itself. The error is the operating system's, or Err.
func (r *Ring) Alive() (alive, closed bool, err error) {
	if r.err != nil {
		return false, false, r.err
	}
	// The lock first: a process closes its ring before it lets go of the lock.
	alive, err = locked(r.file)
	if err != nil {
		return false, false, failed(r.path, "lock", err, "to ask for its holder")
	}
	closed = r.word(atState) == stateClosed
	if r.err != nil {
		return false, false, r.err
	}
	return alive && !closed, closed, nil
}

// Holder is the pid, in our own namespace, of the process that holds the ring's lock;
// false where nobody does, or nobody that has a pid here.
func (r *Ring) Holder() (pid int, ok bool) {
	if r.err != nil {
		return 0, false
	}
	held, id, err := holder(r.file)
	return int(id), held && err == nil && id > 0
}

// Heartbeat is the last sign of life, ns; producers give one a second.
func (r *Ring) Heartbeat() uint64 { return r.word(atHeartbeat) }

// Step is the step that the process is at; false where it marks none.
func (r *Ring) Step() (int64, bool) {
	s := r.word(atStep)
	return int64(s), s != math.MaxUint64 && r.err == nil
}

// Level is the level of detail that the producer records now.
func (r *Ring) Level() Level { return Level(r.word(atLevel)) }

// Replaced reports whether the path now names another file. A file that was
// removed is not replaced: its process may still write to it.
func (r *Ring) Replaced() bool {
	if r.err != nil {
		return false
	}
	now, err := os.Lstat(r.path)
	if err != nil {
		return false
	}
	opened, err := r.file.Stat()
	return err == nil && !os.SameFile(now, opened)
}

// Asked is the level that the control page asks for; 0 leaves it to the producer.
func (r *Ring) Asked() (l Level) {
	r.guarded(func() { l = Level(load(&r.words(r.shape.section[sControl].offset, page)[controlLevel])) })
	return l
}

// Words of the control page.
const (
	controlLevel = iota
	controlPID
	controlAt
	controlWords
)

// SetLevel asks the producer for a level of detail; 0 leaves it to the producer.
// It needs permission to write the file and maps nothing but the control page
// for it.
func (r *Ring) SetLevel(l Level) error {
	if l > LevelAll {
		return fmt.Errorf("set level of ring %s: got %v; want 0 to %d", r.path, l, uint8(LevelAll))
	}
	if err := r.mapControl(); err != nil {
		return err
	}
	r.guarded(func() {
		w := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(r.control))), controlWords)
		atomic.StoreUint64(&w[controlPID], uint64(os.Getpid()))
		atomic.StoreUint64(&w[controlAt], Now())
		atomic.StoreUint64(&w[controlLevel], uint64(l))
	})
	return r.err
}

func (r *Ring) mapControl() error {
	if r.err != nil || r.control != nil {
		return r.err
	}
	file, err := os.OpenFile(r.path, openFlags|os.O_RDWR, 0)
	if err != nil {
		return failed(r.path, "control", err, "permission to write it, to set the level")
	}
	defer func() { _ = file.Close() }() // the mapping stays
	now, err1 := file.Stat()
	opened, err2 := r.file.Stat()
	if err := errors.Join(err1, err2); err != nil {
		return failed(r.path, "control", err, "its status")
	}
	if !os.SameFile(now, opened) {
		return refuse(r.path, "control", "another file under this name", "the one that was opened")
	}
	r.control, err = mapFile(file, int64(r.shape.section[sControl].offset), page, true)
	if err != nil {
		return failed(r.path, "control", err, "its page mapped for writing")
	}
	return nil
}
