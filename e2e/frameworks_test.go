// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// framework is a real library that saves at the steps 2 and 4.
type framework struct {
	name, module string
	processes    string
	args         []string // before the folder
	newest       string   // its folder or file of step 4
	// needless are files that a resume can do without.
	needless string
}

var frameworks = []framework{
	{"hf_trainer", "transformers", "1", nil, "checkpoint-4", ""},
	{"hf_trainer", "transformers", "2", nil, "checkpoint-4", ""},
	{"lightning_fit", "lightning", "1", nil, "last.ckpt", ""},
	{"deepspeed_zero", "deepspeed", "2", []string{"1"}, "global_step4", ""},
	{"deepspeed_zero", "deepspeed", "2", []string{"2"}, "global_step4", ""},
	{"deepspeed_zero", "deepspeed", "2", []string{"3"}, "global_step4", ""},
	// Nodes of versions before the newest lie in files of their own.
	{"orbax_manager", "orbax.checkpoint", "1", nil, "4", `_sharding$|/d/[0-9a-f]{32}$`},
}

// TestFrameworks: what real frameworks save is confirmed, and no part of it. LOCKSTEP_FRAMEWORKS_PYTHON
// names an interpreter that has them, which `make e2e-frameworks` sets.
func TestFrameworks(t *testing.T) {
	python := os.Getenv("LOCKSTEP_FRAMEWORKS_PYTHON")
	if python == "" {
		t.Skip("LOCKSTEP_FRAMEWORKS_PYTHON is not set; `make e2e-frameworks` sets it")
	}
	for _, f := range frameworks {
		t.Run(f.name+"/"+f.processes+"/"+filepath.Join(f.args...), func(t *testing.T) { f.test(t, python) })
	}
}

func (f framework) test(t *testing.T, python string) {
	t.Helper()
	if err := exec.CommandContext(t.Context(), python, "-c", "import "+f.module).Run(); err != nil {
		t.Skipf("%s can not be imported: %v", f.module, err)
	}
	dir := t.TempDir()
	script := filepath.Join(repoRoot(t), "e2e", "testdata", "frameworks", f.name+".py")
	cmd := exec.CommandContext(t.Context(), python, append([]string{"-m", "torch.distributed.run", "--standalone", "--nproc_per_node", f.processes, script}, append(f.args, dir)...)...)
	if f.processes == "1" {
		cmd = exec.CommandContext(t.Context(), python, append([]string{script}, append(f.args, dir)...)...)
	}
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "OMP_NUM_THREADS=1", "DS_ACCELERATOR=cpu", "JAX_PLATFORMS=cpu")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)

	a := preflight(t, "--verify", dir)
	require.True(t, a.Safe, a.Why)
	require.EqualValues(t, 4, *a.Epoch)
	missed := 0
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, f.newest), func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		aside := filepath.Join(t.TempDir(), "aside")
		require.NoError(t, os.Rename(name, aside))
		if a := preflight(t, dir); a.Safe && *a.Epoch == 4 {
			require.True(t, f.needless != "" && regexp.MustCompile(f.needless).MatchString(name), "safe without %s", name)
		} else {
			missed++
		}
		return os.Rename(aside, name)
	}))
	require.Positive(t, missed)
	require.True(t, preflight(t, dir).Safe, "put back as it was")
}
