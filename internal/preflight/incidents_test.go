// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/ckptsim"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

// pair is a key of a dict with its value: an int, a bool, a string, nil, a list or pairs again.
type pair struct {
	key   string
	value any
}

func pickled(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, 'N')
	case int:
		return binary.LittleEndian.AppendUint32(append(b, 'J'), uint32(v))
	case bool:
		if v {
			return append(b, 0x88)
		}
		return append(b, 0x89)
	case []any:
		b = append(b, ']', '(')
		for _, item := range v {
			b = pickled(b, item)
		}
		return append(b, 'e')
	case string:
		return append(binary.LittleEndian.AppendUint32(append(b, 'X'), uint32(len(v))), v...)
	case []pair:
		b = append(b, '}', '(')
		for _, p := range v {
			b = pickled(pickled(b, p.key), p.value)
		}
		return append(b, 'u')
	}
	panic(fmt.Sprintf("pickle %T", v))
}

// torchFile is what torch.save writes of a dict.
func torchFile(t *testing.T, pairs ...pair) *fstest.MapFile {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateHeader(&zip.FileHeader{Name: "archive/data.pkl"})
	require.NoError(t, err)
	_, err = w.Write(append(pickled([]byte("\x80\x02"), pairs), '.'))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return &fstest.MapFile{Data: b.Bytes()}
}

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// deepspeed is a tag of ZeRO with two data-parallel ranks, as far as ranks are listed.
func deepspeed(t *testing.T, fsys fstest.MapFS, tag string, step int, ranks ...int) {
	t.Helper()
	for _, r := range ranks {
		if r == 0 {
			fsys[tag+"/mp_rank_00_model_states.pt"] = torchFile(t, pair{"global_steps", step}, pair{"dp_world_size", 2}, pair{"mp_world_size", 1}, pair{"optimizer", nil})
		}
		fsys[fmt.Sprintf("%s/zero_pp_rank_%d_mp_rank_00_optim_states.pt", tag, r)] = torchFile(t, pair{"optimizer_state_dict", []pair{{"step", step}}})
	}
}

// hf is a whole save of the Trainer, of one process.
func hf(t *testing.T, fsys fstest.MapFS, step int) {
	t.Helper()
	dir := fmt.Sprintf("checkpoint-%d/", step)
	fsys[dir+"pytorch_model.bin"] = torchFile(t, pair{"w", 1})
	fsys[dir+"training_args.bin"] = torchFile(t, pair{"seed", 42})
	fsys[dir+"optimizer.pt"] = torchFile(t, pair{"state", []pair{{"0", []pair{{"step", step}}}}})
	fsys[dir+"scheduler.pt"] = torchFile(t, pair{"last_epoch", step})
	fsys[dir+"rng_state.pth"] = torchFile(t, pair{"python", 1})
	fsys[dir+"trainer_state.json"] = text(fmt.Sprintf(`{"global_step": %d}`, step))
}

// megatron is an iteration of one rank.
func megatron(t *testing.T, fsys fstest.MapFS, iteration int) {
	t.Helper()
	fsys[fmt.Sprintf("iter_%07d/mp_rank_00/model_optim_rng.pt", iteration)] = torchFile(t, pair{"iteration", iteration},
		pair{"args", []pair{{"tensor_model_parallel_size", 1}, {"data_parallel_size", 2}}})
}

func judge(t *testing.T, asked model.Optional[int64], roots ...fstest.MapFS) *preflight.Result {
	t.Helper()
	var places []preflight.Place
	for i, fsys := range roots {
		places = append(places, preflight.Place{Name: fmt.Sprintf("node-%d", i), Root: ckpt.Read(t.Context(), fsys, ckpt.Options{})})
	}
	return preflight.Judge(places, asked)
}

// sub is what there is below a folder.
func sub(t *testing.T, fsys fstest.MapFS, dir string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	for name, file := range fsys {
		if below, ok := strings.CutPrefix(name, dir+"/"); ok {
			out[below] = file
		}
	}
	require.NotEmpty(t, out)
	return out
}

// dcp is what is there of a job of DCP that had saved at 100, and is in the midst of its save at 200.
func dcp(t *testing.T, job string) fstest.MapFS {
	t.Helper()
	jobs := ckptsim.Jobs()
	i := slices.IndexFunc(jobs, func(j ckptsim.Job) bool { return j.Name == job })
	trial, err := ckptsim.NewTrial(&jobs[i], 2, 100, 200)
	require.NoError(t, err)
	state, err := trial.At(trial.Steps()/2, ckptsim.Kill, rand.New(rand.NewPCG(1, 8)))
	require.NoError(t, err)
	out := fstest.MapFS{}
	require.NoError(t, fs.WalkDir(state, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		require.NoError(t, err)
		data, err := fs.ReadFile(state, name)
		out[name] = &fstest.MapFile{Data: data, ModTime: info.ModTime()}
		return err
	}))
	return out
}

var loader model.Optional[int64] // what the job's own loader would take

// TestIncidents rebuilds failures that users of the frameworks reported. The sentence is what
// would have been read before the job resumed.
func TestIncidents(t *testing.T) {
	type incident struct {
		name     string
		roots    []fstest.MapFS
		asked    model.Optional[int64]
		verdict  epoch.Verdict
		sentence string
		safe     int64 // the newest epoch that is; 0 for none
	}
	var incidents []incident

	a, b := fstest.MapFS{"latest": text("global_step200")}, fstest.MapFS{"latest": text("global_step100")}
	deepspeed(t, a, "global_step200", 200, 0)
	deepspeed(t, b, "global_step100", 100, 1)
	incidents = append(incidents, incident{
		"hiyouga/LlamaFactory#655: two nodes recover to different steps",
		[]fstest.MapFS{a, b},
		loader,
		epoch.MixedEpoch, "places would resume from different epochs: node-0 from 200 by latest, node-1 from 100 by latest", 0,
	})

	a = fstest.MapFS{"latest": text("global_step200")}
	deepspeed(t, a, "global_step100", 100, 0, 1)
	deepspeed(t, a, "global_step200", 200, 0)
	incidents = append(incidents, incident{
		"EleutherAI/gpt-neox#750: the second node's ZeRO shards are missing",
		[]fstest.MapFS{a},
		loader,
		epoch.Converging, "1 of 4 domains do not confirm it, the first optimizer zero_pp_rank_1_mp_rank_00_optim_states, which is absent", 100,
	})

	a = fstest.MapFS{"run-120000/latest": text("global_step200")}
	deepspeed(t, a, "run-120000/global_step200", 200, 0)
	deepspeed(t, a, "run-120001/global_step200", 200, 1) // its clock had moved on
	incidents = append(incidents, incident{
		"TensorAuto/OpenTau#396: one rank saves into a folder of another second",
		[]fstest.MapFS{sub(t, a, "run-120000")},
		loader,
		epoch.Converging, "1 of 4 domains do not confirm it, the first optimizer zero_pp_rank_1_mp_rank_00_optim_states, which is absent", 0,
	})

	a = fstest.MapFS{"latest": text("global_step200")}
	deepspeed(t, a, "global_step200", 200, 0, 1)
	a["global_step200/zero_pp_rank_1_mp_rank_00_optim_states.pt"] = torchFile(t, pair{"optimizer_state_dict", []pair{{"step", 150}}})
	incidents = append(incidents, incident{
		"a ZeRO shard of another step under one tag",
		[]fstest.MapFS{a},
		loader,
		epoch.MixedEpoch, "domains hold different epochs: 150 (1), 200 (3)", 0,
	})

	a = fstest.MapFS{"latest_checkpointed_iteration.txt": text("1000")}
	megatron(t, a, 1000)
	megatron(t, a, 2000)
	incidents = append(incidents, incident{
		"NVIDIA-NeMo/Megatron-Bridge#5964: a newer iteration that is not published",
		[]fstest.MapFS{a},
		model.Some[int64](2000),
		epoch.Converging, "1 of 2 domains do not confirm it, the first tracker latest_checkpointed_iteration.txt, which is tentative", 2000,
	})

	a = fstest.MapFS{"latest_checkpointed_iteration.txt": text("1000")}
	megatron(t, a, 1000)
	for rank := range 4 {
		a[fmt.Sprintf("iter_0001000/mp_rank_00/train_dataloader_dprank%03d.pt", rank)] = torchFile(t, pair{"sample", rank})
	}
	incidents = append(incidents, incident{
		"NVIDIA-NeMo/Megatron-Bridge#5604: a folder of data loaders that was used before",
		[]fstest.MapFS{a},
		loader,
		epoch.Converging, "2 of 6 domains do not confirm it, the first dataloader dp rank 2, which is tentative", 0,
	})

	a, b = fstest.MapFS{"latest_checkpointed_iteration.txt": text("1000")}, fstest.MapFS{"latest_checkpointed_iteration.txt": text("2000")}
	megatron(t, a, 1000)
	megatron(t, b, 2000)
	incidents = append(incidents, incident{
		"Megatron-LM: trackers differ, replaced with the greatest",
		[]fstest.MapFS{a, b},
		loader,
		epoch.MixedEpoch, "places would resume from different epochs: node-0 from 1000 by latest_checkpointed_iteration.txt, node-1 from 2000 by latest_checkpointed_iteration.txt", 0,
	})

	a = fstest.MapFS{"latest_checkpointed_iteration.txt": text("4160813071")}
	megatron(t, a, 1000)
	incidents = append(incidents, incident{
		"dlrover#1233: a tracker of garbage",
		[]fstest.MapFS{a},
		loader,
		epoch.Unknown, `a resume would find no save: latest_checkpointed_iteration.txt names "4160813071", which is not there; want one line with the number of a save that is there`, 1000,
	})

	a = fstest.MapFS{"latest_checkpointed_iteration.txt": text("")}
	megatron(t, a, 1000)
	incidents = append(incidents, incident{
		"Megatron-LM: a tracker that was cut off while it was written",
		[]fstest.MapFS{a},
		loader,
		epoch.Unknown, "a resume would find no save: latest_checkpointed_iteration.txt is empty; want one line with the number of a save that is there", 1000,
	})

	a = fstest.MapFS{}
	hf(t, a, 100)
	hf(t, a, 200)
	delete(a, "checkpoint-200/trainer_state.json")
	incidents = append(incidents, incident{
		"huggingface/transformers#35782: a partial checkpoint is chosen",
		[]fstest.MapFS{a},
		loader,
		epoch.Converging, "1 of 6 domains do not confirm it, the first commit trainer_state.json, which is absent", 100,
	})

	a, b = fstest.MapFS{}, fstest.MapFS{}
	hf(t, a, 100)
	hf(t, a, 200)
	hf(t, b, 100)
	b["tmp-checkpoint-200/rng_state_1.pth"] = torchFile(t, pair{"python", 1})
	incidents = append(incidents, incident{
		"hiyouga/LlamaFactory#2398: a worker node keeps tmp-checkpoint-*",
		[]fstest.MapFS{a, b},
		loader,
		epoch.MixedEpoch, "places would resume from different epochs: node-0 from 200 by the highest checkpoint-N, node-1 from 100 by the highest checkpoint-N", 100,
	})

	a = fstest.MapFS{}
	hf(t, a, 100)
	hf(t, a, 200)
	a["checkpoint-200/optimizer.pt"] = a["checkpoint-100/optimizer.pt"]
	incidents = append(incidents, incident{
		"an optimizer of another checkpoint",
		[]fstest.MapFS{a},
		loader,
		epoch.Converging, "1 of 6 domains do not confirm it, the first optimizer optimizer.pt, which is tentative", 100,
	})

	a, b = fstest.MapFS{}, fstest.MapFS{}
	a["last.ckpt"] = torchFile(t, pair{"global_step", 200})
	b["last.ckpt"] = torchFile(t, pair{"global_step", 100})
	incidents = append(incidents, incident{
		"Lightning#19932: last.ckpt differs between ranks",
		[]fstest.MapFS{a, b},
		loader,
		epoch.MixedEpoch, "places would resume from different epochs: node-0 from 200 by last.ckpt, node-1 from 100 by last.ckpt", 0,
	})

	whole := torchFile(t, pair{"global_step", 200})
	a = fstest.MapFS{"epoch=0-step=100.ckpt": torchFile(t, pair{"global_step", 100}), "last.ckpt": {Data: whole.Data[:len(whole.Data)/2]}}
	incidents = append(incidents, incident{
		"Lightning#19970: last.ckpt was cut off while it was written",
		[]fstest.MapFS{a},
		loader,
		epoch.Unknown, "last.ckpt: got no end of a zip file; want one: the file is torn, or was not written by torch.save", 100,
	})

	a = fstest.MapFS{
		"100/_CHECKPOINT_METADATA": text(`{"item_handlers": {"state": "PyTree"}, "commit_timestamp_nsecs": null}`),
		"100/state/_METADATA":      text(`{}`),
	}
	incidents = append(incidents, incident{
		"AI-Hypercomputer/maxtext#5260: a step without its commit",
		[]fstest.MapFS{a},
		loader,
		epoch.Converging, "1 of 2 domains do not confirm it, the first commit _CHECKPOINT_METADATA, which is tentative", 0,
	})

	incidents = append(incidents, incident{
		"ByteDance-Seed/VeOmni#1181: metadata of the save before beside new shards",
		[]fstest.MapFS{dcp(t, "dcp, overwrite in place")},
		loader,
		epoch.Converging, "6 of 10 domains do not confirm it, the first dataloader rank 1, which is tentative", 0,
	}, incident{
		"KempnerForge#102: the newest is named before it is on the disk",
		[]fstest.MapFS{dcp(t, "torchtitan")},
		model.Some[int64](200), // by a link, latest
		epoch.Unknown, "4 of 4 domains do not confirm it, the first commit .metadata, which is absent", 100,
	})

	for _, in := range incidents {
		t.Run(in.name, func(t *testing.T) {
			r := judge(t, in.asked, in.roots...)
			require.False(t, r.OK())
			require.Equal(t, in.sentence, r.Why)
			require.Equal(t, in.verdict, r.Verdict)
			require.Equal(t, in.safe != 0, r.Frontier.OK, "%+v", r.Frontier)
			require.Equal(t, in.safe, r.Frontier.V)
		})
	}
}

// TestTheSameFoldersWhole: what the incidents are made of is safe as long as nothing is wrong
// with it.
func TestTheSameFoldersWhole(t *testing.T) {
	ds := fstest.MapFS{"latest": text("global_step200")}
	deepspeed(t, ds, "global_step200", 200, 0, 1)
	mega := fstest.MapFS{"latest_checkpointed_iteration.txt": text("1000\n")}
	megatron(t, mega, 1000)
	for rank := range 2 {
		mega[fmt.Sprintf("iter_0001000/mp_rank_00/train_dataloader_dprank%03d.pt", rank)] = torchFile(t, pair{"sample", rank})
	}
	trainer := fstest.MapFS{}
	hf(t, trainer, 100)
	hf(t, trainer, 200)
	last := fstest.MapFS{"last.ckpt": torchFile(t, pair{"global_step", 200}), "epoch=0-step=200.ckpt": torchFile(t, pair{"global_step", 200})}
	for name, fsys := range map[string]fstest.MapFS{"deepspeed": ds, "megatron": mega, "trainer": trainer, "lightning": last} {
		t.Run(name, func(t *testing.T) {
			r := judge(t, loader, fsys)
			require.True(t, r.OK(), "%s %+v", r.Why, r.Problems)
			require.Equal(t, r.Epoch, r.Frontier)
		})
	}
}

// An optimizer of DeepSpeed's that was started anew counts fewer steps, on all ranks alike, and so do the
// shards of an earlier save under this tag: it is in doubt, as nothing in the save tells them apart.
// Steps that the model's file says were skipped explain the difference. One that counts more had counted
// before the job began.
func TestOptimizersThatCountFewerSteps(t *testing.T) {
	for _, tc := range []struct {
		steps, skipped int
		want           bool
	}{{200, 0, true}, {120, 0, false}, {0, 0, false}, {120, 80, true}, {120, 79, false}, {120, 81, true}, {201, 0, true}} {
		fsys := fstest.MapFS{"latest": text("global_step200")}
		deepspeed(t, fsys, "global_step200", tc.steps, 0, 1)
		fsys["global_step200/mp_rank_00_model_states.pt"] = torchFile(t, pair{"global_steps", 200}, pair{"skipped_steps", tc.skipped},
			pair{"dp_world_size", 2}, pair{"mp_world_size", 1}, pair{"optimizer", nil})
		r := judge(t, loader, fsys)
		require.Equal(t, tc.want, r.OK(), "%+v: %s", tc, r.Why)
		if !tc.want {
			require.Equal(t, epoch.Converging, r.Verdict, "not mixed: it may be whole")
			require.Contains(t, r.Judged.Problems[0].What, "it is of another save, or was started anew")
		}
	}
}
