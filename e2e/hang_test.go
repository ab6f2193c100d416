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

// Each way to hang is named while the job stands, on another rank each. How soon and how
// surely is measured by bench/demo/hangs.sh.
func TestDemoHangs(t *testing.T) {
	for _, name := range []string{"lockstep-demo-worker", "libnccl-profiler-lockstep.so"} {
		built(t, name)
	}
	for i, f := range []struct{ fault, class string }{
		{"hang", "not_scheduled"}, {"exit", "process_dead"}, {"mismatch", "mismatch_size"},
	} {
		t.Run(f.fault, func(t *testing.T) {
			dir := t.TempDir()
			p := start(t, nil, built(t, "lockstep"), "demo", "--json", "--fault", f.fault, "--rank", strconv.Itoa(i), "--once", "--dir", dir)
			require.Zero(t, p.wait(t, 3*time.Minute), p.output.String())
			var hangs []demoLine
			for line := range bytes.Lines([]byte(p.output.String())) {
				var l demoLine
				require.NoError(t, json.Unmarshal(line, &l), string(line))
				if l.Finding == "desync" {
					hangs = append(hangs, l)
				}
			}
			require.Len(t, hangs, 1, p.output.String())
			require.NotNil(t, hangs[0].Rank)
			assert.Equal(t, i, *hangs[0].Rank)
			assert.Equal(t, f.class, hangs[0].Class)
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}

// A rank that is stopped for a while holds up all others, and the job does not hang; one that
// stands as long in its forward pass is told of. bench/demo/quiet.sh has all rhythms, for longer.
func TestDemoStandsStillAndGoesOn(t *testing.T) {
	built(t, "lockstep")
	bench := filepath.Join(t.TempDir(), "bench")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bench, "./bench/demo")
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
