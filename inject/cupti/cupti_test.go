// SPDX-License-Identifier: Apache-2.0

// Package cupti builds the client of CUPTI, which is C, with a stand-in of libcupti
// and runs its tests. It holds nothing else.
package cupti

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/cbuild"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// variants are the ways all is built.
var variants = []struct{ name, san string }{
	{"plain", cbuild.Plain},
	{"address and undefined", cbuild.ASan},
	{"thread", cbuild.TSan},
}

// run executes a command in this folder, without what in the environment would
// change the client, and returns what it printed.
func run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LOCKSTEP_") && !strings.HasPrefix(v, "MOCK_CUPTI_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "ASAN_OPTIONS=detect_leaks=0", "TSAN_OPTIONS=halt_on_error=1", "TMPDIR="+t.TempDir())
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestClientOnAStandIn(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			cbuild.Variant(t, v.san, "inject/cupti", "tests")
			dir := filepath.Join(testdata.Root(t), "bin", "inject", "cupti")
			if v.san != cbuild.Plain {
				dir += "-" + v.san
			}
			units, err := filepath.Glob("test/unit_*.c")
			require.NoError(t, err)
			require.Len(t, units, 3)
			for _, unit := range units {
				runCases(t, filepath.Join(dir, strings.TrimSuffix(filepath.Base(unit), ".c")))
			}
		})
	}
}

// runCases runs every case of one program as a test of its own.
func runCases(t *testing.T, unit string) {
	t.Helper()
	names, err := run(t, unit, "--list")
	require.NoError(t, err, names)
	for name := range strings.FieldsSeq(names) {
		t.Run(filepath.Base(unit)+"/"+name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, unit, name)
			assert.NoError(t, err, out)
		})
	}
}
