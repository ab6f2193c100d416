// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/pickle"
)

// FuzzMetadata: no .metadata crashes the reader, or has it look outside the save; and none is
// confirmed that names anything but the one shard that is there.
func FuzzMetadata(f *testing.F) {
	f.Add(metadata(item{"__0_0.distcp", 0, 100}).Data)
	f.Add(metadata(item{"../x", 0, 100}, item{"__1_0.distcp", 1 << 62, 1 << 62}).Data)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		fsys := fstest.MapFS{
			"x":                   shard(200),
			"step-7/.metadata":    {Data: data, ModTime: time.Unix(100, 0)},
			"step-7/__0_0.distcp": shard(100),
		}
		l := ckpt.Limits{Domains: 100, Problems: 100, Pickle: pickle.Limits{Bytes: 1 << 16, Values: 1 << 12, Stack: 1 << 10, Memo: 1 << 10}}
		root := ckpt.Read(t.Context(), fsys, ckpt.Options{Limits: l})
		require.Len(t, root.Saves, 1)
		require.LessOrEqual(t, len(root.Saves[0].Problems), 100)
		require.LessOrEqual(t, len(root.Saves[0].Domains), 101)
		for _, d := range root.Saves[0].Domains {
			if d.State == "committed" && d.File != "" {
				require.Contains(t, []string{"step-7/.metadata", "step-7/__0_0.distcp"}, d.File)
			}
		}
	})
}

// FuzzTexts: trackers, state files and indexes of whatever content crash nothing.
func FuzzTexts(f *testing.F) {
	f.Add([]byte("global_step7"))
	f.Add([]byte(`{"global_step": 7, "weight_map": {"a": "model.safetensors"}}`))
	f.Add([]byte(`{"weight_map": {"a": "../../x"}, "item_handlers": {"state": 1}, "commit_timestamp_nsecs": 1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		text := &fstest.MapFile{Data: data}
		for _, fsys := range []fstest.MapFS{
			{"latest": text, "global_step7/mp_rank_00_model_states.pt": text},
			{"latest_checkpointed_iteration.txt": text, "iter_0000007/mp_rank_00/model_optim_rng.pt": text, "iter_0000007/metadata.json": text},
			{"iter_0000007/.metadata": text, "iter_0000007/metadata.json": text, "iter_0000007/integrity.json": text},
			{"checkpoint-7/trainer_state.json": text, "checkpoint-7/model.safetensors.index.json": text, "checkpoint-7/model.safetensors": text},
			{"7/_CHECKPOINT_METADATA": text, "7/state/manifest.ocdbt": text, "7/state/_METADATA": text},
			{"last.ckpt": text},
		} {
			root := ckpt.Read(t.Context(), fsys, ckpt.Options{Limits: ckpt.Limits{Domains: 50, Entries: 50}})
			for i := range root.Saves {
				require.LessOrEqual(t, len(root.Saves[i].Domains), 51)
			}
		}
	})
}
