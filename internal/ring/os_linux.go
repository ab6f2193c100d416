// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// A name that became a link since it was looked at is not followed, and a FIFO
// does not make us wait for its writer.
const openFlags = syscall.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC

func mapFile(file *os.File, offset int64, length int, write bool) ([]byte, error) {
	protection := syscall.PROT_READ
	if write {
		protection |= syscall.PROT_WRITE
	}
	return syscall.Mmap(int(file.Fd()), offset, length, protection, syscall.MAP_SHARED)
}

func unmap(b []byte) error {
	if b == nil {
		return nil
	}
	return syscall.Munmap(b)
}

func ownerOf(info os.FileInfo) (uid, gid uint32, ok bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return s.Uid, s.Gid, true
}

// locked asks whether another process holds a record lock on the first byte.
func locked(file *os.File) (bool, error) {
	held, _, err := holder(file)
	return held, err
}

// holder asks who does. The kernel answers across pid namespaces, with pid 0 where
// ours has no name for the holder, and asking leaves all locks as they are.
func holder(file *os.File) (held bool, pid int32, err error) {
	for {
		l := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: 0, Start: 0, Len: 1}
		err := syscall.FcntlFlock(file.Fd(), syscall.F_GETLK, &l)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || l.Type == syscall.F_UNLCK {
			return false, 0, err
		}
		return true, l.Pid, nil
	}
}

// clockMonotonicRaw is CLOCK_MONOTONIC_RAW of <linux/time.h>.
const clockMonotonicRaw = 4

// Now reads the clock that rings use: CLOCK_MONOTONIC_RAW, ns.
func Now() uint64 {
	var t syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonicRaw, uintptr(unsafe.Pointer(&t)), 0)
	if errno != 0 {
		return 0
	}
	return uint64(t.Nano())
}

// BootID is the id of the host's boot, as in Header; empty where it is unknown.
var BootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})
