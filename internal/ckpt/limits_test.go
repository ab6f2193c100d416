// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/ckptsim"
	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// A file that is larger than what is read of it is not torn: nothing is known of it, and its save is not
// confirmed. Each job is whole with the default limits.
func TestLargerThanWhatIsRead(t *testing.T) {
	small := func(bytes int) ckpt.Limits { return ckpt.Limits{Pickle: pickle.Limits{Bytes: bytes}} }
	for name, tc := range map[string]struct {
		job    string
		limits ckpt.Limits
		verify bool
		want   string
	}{
		".metadata":               {"torchtitan", small(1000), false, "want at most 1000"},
		"values of .metadata":     {"torchtitan", ckpt.Limits{Pickle: pickle.Limits{Values: 50}}, false, "want at most 50"},
		"depth of .metadata":      {"torchtitan", ckpt.Limits{Pickle: pickle.Limits{Depth: 2}}, false, "want at most"},
		"the step":                {"torchtitan", small(70), false, "want at most 70"},
		"data.pkl":                {"megatron, legacy", small(300), false, "read data.pkl: got"},
		"data.pkl of DeepSpeed":   {"deepspeed, ZeRO 1", small(300), false, "read data.pkl: got"},
		"data.pkl of Lightning":   {"lightning, last.ckpt", small(100), false, "read data.pkl: got"},
		"a tracker":               {"megatron, torch_dist", ckpt.Limits{Text: 2}, false, "got 3 bytes; want at most 2"},
		"latest":                  {"deepspeed, ZeRO 3", ckpt.Limits{Text: 2}, false, "want at most 2"},
		"metadata.json":           {"megatron, torch_dist", ckpt.Limits{JSON: 50}, false, "want at most 50"},
		"integrity.json":          {integrityJob, ckpt.Limits{JSON: 150}, false, "want at most 150"},
		"integrity.json, compare": {integrityJob, ckpt.Limits{JSON: 150}, true, "want at most 150"},
		"trainer_state.json":      {"hf trainer, one process", ckpt.Limits{JSON: 100}, false, "want at most 100"},
		"an index":                {"hf trainer, sharded model", ckpt.Limits{JSON: 200}, false, "want at most 200"},
		"_CHECKPOINT_METADATA":    {"orbax", ckpt.Limits{JSON: 20}, false, "want at most 20"},
	} {
		t.Run(name, func(t *testing.T) {
			world := int64(0)
			for _, job := range ckptsim.Jobs() {
				if job.Name == tc.job && job.TellWorld {
					world = int64(job.World)
				}
			}
			fsys := os.DirFS(saves(t, tc.job, 100))
			r, ok := safe(t, fsys, ckpt.Options{WorldSize: world})
			require.True(t, ok, r.Why)
			root := ckpt.Read(t.Context(), fsys, ckpt.Options{WorldSize: world, Limits: tc.limits, Verify: tc.verify})
			r, ok = safe(t, fsys, ckpt.Options{WorldSize: world, Limits: tc.limits, Verify: tc.verify})
			require.False(t, ok)
			require.Contains(t, told(r), tc.want)
			require.Positive(t, root.Counts.TooLarge)
			for _, s := range root.Saves {
				for _, p := range s.Problems {
					require.Equal(t, ckpt.CheckInput, p.Check, p)
					require.Equal(t, ckpt.Unreadable, p.Severity, p)
				}
			}
		})
	}
}

// The header of a file of safetensors is of another reader.
func TestSafetensorsWithALargeHeader(t *testing.T) {
	file := filepath.Join(t.TempDir(), "model.safetensors")
	require.NoError(t, os.WriteFile(file, binary.LittleEndian.AppendUint64(nil, 100_000_001), 0o600))
	require.NoError(t, os.Truncate(file, 100_000_100))
	r, ok := safe(t, os.DirFS(filepath.Dir(file)), ckpt.Options{})
	require.False(t, ok)
	require.Len(t, r.Judged.Problems, 1)
	require.Equal(t, ckpt.CheckInput, r.Judged.Problems[0].Check)
	require.Contains(t, told(r), "got a length of 100000001; want at most 100000000")

	require.NoError(t, os.Truncate(file, 100_000_000))
	r, ok = safe(t, os.DirFS(filepath.Dir(file)), ckpt.Options{})
	require.False(t, ok)
	require.Equal(t, ckpt.CheckSize, r.Judged.Problems[0].Check, "it ends before its header does")
}
