// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"io/fs"
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
	f.Add([]byte(`{"step": 7, "timestamp": "2026", "world_size": 2, "last_global_step": 7, "metas": {"last_train_step": 7}}`))
	f.Add([]byte("version https://git-lfs.github.com/spec/v1\nsize 99999999999999999999\n"))
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
			{"latest_checkpointed_iteration.txt": text, "global_step_7/actor/fsdp_config.json": text, "global_step_7/actor/model_world_size_2_rank_0.pt": text, "global_step_7/data_1.pt": text},
			{"checkpoint_tracker.json": text, "global_step_7/actor/dist_ckpt/.metadata": text, "global_step_7/actor/dist_ckpt/metadata.json": text},
			{"latest.txt": text, "7/checkpoint_metadata.json": text, "7/model/model_weight_pp-rank-0-of-2_tp-rank-1-of-2.safetensors": text},
			{"checkpoint_7/random_states_1.pkl": text, "checkpoint_7/model.safetensors.index.json": text, "checkpoint_7/unet/a.safetensors.index.json": text, "checkpoint_6/optimizer.bin": text},
			{"step7/.metadata.json": text, "step7/model_and_optim/.metadata": text, "step7/train/rank0.pt": text},
			{"step-7/metadata.json": text, "step-7/manifest.ocdbt": text, "step-7/d/x": text, "step-8/metadata.json": text, "step-8/model/.zarray": text},
			{"step-7/lit_model.pth": text},
			{"step-7/lit_model.pth/.metadata": text, "step-7/lit_model.pth/meta.pt": text},
			{"epoch_7/adapter_model.pt": text, "epoch_7/model.safetensors.index.json": text, "epoch_7/model-00001-of-00003.safetensors": text, "recipe_state/recipe_state.pt": text},
			{"checkpoint-7/iter_0000007/metadata.json": text, "checkpoint-7/latest_checkpointed_iteration.txt": text},
		} {
			root := ckpt.Read(t.Context(), fsys, ckpt.Options{Limits: ckpt.Limits{Domains: 50, Entries: 50}})
			for i := range root.Saves {
				require.LessOrEqual(t, len(root.Saves[i].Domains), 51)
			}
		}
	})
}

// FuzzNames: files of whatever name and content crash no reader, and leave no save beyond the limits.
func FuzzNames(f *testing.F) {
	f.Add("7/optimizer/optimizer_pp-0-of-9999999999_tp-1-of-2.pt", "7/checkpoint_metadata.json", []byte(`{"metas": {"last_train_step": 7}}`))
	f.Add("global_step_7/actor/model_world_size_18446744073709551616_rank_9.pt", "latest_checkpointed_iteration.txt", []byte("7"))
	f.Add("checkpoint_7/random_states_99999999.pkl", "checkpoint_7/model-1-of-99999999999.safetensors", []byte("x"))
	f.Add("step7/train/rank99999999999.pt", "step7/model_and_optim/.metadata", []byte("x"))
	f.Add("epoch_7/model-9-of-99999999999999999999.safetensors", "recipe_state/recipe_state.pt", []byte("x"))
	f.Add("ep7-ba9-rank0.pt", "epoch_7_step_9/model/x", []byte("x"))
	f.Fuzz(func(t *testing.T, one, other string, data []byte) {
		fsys := fstest.MapFS{}
		for _, name := range []string{one, other} {
			if fs.ValidPath(name) && name != "." && len(name) < 200 {
				fsys[name] = &fstest.MapFile{Data: data}
			}
		}
		l := ckpt.Limits{Domains: 50, Entries: 50, Saves: 5, Problems: 50}
		root := ckpt.Read(t.Context(), fsys, ckpt.Options{Limits: l})
		require.LessOrEqual(t, len(root.Saves), 5)
		for i := range root.Saves {
			require.LessOrEqual(t, len(root.Saves[i].Domains), 51)
			require.LessOrEqual(t, len(root.Saves[i].Problems), 51)
		}
	})
}
