// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/ckptsim"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

// put adds a DCP save of two ranks.
func put(fsys fstest.MapFS, dir string, step int64, names ...string) {
	for name, data := range ckptsim.DCPOf(step, 2, names...) {
		file := &fstest.MapFile{Data: data, ModTime: time.UnixMilli(1_700_000_000_100)}
		if name == ".metadata" {
			file.ModTime = file.ModTime.Add(time.Second)
		}
		fsys[path.Join(dir, name)] = file
	}
}

// titan is a save of torchtitan with everything, or the model alone.
func titan(fsys fstest.MapFS, step int64, whole bool) {
	names := []string{"layers.0.weight", "norm.weight"}
	if whole {
		names = append(names, "optimizer.state.layers.0.weight.exp_avg", "lr_scheduler", "dataloader.dp_rank_0", "train_state.step")
	}
	put(fsys, fmt.Sprintf("step-%d", step), step, names...)
}

func safetensorsFile() *fstest.MapFile {
	header := `{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return &fstest.MapFile{Data: append(append(b, header...), 1, 2, 3, 4)}
}

// hfModel is a save of the Trainer with save_only_model.
func hfModel(t *testing.T, fsys fstest.MapFS, step int) {
	t.Helper()
	dir := fmt.Sprintf("checkpoint-%d/", step)
	fsys[dir+"model.safetensors"] = safetensorsFile()
	fsys[dir+"training_args.bin"] = torchFile(t, pair{"save_only_model", true})
	fsys[dir+"trainer_state.json"] = text(fmt.Sprintf(`{"global_step": %d}`, step))
}

// lightningCkpt is a file of Lightning, with states of optimizers or without.
func lightningCkpt(t *testing.T, step int, more ...pair) *fstest.MapFile {
	t.Helper()
	return torchFile(t, append([]pair{{"global_step", step}, {"state_dict", []pair{{"w", 1}}}, {"loops", []pair{{"fit", 1}}}}, more...)...)
}

// megatronRank is a rank of an iteration with a model and more.
func megatronRank(t *testing.T, iteration int, args []pair, more ...pair) *fstest.MapFile {
	t.Helper()
	args = append([]pair{{"tensor_model_parallel_size", 2}, {"data_parallel_size", 1}}, args...)
	return torchFile(t, append([]pair{{"iteration", iteration}, {"args", args}, {"model", []pair{{"w", 1}}}}, more...)...)
}

// megatronRanks are both ranks of an iteration.
func megatronRanks(t *testing.T, fsys fstest.MapFS, iteration int, args []pair, more ...pair) {
	t.Helper()
	for rank := range 2 {
		fsys[fmt.Sprintf("iter_%07d/mp_rank_%02d/model_optim_rng.pt", iteration, rank)] = megatronRank(t, iteration, args, more...)
	}
	fsys["latest_checkpointed_iteration.txt"] = text(fmt.Sprint(iteration))
}

// megatronDist is an iteration of torch_dist.
func megatronDist(t *testing.T, fsys fstest.MapFS, dir string, iteration int, args []pair, names ...string) {
	t.Helper()
	put(fsys, dir, int64(iteration), append([]string{"decoder.layers.0.weight"}, names...)...)
	fsys[dir+"/metadata.json"] = text(`{"sharded_backend": "torch_dist"}`)
	fsys[dir+"/common.pt"] = torchFile(t, pair{"iteration", iteration}, pair{"args", args})
	fsys["latest_checkpointed_iteration.txt"] = text(fmt.Sprint(iteration))
}

var (
	optimizerPair = pair{"optimizer", []pair{{"state", 1}}}
	rngPair       = pair{"rng_state", []any{1}}
)

// Which saves lack what a resume of training needs, and which do not although it may look so.
func TestWeightsOnly(t *testing.T) {
	const newest, none = 200, 0
	type folder = fstest.MapFS
	for name, tc := range map[string]struct {
		make    func(t *testing.T, f folder)
		verdict epoch.Verdict
		safe    int64 // the newest that can be resumed from
		why     string
	}{
		"torchtitan, last save of the model alone": {func(_ *testing.T, f folder) { titan(f, 100, true); titan(f, 200, true); titan(f, 300, false) }, preflight.WeightsOnly, 200, "last_save_model_only"},
		"torchtitan, one save":                     {func(_ *testing.T, f folder) { titan(f, 300, false) }, preflight.WeightsOnly, none, "no other save can be resumed from"},
		"torchtitan, last save in safetensors": {func(_ *testing.T, f folder) {
			titan(f, 100, true)
			f["step-200/model.safetensors.index.json"] = text(`{"weight_map": {"w": "a.safetensors"}}`)
			f["step-200/a.safetensors"] = safetensorsFile()
		}, preflight.WeightsOnly, 100, "last_save_in_hf"},
		"torchtitan, an older save of the model alone": {func(_ *testing.T, f folder) { titan(f, 100, false); titan(f, 200, true) }, epoch.Converged, newest, ""},
		"torchtitan, the data loader is gone": {func(_ *testing.T, f folder) {
			titan(f, 100, true)
			put(f, "step-200", 200, "layers.0.weight", "optimizer.state.layers.0.weight.exp_avg", "lr_scheduler", "train_state.step")
		}, epoch.Converging, 100, "the first dataloader state, which is absent"},
		"torchtitan, a data loader since, cut off": {func(_ *testing.T, f folder) {
			put(f, "step-100", 100, "layers.0.weight", "optimizer.state.layers.0.weight.exp_avg", "train_state.step")
			titan(f, 200, true)
			delete(f, "step-200/__1_0.distcp")
		}, epoch.Converging, 100, "which is absent"},
		"torchtitan, a seed":             {func(_ *testing.T, f folder) { titan(f, 0, false) }, epoch.Converged, 0, ""},
		"DCP of a model":                 {func(_ *testing.T, f folder) { put(f, "", 100, "layers.0.weight", "norm.bias") }, preflight.WeightsOnly, none, "no item in .metadata"},
		"DCP of a model, in a key":       {func(_ *testing.T, f folder) { put(f, "", 100, "model.layers.0.weight") }, preflight.WeightsOnly, none, "no item in .metadata"},
		"DCP, an optimizer by its state": {func(_ *testing.T, f folder) { put(f, "", 100, "app.w", "app.w.exp_avg", "step") }, epoch.Converged, 100, ""},
		"DCP, an optimizer of a name":    {func(_ *testing.T, f folder) { put(f, "", 100, "app.w", "my_optim_0.w", "step") }, epoch.Converged, 100, ""},

		"Trainer, save_only_model":        {func(t *testing.T, f folder) { t.Helper(); hfModel(t, f, 100); hfModel(t, f, 200) }, preflight.WeightsOnly, none, "save_only_model"},
		"Trainer, save_only_model since":  {func(t *testing.T, f folder) { t.Helper(); hf(t, f, 100); hfModel(t, f, 200) }, preflight.WeightsOnly, 100, "have the job load epoch 100"},
		"Trainer, save_only_model before": {func(t *testing.T, f folder) { t.Helper(); hfModel(t, f, 100); hf(t, f, 200) }, epoch.Converged, newest, ""},
		"Trainer, save_only_model, scheduler": {func(t *testing.T, f folder) {
			t.Helper()
			hfModel(t, f, 200)
			f["checkpoint-200/scheduler.pt"] = torchFile(t, pair{"last_epoch", 200})
		}, epoch.Converging, none, "which is absent"},
		"Trainer, save_only_model, cut off": {func(t *testing.T, f folder) {
			t.Helper()
			hf(t, f, 100)
			hfModel(t, f, 200)
			f["checkpoint-200/model.safetensors"].Data = f["checkpoint-200/model.safetensors"].Data[:60]
		}, epoch.Converging, 100, "model.safetensors"},
		"Trainer, everything in spite of save_only_model": {func(t *testing.T, f folder) {
			t.Helper()
			hf(t, f, 200)
			f["checkpoint-200/training_args.bin"] = torchFile(t, pair{"save_only_model", true})
		}, epoch.Converged, newest, ""},
		"Trainer, FSDP, save_only_model": {func(t *testing.T, f folder) {
			t.Helper()
			hfModel(t, f, 200)
			delete(f, "checkpoint-200/model.safetensors")
			put(f, "checkpoint-200/pytorch_model_fsdp_0", 200, "model.w")
		}, preflight.WeightsOnly, none, "save_only_model"},

		"Lightning, save_weights_only": {func(t *testing.T, f folder) {
			t.Helper()
			f["epoch=0-step=100.ckpt"], f["last.ckpt"] = lightningCkpt(t, 100, pair{"optimizer_states", []any{1}}), lightningCkpt(t, 200)
		}, preflight.WeightsOnly, 100, "save_weights_only"},
		"Lightning, of one step": {func(t *testing.T, f folder) {
			t.Helper()
			f["epoch=0-step=200.ckpt"], f["last.ckpt"] = lightningCkpt(t, 200, pair{"optimizer_states", []any{1}}), lightningCkpt(t, 200)
		}, preflight.WeightsOnly, 200, "have the job load epoch=0-step=200.ckpt"},
		"Lightning, of one step, the other way": {func(t *testing.T, f folder) {
			t.Helper()
			f["last.ckpt"], f["epoch=0-step=200.ckpt"] = lightningCkpt(t, 200, pair{"optimizer_states", []any{1}}), lightningCkpt(t, 200)
		}, epoch.Converged, newest, ""},
		"Lightning, without optimizers": {func(t *testing.T, f folder) {
			t.Helper()
			f["last.ckpt"] = lightningCkpt(t, 200, pair{"optimizer_states", []any{}})
		}, epoch.Converged, newest, ""},
		"Lightning, FSDP": {func(t *testing.T, f folder) {
			t.Helper()
			put(f, "epoch=0-step=200.ckpt", 200, "model.w")
			f["epoch=0-step=200.ckpt/meta.pt"] = torchFile(t, pair{"global_step", 200})
		}, preflight.WeightsOnly, none, "save_weights_only"},
		"Lightning, FSDP with two optimizers": {func(t *testing.T, f folder) {
			t.Helper()
			put(f, "epoch=0-step=200.ckpt", 200, "model.w", "optimizer_0.state.w.x", "optimizer_1.state.w.x")
			f["epoch=0-step=200.ckpt/meta.pt"] = torchFile(t, pair{"global_step", 200})
		}, epoch.Converged, newest, ""},
		"NeMo": {func(t *testing.T, f folder) {
			t.Helper()
			megatronDist(t, f, "gpt-step=200/weights", 200, nil)
			delete(f, "latest_checkpointed_iteration.txt")
		}, preflight.WeightsOnly, none, "no item in .metadata"},

		"Megatron, --no-save-optim": {func(t *testing.T, f folder) {
			t.Helper()
			megatronRanks(t, f, 100, nil, optimizerPair, rngPair)
			megatronRanks(t, f, 200, []pair{{"no_save_optim", true}}, rngPair)
		}, preflight.WeightsOnly, 100, "--no-save-optim"},
		"Megatron, --no-save-optim of files of its own": {func(t *testing.T, f folder) {
			t.Helper()
			megatronRanks(t, f, 200, []pair{{"no_save_optim", true}, {"use_distributed_optimizer", true}}, rngPair)
		}, preflight.WeightsOnly, none, "--no-save-optim"},
		"Megatron, an optimizer of a file is gone": {func(t *testing.T, f folder) {
			t.Helper()
			megatronRanks(t, f, 200, []pair{{"no_save_optim", false}, {"use_distributed_optimizer", true}}, optimizerPair, rngPair)
		}, epoch.Converging, none, "which is absent"},
		"Megatron, one rank without an optimizer": {func(t *testing.T, f folder) {
			t.Helper()
			megatronRanks(t, f, 200, nil, optimizerPair, rngPair)
			f["iter_0000200/mp_rank_01/model_optim_rng.pt"] = megatronRank(t, 200, nil, rngPair)
		}, epoch.Converging, none, "optimizer mp_rank_01, which is absent"},
		"Megatron, --no-save-rng": {func(t *testing.T, f folder) {
			t.Helper()
			megatronRanks(t, f, 200, []pair{{"no_save_rng", true}}, optimizerPair)
		}, epoch.Converging, none, "rng mp_rank_00, which is absent"},
		"Megatron, --no-save-rng since": {func(t *testing.T, f folder) {
			t.Helper()
			megatronRanks(t, f, 100, nil, optimizerPair, rngPair)
			megatronRanks(t, f, 200, nil, optimizerPair)
		}, epoch.Converging, 100, "the first rng state, which is absent"},
		"Megatron, one rank without random numbers": {func(t *testing.T, f folder) {
			t.Helper()
			megatronRanks(t, f, 200, nil, optimizerPair, rngPair)
			f["iter_0000200/mp_rank_01/model_optim_rng.pt"] = megatronRank(t, 200, nil, optimizerPair)
		}, epoch.Converging, none, "rng mp_rank_01, which is absent"},
		"another form of Megatron, never random numbers": {func(t *testing.T, f folder) { t.Helper(); megatronRanks(t, f, 200, nil, optimizerPair) }, epoch.Converged, newest, ""},
		"Megatron, whole": {func(t *testing.T, f folder) { t.Helper(); megatronRanks(t, f, 200, nil, optimizerPair, rngPair) }, epoch.Converged, newest, ""},
		"Megatron, torch_dist, --no-save-optim": {func(t *testing.T, f folder) {
			t.Helper()
			megatronDist(t, f, "iter_0000100", 100, nil, "optimizer.state.exp_avg.w", "rng_state/shard_0_1")
			megatronDist(t, f, "iter_0000200", 200, []pair{{"no_save_optim", true}}, "rng_state/shard_0_1")
		}, preflight.WeightsOnly, 100, "--no-save-optim"},
		"Megatron, torch_dist, --no-save-rng": {func(t *testing.T, f folder) {
			t.Helper()
			megatronDist(t, f, "iter_0000200", 200, []pair{{"no_save_rng", true}}, "optimizer.state.exp_avg.w")
		}, epoch.Converging, none, "rng rng_state, which is absent"},
		"Megatron, torch_dist, no rng since": {func(t *testing.T, f folder) {
			t.Helper()
			megatronDist(t, f, "iter_0000100", 100, nil, "optimizer.state.exp_avg.w", "rng_state/shard_0_1")
			megatronDist(t, f, "iter_0000200", 200, nil, "optimizer.state.exp_avg.w")
		}, epoch.Converging, 100, "the first rng state, which is absent"},
		"Megatron, a model to begin from": {func(t *testing.T, f folder) {
			t.Helper()
			megatronDist(t, f, "release", 0, nil)
			f["latest_checkpointed_iteration.txt"] = text("release")
		}, epoch.Converged, 0, ""},

		"DeepSpeed without an optimizer": {func(t *testing.T, f folder) {
			t.Helper()
			f["latest"] = text("global_step200")
			f["global_step200/mp_rank_00_model_states.pt"] = torchFile(t, pair{"global_steps", 200}, pair{"dp_world_size", 1}, pair{"mp_world_size", 1},
				pair{"optimizer", nil}, pair{"ds_config", []pair{{"zero_optimization", []pair{{"stage", 0}}}}})
		}, preflight.WeightsOnly, none, "there are none of optimizer states"},
		"a model in safetensors": {func(_ *testing.T, f folder) {
			f["config.json"], f["model.safetensors"] = text("{}"), safetensorsFile()
		}, epoch.Converged, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			tc.make(t, fsys)
			r := judge(t, loader, fsys)
			require.Equal(t, tc.verdict, r.Verdict, "%s %+v", r.Why, r.Saves)
			require.Contains(t, r.Why, tc.why)
			require.Equal(t, tc.verdict == epoch.Converged, r.OK())
			require.Equal(t, tc.safe, r.Frontier.V)
			if tc.verdict != preflight.WeightsOnly {
				return
			}
			require.Contains(t, r.Why, "complete, weights only: cannot resume training")
			places := []preflight.Place{{Name: "x", Root: ckpt.Read(t.Context(), fsys, ckpt.Options{})}}
			accepted := preflight.JudgeAccepting(places, loader, preflight.Accept{WeightsOnly: true})
			require.True(t, accepted.OK(), accepted.Why)
			require.Equal(t, r.Epoch.OK, accepted.Frontier.OK)
		})
	}
}

// Of several places each must have more than weights.
func TestWeightsOnlyInOnePlace(t *testing.T) {
	full := fstest.MapFS{"last.ckpt": lightningCkpt(t, 200, pair{"optimizer_states", []any{1}})}
	weights := fstest.MapFS{"last.ckpt": lightningCkpt(t, 200)}
	require.True(t, judge(t, loader, full, full).OK())
	for _, places := range [][]fstest.MapFS{{full, weights}, {weights, full}, {weights, weights}} {
		r := judge(t, loader, places...)
		require.Equal(t, preflight.WeightsOnly, r.Verdict, r.Why)
		require.False(t, r.Frontier.OK)
	}
}

// Adapters of PEFT in folders of their own need a configuration and weights, and stay from save to save.
func TestAdapters(t *testing.T) {
	save := func(t *testing.T, f fstest.MapFS, step int) {
		t.Helper()
		hf(t, f, step)
		for _, name := range []string{"policy", "reward"} {
			dir := fmt.Sprintf("checkpoint-%d/%s/", step, name)
			f[dir+"adapter_config.json"], f[dir+"adapter_model.safetensors"] = text("{}"), safetensorsFile()
		}
	}
	const in = "checkpoint-200/policy/"
	for name, tc := range map[string]struct {
		damage func(t *testing.T, f fstest.MapFS)
		why    string // "" where it is safe
	}{
		"whole":            {func(*testing.T, fstest.MapFS) {}, ""},
		"no weights":       {func(_ *testing.T, f fstest.MapFS) { delete(f, in+"adapter_model.safetensors") }, "adapter policy, which is absent"},
		"no configuration": {func(_ *testing.T, f fstest.MapFS) { delete(f, in+"adapter_config.json") }, "adapter policy, which is absent"},
		"none of it": {func(_ *testing.T, f fstest.MapFS) {
			delete(f, in+"adapter_config.json")
			delete(f, in+"adapter_model.safetensors")
		}, "adapter policy, which is absent"},
		"weights cut off":       {func(_ *testing.T, f fstest.MapFS) { f[in+"adapter_model.safetensors"] = text("12345678901") }, "adapter policy, which is tentative"},
		"configuration cut off": {func(_ *testing.T, f fstest.MapFS) { f[in+"adapter_config.json"] = text("{") }, "adapter policy, which is tentative"},
		"weights of torch.save": {func(t *testing.T, f fstest.MapFS) {
			t.Helper()
			delete(f, in+"adapter_model.safetensors")
			f[in+"adapter_model.bin"] = torchFile(t, pair{"w", 1})
		}, ""},
		"adapters alone": {func(_ *testing.T, f fstest.MapFS) {
			delete(f, "checkpoint-100/pytorch_model.bin")
			delete(f, "checkpoint-200/pytorch_model.bin")
		}, ""},
		"one more": {func(_ *testing.T, f fstest.MapFS) {
			f["checkpoint-200/third/adapter_config.json"], f["checkpoint-200/third/adapter_model.safetensors"] = text("{}"), safetensorsFile()
		}, ""},
		"a folder of others": {func(_ *testing.T, f fstest.MapFS) { f["checkpoint-200/runs/events"] = text("x") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			save(t, fsys, 100)
			save(t, fsys, 200)
			tc.damage(t, fsys)
			r := judge(t, loader, fsys)
			require.Equal(t, tc.why == "", r.OK(), r.Why)
			require.Contains(t, r.Why, tc.why)
			if tc.why != "" {
				require.Equal(t, model.Some[int64](100), r.Frontier)
			}
		})
	}
}

// unreadable has one file or folder that can not be opened.
type unreadable struct {
	fs.FS
	name string
}

func (u unreadable) Open(name string) (fs.File, error) {
	if name == u.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.FS.Open(name)
}

// told is what is wrong with the saves, a line each.
func told(r *preflight.Result) string {
	var out strings.Builder
	for _, s := range r.Saves {
		for _, p := range s.Problems {
			fmt.Fprintf(&out, "\n%s: %s", p.File, p.What)
		}
	}
	return out.String()
}

// What could not be read at all, or was left out, may be what a resume needs: no yes without it.
func TestInputReadInPart(t *testing.T) {
	whole := fstest.MapFS{}
	hf(t, whole, 100)
	hf(t, whole, 200)
	tags := fstest.MapFS{"latest": text("global_step200")}
	deepspeed(t, tags, "global_step100", 100, 0, 1)
	deepspeed(t, tags, "global_step200", 200, 0, 1)
	tags["best/x"] = text("")
	adapters := fstest.MapFS{"checkpoint-200/policy/adapter_config.json": text("{}"), "checkpoint-200/policy/adapter_model.safetensors": safetensorsFile()}
	hf(t, adapters, 200)
	loaders := fstest.MapFS{"iter_0000200/mp_rank_00/train_dataloader_dprank000.pt": torchFile(t, pair{"sample", 1})}
	megatronDist(t, loaders, "iter_0000200", 200, nil, "optimizer.state.exp_avg.w")
	titans := fstest.MapFS{}
	titan(titans, 100, true)
	titan(titans, 200, true)
	for name, tc := range map[string]struct {
		fsys   fs.FS
		limits ckpt.Limits
		names  string
	}{
		"an older folder":       {unreadable{whole, "checkpoint-100"}, ckpt.Limits{}, "checkpoint-100: permission denied"},
		"a file of an older":    {unreadable{whole, "checkpoint-100/optimizer.pt"}, ckpt.Limits{}, "checkpoint-100/optimizer.pt: permission denied"},
		"a shard of an older":   {unreadable{titans, "step-100/__1_0.distcp"}, ckpt.Limits{}, "step-100/__1_0.distcp: permission denied"},
		"an older tag":          {unreadable{tags, "global_step100"}, ckpt.Limits{}, "global_step100: permission denied"},
		"older saves left out":  {whole, ckpt.Limits{Saves: 1}, "has 1 more saves than are read"},
		"a document too large":  {whole, ckpt.Limits{JSON: 3}, "trainer_state.json: got "},
		"an adapter":            {unreadable{adapters, "checkpoint-200/policy"}, ckpt.Limits{}, "checkpoint-200/policy: permission denied"},
		"data loaders":          {unreadable{loaders, "iter_0000200/mp_rank_00"}, ckpt.Limits{}, "iter_0000200/mp_rank_00: permission denied"},
		"a tag of the user's":   {unreadable{tags, "best"}, ckpt.Limits{}, "best: permission denied"},
		"the folder of the job": {unreadable{whole, "."}, ckpt.Limits{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := preflight.Judge([]preflight.Place{{Name: "x", Root: ckpt.Read(t.Context(), tc.fsys, ckpt.Options{Limits: tc.limits})}}, loader)
			require.False(t, r.OK())
			require.Contains(t, r.Why+told(r), tc.names)
		})
	}
	for name, fsys := range map[string]fs.FS{"trainer": whole, "tags": tags, "torchtitan": titans} {
		r := preflight.Judge([]preflight.Place{{Name: "x", Root: ckpt.Read(t.Context(), fsys, ckpt.Options{})}}, loader)
		require.True(t, r.OK(), "%s: %s", name, r.Why)
	}
}

// manyFolders is a hidden folder with n empty folders in it.
func manyFolders(n int) fs.FS {
	of := fstest.MapFS{}
	for i := range n {
		of[fmt.Sprintf(".git/%04d", i)] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	}
	return of
}

// An empty folder is a first start where the caller says so; one with anything in it is not.
func TestEmptyFolders(t *testing.T) {
	lostAndFound := fstest.MapFS{"lost+found": {Mode: fs.ModeDir | 0o700}}
	for name, tc := range map[string]struct {
		roots []fs.FS
		want  bool
	}{
		"empty":                  {[]fs.FS{fstest.MapFS{}}, true},
		"a new file system":      {[]fs.FS{lostAndFound}, true},
		"two":                    {[]fs.FS{fstest.MapFS{}, lostAndFound}, true},
		"something else":         {[]fs.FS{fstest.MapFS{"train.log": text("x")}}, false},
		"a hidden file":          {[]fs.FS{fstest.MapFS{".keep": text("")}}, true},
		"an empty folder in it":  {[]fs.FS{fstest.MapFS{"step-100": {Mode: fs.ModeDir | 0o755}}}, false},
		"what a crash left":      {[]fs.FS{fstest.MapFS{"latest": text("")}}, false},
		"one of two":             {[]fs.FS{fstest.MapFS{}, fstest.MapFS{"step-100/.metadata": text("x")}}, false},
		"that can not be listed": {[]fs.FS{unreadable{fstest.MapFS{}, "."}}, false},
		"a tool's own":           {[]fs.FS{fstest.MapFS{".git/objects/pack/x": text("x"), ".hydra/config.yaml": text("x")}}, true},
		"a hidden save":          {[]fs.FS{fstest.MapFS{".staging/optimizer.pt": text("x")}}, false},
		"of a node":              {[]fs.FS{fstest.MapFS{".staging/node0/optimizer.pt": text("x")}}, false},
		"of a node, hidden":      {[]fs.FS{fstest.MapFS{".staging/.node0/optimizer.pt": text("x")}}, false},
		"a hidden model":         {[]fs.FS{fstest.MapFS{".staging/model.safetensors": text("x")}}, false},
		"two folders down":       {[]fs.FS{fstest.MapFS{".staging/a/b/model.safetensors": text("x")}}, false},
		"being copied":           {[]fs.FS{fstest.MapFS{".staging/a/.optimizer.pt.Xy12Zq": text("x")}}, false},
		"of a layout":            {[]fs.FS{fstest.MapFS{".staging/a/100/manifest.ocdbt": text("x"), ".staging/a/100/_CHECKPOINT_METADATA": text("{}")}}, false},
		"too deep to look at":    {[]fs.FS{fstest.MapFS{".staging/a/b/c/notes.txt": text("x")}}, false},
		"a link in a hidden":     {[]fs.FS{fstest.MapFS{".staging/node0": {Mode: fs.ModeSymlink, Data: []byte("/elsewhere")}}}, false},
		"much in a hidden":       {[]fs.FS{manyFolders(1100)}, false},
		"less in a hidden":       {[]fs.FS{manyFolders(256)}, true}, // as git's objects
	} {
		t.Run(name, func(t *testing.T) {
			var places []preflight.Place
			for i, fsys := range tc.roots {
				places = append(places, preflight.Place{Name: fmt.Sprint(i), Root: ckpt.Read(t.Context(), fsys, ckpt.Options{})})
			}
			r := preflight.JudgeAccepting(places, loader, preflight.Accept{Empty: true})
			require.Equal(t, tc.want, r.OK(), "%+v", r)
			require.Equal(t, tc.want, r.Verdict == preflight.Empty)
			require.False(t, preflight.Judge(places, loader).OK(), "unless it is accepted")
		})
	}
}
