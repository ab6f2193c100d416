// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each way to hang is named while the job stands, on another rank each. Each step has three
// all-reduces, and the first of step 60 is the one that is not left. How soon and how surely
// is measured by bench/demo/hangs.sh.
func TestDemoHangs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"lockstep-demo-worker", "libnccl-profiler-lockstep.so"} {
		built(t, name)
	}
	for i, f := range []struct{ fault, class string }{
		{"hang", "not_scheduled"}, {"exit", "process_dead"}, {"mismatch", "mismatch_size"},
	} {
		t.Run(f.fault, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := start(t, nil, built(t, "lockstep"), "demo", "--json", "--fault", f.fault, "--rank", strconv.Itoa(i), "--once", "--dir", dir)
			require.Zero(t, p.wait(t, 3*time.Minute), p.output.String())
			var hangs []demoLine
			for line := range bytes.Lines([]byte(p.output.String())) {
				var l demoLine
				require.NoError(t, json.Unmarshal(line, &l), string(line))
				switch l.Finding {
				case "desync":
					hangs = append(hangs, l)
				case "":
					assert.Equal(t, 60, l.Steps)
					assert.False(t, l.Identical, "there is no last step to compare after")
				}
			}
			require.Len(t, hangs, 1, p.output.String())
			require.NotNil(t, hangs[0].Rank)
			assert.Equal(t, i, *hangs[0].Rank)
			assert.Equal(t, f.class, hangs[0].Class)
			assert.Equal(t, "all_reduce 180", hangs[0].Op)
			assert.Len(t, hangs[0].Waiting, 3)
			assert.NotContains(t, hangs[0].Waiting, i)
			assert.GreaterOrEqual(t, hangs[0].Limit, 2.0, "the least limit")
			assert.Greater(t, hangs[0].Still, hangs[0].Limit)
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}

// A rank that is stopped for a while holds up all others, and the job does not hang; one that
// stands as long in its forward pass is told of. bench/demo/quiet.sh has all rhythms, for longer.
func TestDemoStandsStillAndGoesOn(t *testing.T) {
	t.Parallel()
	built(t, "lockstep")
	bench := filepath.Join(t.TempDir(), "bench")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", bench, "./bench/demo")
	build.Dir = repoRoot(t)
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))
	for _, rhythm := range []string{"SIGSTOP", "control"} {
		t.Run(rhythm, func(t *testing.T) {
			t.Parallel()
			args := []string{"quiet", "-bin", filepath.Join(repoRoot(t), "bin"), "-for", "50s", "-first", "10s", "-held", "15s", "-only", rhythm}
			p := start(t, nil, bench, args...)
			assert.Zero(t, p.wait(t, 2*time.Minute), p.output.String())
		})
	}
}
