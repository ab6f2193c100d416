// SPDX-License-Identifier: Apache-2.0

package cbuild

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// checkout is a copy of the C code in a folder of its own.
func checkout(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module github.com/lockstep-otel/lockstep\n"), 0o600))
	from := testdata.Root(t)
	for _, glob := range sources {
		files, err := filepath.Glob(filepath.Join(from, glob))
		require.NoError(t, err)
		require.NotEmpty(t, files, glob)
		for _, file := range files {
			to := filepath.Join(root, strings.TrimPrefix(file, from))
			require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o750))
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(to, text, 0o600))
		}
	}
	return root
}

// built returns when each file of a folder was built.
func built(t *testing.T, root string) map[string]time.Time {
	t.Helper()
	times := map[string]time.Time{}
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "bin"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			st, err := d.Info()
			require.NoError(t, err)
			times[strings.TrimPrefix(path, root)] = st.ModTime()
		}
		return err
	}))
	return times
}

const worker, checker = "/bin/lockstep-demo-worker", "/bin/demo/check.so"

// unoptimised takes half the compiler's time; make does not care.
const unoptimised = "CFLAGS=-O0"

func TestMake_NothingChanged_CompilesNothing(t *testing.T) {
	root := checkout(t)
	t.Chdir(root)
	Make(t, "demo", "tests", unoptimised)
	first := built(t, root)
	require.Contains(t, first, worker)
	require.Contains(t, first, checker)

	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			if out, err := locked(filepath.Join(root, "demo"), []string{"tests", unoptimised}); err != nil {
				t.Errorf("make: %v\n%s", err, out)
			}
		})
	}
	callers.Wait()

	assert.Equal(t, first, built(t, root))
}

func TestMake_SourceOrFlagsChanged_CompilesAnew(t *testing.T) {
	root := checkout(t)
	t.Chdir(root)
	Make(t, "demo", "tests", unoptimised)
	for name, change := range map[string]func(){
		"header":  func() { touch(t, root, "demo/worker/worker.h") },
		"other's": func() { touch(t, root, "inject/cupti/test/mock_cupti.h") },
		"rules":   func() { touch(t, root, "inject/common.mk") },
		"source removed": func() {
			require.NoError(t, os.Rename(filepath.Join(root, "demo", "worker", "stats.c"), filepath.Join(root, "demo", "worker", "more.c")))
		},
	} {
		first := built(t, root)
		change()
		Make(t, "demo", "tests", unoptimised)
		assert.True(t, built(t, root)[worker].After(first[worker]), name)
	}
	first := built(t, root)
	Make(t, "demo", "tests", "CFLAGS=-O1")
	for _, file := range []string{worker, checker} {
		assert.True(t, built(t, root)[file].After(first[file]), file)
	}
}

func touch(t *testing.T, root, name string) {
	t.Helper()
	now := time.Now()
	require.NoError(t, os.Chtimes(filepath.Join(root, name), now, now))
}

func TestMake_SourceThatDoesNotCompile_LeavesNoProgram(t *testing.T) {
	root := checkout(t)
	require.NoError(t, os.WriteFile(filepath.Join(root, "demo", "worker", "stats.c"), []byte("int main(void) { return }\n"), 0o600))

	out, err := locked(filepath.Join(root, "demo"), []string{"tests", unoptimised})

	require.Error(t, err)
	assert.Contains(t, string(out), "stats.c:1:")
	assert.NotContains(t, built(t, root), worker)
}
