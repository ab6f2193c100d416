// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMemory_GOMEMLIMIT_IsTheLeast(t *testing.T) {
	before := debug.SetMemoryLimit(3 << 20)
	defer debug.SetMemoryLimit(before)
	assert.Equal(t, int64(3<<20), Memory())
}

func TestGroupMemory(t *testing.T) {
	const none = int64(math.MaxInt64)
	for name, tc := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing":               {nil, none},
		"container":             {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "4096\n"}, 4096},
		"service":               {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "8192\n"}, 8192},
		"a parent has less":     {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "8192\n", "sys/fs/cgroup/a/memory.max": "4096\n"}, 4096},
		"no limit":              {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, none},
		"version 1":             {map[string]string{"proc/self/cgroup": "3:memory:/a\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "4096\n"}, 4096},
		"a path out of the way": {map[string]string{"proc/self/cgroup": "0::/../../a\n", "sys/fs/cgroup/a/memory.max": "4096\n"}, 4096},
		"no number":             {map[string]string{"sys/fs/cgroup/memory.max": "-1"}, none},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range tc.files {
				full := filepath.Join(root, file)
				require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
				require.NoError(t, os.WriteFile(full, []byte(text), 0o600))
			}
			assert.Equal(t, tc.want, groupMemory(root))
		})
	}
}

func TestMachineMemory(t *testing.T) {
	for text, want := range map[string]int64{
		"MemTotal:       2 kB\nMemFree: 1 kB\n": 2048,
		"MemFree: 1 kB\n":                       math.MaxInt64,
		"MemTotal: x kB\n":                      math.MaxInt64,
		"MemTotal:\n":                           math.MaxInt64,
	} {
		file := filepath.Join(t.TempDir(), "meminfo")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		assert.Equal(t, want, machineMemory(file), text)
	}
	assert.Equal(t, int64(math.MaxInt64), machineMemory(filepath.Join(t.TempDir(), "none")))
}
