// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// killedJobs are the jobs of real frameworks that testdata/killed/killed.py kills while they save, with the
// module that each needs.
var killedJobs = []struct{ name, module string }{
	{"dcp/fresh", "torch"},
	{"dcp/over", "torch"},
	{"dcp/local", "torch"},
	{"torchtitan/sync", "torchtitan.components.checkpointer.dcp"},
	{"torchtitan/async", "torchtitan.components.checkpointer.dcp"},
	{"megatron/torch_dist", "megatron.core.dist_checkpointing"},
	{"deepspeed/zero1", "deepspeed"},
	{"deepspeed/zero3", "deepspeed"},
	{"deepspeed/one_tag", "deepspeed"},
	{"hf/one", "transformers"},
	{"hf/two", "transformers"},
	{"lightning/last", "lightning"},
	{"nemo/marked", "nemo"},
	{"orbax/manager", "orbax.checkpoint"},
}

// killedTrial is what killed.py says of one job.
type killedTrial struct {
	Folder      string
	Killed      bool
	Begun, Done *int64
	Whole       []int64
	Args        []string
}

// finished reports whether all ranks had done the last save that any had begun.
func (k *killedTrial) finished() bool { return k.Begun != nil && k.Done != nil && *k.Begun == *k.Done }

// killedTally counts what was left of killed jobs, and what was said of it.
type killedTally struct{ killed, whole, converged, safe, finished, confirmed, wrong int }

// TestTorchKilled: jobs that save with PyTorch's own DCP are killed at random moments. No save that is not whole
// is called converged; each that is finished is.
func TestTorchKilled(t *testing.T) {
	t.Parallel()
	testKilled(t, torchPython(t), tier.N(t, 4, 20), "torch")
}

// TestFrameworksKilled does so for the other frameworks.
func TestFrameworksKilled(t *testing.T) {
	python := os.Getenv("LOCKSTEP_FRAMEWORKS_PYTHON")
	if python == "" {
		t.Skip("LOCKSTEP_FRAMEWORKS_PYTHON is not set; `make e2e-frameworks` sets it")
	}
	testKilled(t, python, 20, "")
}

// testKilled kills the jobs of one module, or of all. LOCKSTEP_KILLS sets how often.
func testKilled(t *testing.T, python string, kills int, module string) {
	t.Helper()
	if s := os.Getenv("LOCKSTEP_KILLS"); s != "" {
		var err error
		kills, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	for _, job := range killedJobs {
		if module != "" && job.module != module {
			continue
		}
		t.Run(job.name, func(t *testing.T) {
			if out, err := exec.CommandContext(t.Context(), python, "-c", "import "+job.module).CombinedOutput(); err != nil { //nolint:gosec // what the caller names
				t.Skipf("%s can not be imported: %v: %.300s", job.module, err, out)
			}
			var n killedTally
			dir := t.TempDir()
			eachKilled(t, python, job.name, dir, kills, func(k *killedTrial) { n.judge(t, filepath.Join(dir, k.Folder), k) })
			t.Logf("%s: %d of %d killed; saves left whole: %d, called converged: %d; jobs called safe to resume: %d; finished: %d, confirmed: %d; wrongly judged: %d",
				job.name, n.killed, kills, n.whole, n.converged, n.safe, n.finished, n.confirmed, n.wrong)
			require.Positive(t, n.killed)
			require.Positive(t, n.confirmed)
		})
	}
}

// eachKilled has killed.py kill a job again and again.
func eachKilled(t *testing.T, python, job, dir string, kills int, do func(*killedTrial)) {
	t.Helper()
	script := filepath.Join(repoRoot(t), "e2e", "testdata", "killed", "killed.py")
	cmd := exec.CommandContext(t.Context(), python, script, job, dir, strconv.Itoa(kills), "8") //nolint:gosec // as above
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "GLOO_SOCKET_IFNAME=lo", "PYTHONWARNINGS=ignore",
		"HF_HUB_OFFLINE=1", "DS_ACCELERATOR=cpu", "JAX_PLATFORMS=cpu")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	seen := 0
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "{") {
			continue // what a framework prints as it is imported
		}
		var k killedTrial
		require.NoError(t, json.Unmarshal(lines.Bytes(), &k))
		do(&k)
		seen++
	}
	require.NoError(t, cmd.Wait(), "%s", stderr.String())
	require.Equal(t, kills+1, seen, "one was left alone")
}

// judge holds what preflight says against what is there.
func (n *killedTally) judge(t *testing.T, dir string, k *killedTrial) {
	t.Helper()
	if k.Killed {
		n.killed++
	}
	n.whole += len(k.Whole)
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		require.Empty(t, k.Whole, "killed before it made %s", dir)
		return
	}
	a := preflight(t, append(slices.Clone(k.Args), dir)...)
	wrong := func(format string, args ...any) {
		n.wrong++
		t.Errorf("%s: "+format, append([]any{dir}, args...)...)
	}
	for _, s := range a.Saves {
		if s.Verdict != "converged" {
			continue
		}
		n.converged++
		if s.Epoch == nil || !slices.Contains(k.Whole, *s.Epoch) {
			wrong("save %v is called converged; whole are %v", s.Paths, k.Whole)
		}
	}
	if a.Safe {
		n.safe++
		if a.Epoch == nil || !slices.Contains(k.Whole, *a.Epoch) {
			wrong("called safe to resume from %v; whole are %v", a.Epoch, k.Whole)
		}
	}
	if a.Frontier != nil && !slices.Contains(k.Whole, *a.Frontier) {
		wrong("frontier is called %d; whole are %v", *a.Frontier, k.Whole)
	}
	if !k.finished() {
		return
	}
	n.finished++
	if !slices.Contains(k.Whole, *k.Done) {
		wrong("save %d is done, and not whole: whole are %v", *k.Done, k.Whole)
	}
	if a.Safe && *a.Epoch == *k.Done {
		n.confirmed++
	} else {
		wrong("save %d is done, and not confirmed: %s", *k.Done, a.Why)
	}
}
