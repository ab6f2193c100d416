// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// MaxMiB is the most MiB that a limit may be set to: an exbibyte, beyond which bytes overflow.
const MaxMiB = 1 << 40

// unknownMemory is taken where the system tells nothing: that of a small machine.
const unknownMemory = 4 << 30

// Memory returns how many bytes the process may use: the least of GOMEMLIMIT, the limit of its
// control group and the machine's memory.
func Memory() int64 {
	least := min(debug.SetMemoryLimit(-1), groupMemory("/"), machineMemory("/proc/meminfo"))
	if least == math.MaxInt64 {
		return unknownMemory
	}
	return least
}

// groupMemory returns the limit of the process's control group under a root of the file system, of
// version 2, or else of version 1; math.MaxInt64 where there is none.
func groupMemory(root string) int64 {
	least := int64(math.MaxInt64)
	groups := path.Join(root, "sys/fs/cgroup")
	for dir := ownGroup(root); ; dir = path.Dir(dir) {
		least = min(least, limitIn(path.Join(groups, dir, "memory.max")))
		if dir == "/" {
			break
		}
	}
	return min(least, limitIn(path.Join(groups, "memory/memory.limit_in_bytes")))
}

// ownGroup returns the path of the process's control group, "/" where it is not known.
func ownGroup(root string) string {
	text, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return "/"
	}
	for line := range strings.Lines(string(text)) {
		if dir, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path.Clean("/" + dir)
		}
	}
	return "/"
}

// limitIn reads a limit; math.MaxInt64 where there is none, as for "max".
func limitIn(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n <= 0 {
		return math.MaxInt64
	}
	return n
}

// machineMemory reads the machine's memory from a file as /proc/meminfo; math.MaxInt64 where it
// does not tell.
func machineMemory(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return math.MaxInt64
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "MemTotal:" {
			continue
		}
		if kib, err := strconv.ParseInt(f[1], 10, 53); err == nil && kib > 0 {
			return kib << 10
		}
	}
	return math.MaxInt64
}
