// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// readsAll loads a file of torch.save and a .metadata as PyTorch does, and prints of both what
// the test compares.
const readsAll = `
import pickle, sys, torch
v = torch.load(sys.argv[1], weights_only=False)
print(v["iteration"], v["weight"].tolist()[:2], list(v["optimizer"]["state"][0]["step"].shape))
m = pickle.load(open(sys.argv[2], "rb"))
for k, i in sorted(m.storage_data.items(), key=lambda x: (x[1].relative_path, x[1].offset)):
    print(k.fqn, i.relative_path, i.offset, i.length, tuple(m.state_dict_metadata[k.fqn].size) if hasattr(m.state_dict_metadata[k.fqn], "size") else "")
print(m.storage_meta.save_id)
from torch.distributed.checkpoint import FileSystemReader
FileSystemReader(sys.argv[3]).read_metadata()
`

// TestPyTorchReadsIt: what the simulator writes is what PyTorch reads.
func TestPyTorchReadsIt(t *testing.T) {
	python := os.Getenv("LOCKSTEP_TORCH_PYTHON")
	if python == "" {
		t.Skip("set LOCKSTEP_TORCH_PYTHON to an interpreter that has PyTorch")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "one.pt")
	w := weights(24, 10, "w")
	require.NoError(t, os.WriteFile(file, torchSaved(dict{"iteration", int64(10), "weight", w, "optimizer", adam(10, "o", 10)}), 0o600))
	s := newSave(10, ".", 2)
	s.dcp(dcpItem{fqn: "step", value: int64(10)})
	require.NoError(t, s.Make(t.Context(), dir, func(Op) {}))
	out, err := exec.CommandContext(t.Context(), python, "-c", readsAll, file, filepath.Join(dir, ".metadata"), dir).CombinedOutput() //nolint:gosec // the user's interpreter
	require.NoError(t, err, "%s", out)
	items := dcpRankItems(10, 0, dcpItem{fqn: "step", value: int64(10)})
	dcpShard(items)
	require.Contains(t, string(out), fmt.Sprintf("10 [%v, %v] [1]\n", float64(w[0]), float64(w[1])))
	require.Contains(t, string(out), fmt.Sprintf("step __0_0.distcp 0 %d", items[0].length))
	require.Contains(t, string(out), fmt.Sprintf("model.layers.0.weight __0_0.distcp %d %d (48,)\n", items[1].offset, items[1].length))
	require.Contains(t, string(out), "save-10\n")
}
