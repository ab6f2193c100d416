// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

// verlRole writes a role of verl's FSDP backend.
func verlRole(t *testing.T, f fstest.MapFS, dir string, world, step int) {
	t.Helper()
	for r := range world {
		file := func(kind string) string { return fmt.Sprintf("%s/%s_world_size_%d_rank_%d.pt", dir, kind, world, r) }
		f[file("model")] = torchSaved(t, table{"w": r})
		f[file("optim")] = optimizerAt(t, 3*step) // several mini-batches a step
		f[file("extra_state")] = torchSaved(t, table{"lr_scheduler": table{"last_epoch": step}, "rng": table{"cpu": 1}})
	}
	f[dir+"/fsdp_config.json"] = document(fmt.Sprintf(`{"FSDP_version": 1, "world_size": %d}`, world))
	f[dir+"/huggingface/config.json"] = document("{}")
}

// verlFSDP is a folder of verl's trainer of PPO, with saves at 100 and 200.
func verlFSDP(t *testing.T) fstest.MapFS {
	t.Helper()
	f := fstest.MapFS{"latest_checkpointed_iteration.txt": document("200")}
	for _, step := range []int{100, 200} {
		dir := fmt.Sprintf("global_step_%d", step)
		verlRole(t, f, dir+"/actor", 3, step)
		verlRole(t, f, dir+"/critic", 3, step)
		f[dir+"/data.pt"] = torchSaved(t, table{"_snapshot": table{"_snapshot_step": step}})
	}
	return f
}

func TestVerl_FSDP(t *testing.T) {
	const s2 = "global_step_200/"
	changes(t, verlFSDP, ckpt.FormatVerl, 200, map[string]change{
		"a shard of the optimizer gone": {do: without(s2 + "actor/optim_world_size_3_rank_2.pt"), epoch: 200, newest: at(100), text: "optimizer actor rank 2, which is absent"},
		"a shard of the model gone":     {do: without(s2 + "critic/model_world_size_3_rank_1.pt"), epoch: 200, newest: at(100), text: "model critic rank 1, which is absent"},
		"the highest rank gone": {
			do:    without(s2+"actor/model_world_size_3_rank_2", s2+"actor/optim_world_size_3_rank_2", s2+"actor/extra_state_world_size_3_rank_2"),
			epoch: 200, newest: at(100), text: "want it of 3 ranks",
		},
		"no random states":        {do: without(s2 + "actor/extra_state"), epoch: 200, newest: at(100), text: "a resume needs model, optim and extra_state"},
		"weights alone":           {do: without(s2+"actor/extra_state", s2+"actor/optim", s2+"critic/extra_state", s2+"critic/optim"), epoch: 200, newest: at(100), text: "has no optim and no extra_state", verdict: preflight.WeightsOnly},
		"a shard torn":            {do: cut(s2 + "actor/optim_world_size_3_rank_0.pt"), epoch: 200, newest: at(100), text: "got no end of a zip file"},
		"a shard of another save": {do: put(s2+"actor/optim_world_size_3_rank_1.pt", optimizerAt(t, 300)), epoch: 200, newest: at(100), text: "counts 300 steps; want 600"},
		"no critic":               {do: without(s2 + "critic/"), epoch: 200, newest: at(100), text: "got no state of critic; want it, as in global_step_100"},
		"no critic at all":        {do: without("global_step_100/critic/", s2+"critic/"), want: true, epoch: 200, newest: at(200)},
		"no data":                 {do: without(s2 + "data.pt"), epoch: 200, newest: at(100), text: "data.pt"},
		"data torn":               {do: cut(s2 + "data.pt"), epoch: 200, newest: at(100), text: "data.pt"},
		"the tracker is behind, and the newest half saved": {do: all(put("latest_checkpointed_iteration.txt", document("100\n")),
			without(s2+"critic/", s2+"data.pt", s2+"actor/optim_world_size_3_rank_1")), want: true, epoch: 100, newest: at(100)},
		"the tracker is ahead":    {do: put("latest_checkpointed_iteration.txt", document("300")), epoch: 300, newest: at(200), text: "names \"300\", which is not there"},
		"the tracker is torn":     {do: put("latest_checkpointed_iteration.txt", document("")), newest: at(200), text: "want the name of a save"},
		"no tracker":              {do: without("latest_checkpointed_iteration.txt"), newest: at(200), text: "a resume would find no save"},
		"a save under way beside": {do: put("global_step_300/actor/huggingface/config.json", document("{}")), want: true, epoch: 200, newest: at(200)},
		"shards of two worlds":    {do: func(f fstest.MapFS) { verlRole(t, f, s2+"actor", 2, 200) }, want: true, epoch: 200, newest: at(200)}, // the configuration says which
		"a rank of a larger world, cut off": {
			do: func(f fstest.MapFS) {
				verlRole(t, f, s2+"actor", 8, 200)
				verlRole(t, f, s2+"actor", 3, 200) // and its configuration
				for r := 3; r < 8; r++ {
					without(fmt.Sprintf("%sactor/model_world_size_8_rank_%d.pt", s2, r))(f)
				}
			}, epoch: 200, newest: at(100), text: "got shards of 8 ranks; want those of 3 alone",
		},
		"the first shard of a larger world": {do: put(s2+"critic/model_world_size_8_rank_0.pt", torchSaved(t, table{"w": 1})), epoch: 200, newest: at(100), text: "a save by 8 ranks is under way"},
		"the last shard of a smaller world": {do: put(s2+"actor/extra_state_world_size_2_rank_1.pt", torchSaved(t, table{"w": 1})), epoch: 200, newest: at(100), text: "a save by 2 ranks is under way"},
		"a shard of a world beyond measure": {do: put(s2+"actor/optim_world_size_9223372036854775807_rank_0.pt", torchSaved(t, table{"w": 1})), epoch: 200, newest: at(100), text: "9223372036854775807 ranks is under way"},
		"a larger world in the save before": {do: put("global_step_100/actor/model_world_size_8_rank_0.pt", torchSaved(t, table{"w": 1})), want: true, epoch: 200, newest: at(200)},
		"two worlds, nothing says":          {do: func(f fstest.MapFS) { verlRole(t, f, s2+"actor", 2, 200); delete(f, s2+"actor/fsdp_config.json") }, epoch: 200, newest: at(100), text: "several numbers of ranks"},
		"no configuration":                  {do: without(s2 + "actor/fsdp_config.json"), want: true, epoch: 200, newest: at(200)},
		"a world beyond measure":            {do: put(s2+"actor/fsdp_config.json", document(`{"world_size": 9223372036854775807}`)), epoch: 200, newest: at(100), text: "got a world of"},
		"nothing but the tracker":           {do: without("global_step"), epoch: 200, text: "names \"200\", which is not there"},
		"EasyR1's tracker": {
			do:   all(without("latest_checkpointed_iteration.txt"), put("checkpoint_tracker.json", document(`{"last_global_step": 200}`))),
			want: true, epoch: 200, newest: at(200),
		},
		"EasyR1's tracker torn":        {do: all(without("latest_checkpointed_iteration.txt"), put("checkpoint_tracker.json", document(`{"last_gl`))), newest: at(200), text: "want the name of a save"},
		"Megatron's iterations beside": {do: put("iter_0000300/mp_rank_00/model_optim_rng.pt", document("x")), epoch: 200, newest: at(200), text: "several frameworks"},
	})
}

// verlMegatron is the same of the Megatron backend.
func verlMegatron(t *testing.T) fstest.MapFS {
	t.Helper()
	f := fstest.MapFS{"latest_checkpointed_iteration.txt": document("200")}
	for _, step := range []int{100, 200} {
		dir := fmt.Sprintf("global_step_%d/actor", step)
		dcpIn(f, dir+"/dist_ckpt", "decoder.layer", "optimizer.state", "rng_state")
		f[dir+"/dist_ckpt/common.pt"] = torchSaved(t, table{"lr_scheduler": table{"num_steps": step}})
		f[dir+"/dist_ckpt/metadata.json"] = document(`{"sharded_backend": "torch_dist", "sharded_backend_version": 1}`)
		f[dir+"/huggingface/config.json"] = document("{}")
		f[dir+"/transformer_config.json"] = document("{}")
		f[fmt.Sprintf("global_step_%d/data.pt", step)] = torchSaved(t, table{"n": step})
	}
	return f
}

func TestVerl_Megatron(t *testing.T) {
	const dist = "global_step_200/actor/dist_ckpt/"
	weightless := func(f fstest.MapFS) { dcpIn(f, dist[:len(dist)-1], "optimizer.state", "rng_state") }
	changes(t, verlMegatron, ckpt.FormatVerl, 200, map[string]change{
		"a shard gone":      {do: without(dist + "__1_0.distcp"), epoch: 200, newest: at(100), text: "rank 1 in actor/dist_ckpt, which is absent"},
		"a shard torn":      {do: cut(dist + "__0_0.distcp"), epoch: 200, newest: at(100), text: "want at least"},
		"no .metadata":      {do: without(dist + ".metadata"), epoch: 200, newest: at(100), text: ".metadata"},
		"no common.pt":      {do: without(dist + "common.pt"), epoch: 200, newest: at(100), text: "common"},
		"no metadata.json":  {do: without(dist + "metadata.json"), epoch: 200, newest: at(100), text: "metadata.json"},
		"tracker behind":    {do: all(put("latest_checkpointed_iteration.txt", document("100")), without(dist+"__1_0.distcp")), want: true, epoch: 100, newest: at(100)},
		"DCP alone":         {do: without(dist+"common.pt", dist+"metadata.json", "global_step_100/"), want: true, epoch: 200, newest: at(200)},
		"the model alone":   {do: func(f fstest.MapFS) { dcpIn(f, dist[:len(dist)-1], "decoder.layer", "rng_state") }, epoch: 200, newest: at(100), text: "dist_ckpt no item in .metadata is of an optimizer", verdict: preflight.WeightsOnly},
		"no weights at all": {do: weightless, epoch: 200, newest: at(100), text: "got no weights in dist_ckpt and none in huggingface"},
		"weights in huggingface": {
			do:   all(weightless, put("global_step_200/actor/huggingface/model.safetensors", weightsOf("{}", "w"))),
			want: true, epoch: 200, newest: at(200),
		},
	})
}

// Supervised fine-tuning has no roles, and a state of the data of each data-parallel rank.
func TestVerl_FineTuning(t *testing.T) {
	whole := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := fstest.MapFS{"latest_checkpointed_iteration.txt": document("20")}
		verlRole(t, f, "global_step_20", 2, 20)
		for r := range 2 {
			f[fmt.Sprintf("global_step_20/data_%d.pt", r)] = torchSaved(t, table{"n": r})
		}
		return f
	}
	changes(t, whole, ckpt.FormatVerl, 20, map[string]change{
		"a shard gone":  {do: without("global_step_20/optim_world_size_2_rank_1.pt"), epoch: 20, text: "optimizer rank 1, which is absent"},
		"data 0 gone":   {do: without("global_step_20/data_0.pt"), epoch: 20, text: "data-parallel rank 0"},
		"no data":       {do: without("global_step_20/data_"), epoch: 20, text: "starts the data from its beginning"},
		"another world": {do: put("global_step_20/fsdp_config.json", document(`{"world_size": 4}`)), epoch: 20, text: "of any of 4 ranks"},
		"nothing of it": {do: all(without("global_step_20/"), put("global_step_20/x", document(""))), epoch: 20, text: "got no state of any role"},
	})
}

// A save of verl's, given as a folder of its own, is called by its name.
func TestVerl_OneSave(t *testing.T) {
	own := fstest.MapFS{}
	for name, file := range verlFSDP(t) {
		const dir = "global_step_200/"
		if len(name) > len(dir) && name[:len(dir)] == dir {
			own[name[len(dir):]] = file
		}
	}
	r, ok := safe(t, calledBy{own, "global_step_200"}, ckpt.Options{})
	require.True(t, ok, r.Why)
	require.Equal(t, model.Some[int64](200), r.Epoch)
	require.Equal(t, epoch.Converged, r.Verdict)
	delete(own, "actor/optim_world_size_3_rank_2.pt")
	r, ok = safe(t, calledBy{own, "global_step_200"}, ckpt.Options{})
	require.False(t, ok)
	require.Contains(t, r.Why, "actor rank 2")
}
