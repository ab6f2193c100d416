// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// A whole save of one framework stands in for no save of another: where both lie in one folder, nothing says which
// a resume reads, and the one that is torn may be it.
func TestFamilies_TornSaveOfAnotherFramework(t *testing.T) {
	job := func(name string, steps ...int64) fstest.MapFS {
		return inMemory(t, saves(t, name, steps...)).(fstest.MapFS)
	}
	trainer := func(step string) fstest.MapFS {
		f := job("hf trainer, one process", 100, 200)
		without("checkpoint-" + step + "/optimizer.pt")(f)
		return f
	}
	one := func(dir string) fstest.MapFS {
		f := fstest.MapFS{}
		stateOf(t, f, dir, "model.safetensors", 2, 100)
		return f
	}
	nanotron := fstest.MapFS{"latest.txt": document("300")}
	nanotronSave(t, nanotron, 2, 200)
	nanotronSave(t, nanotron, 2, 300)
	titan := job("torchtitan", 100, 200)
	without("step-200/.metadata")(titan)
	deepspeed := job("deepspeed, ZeRO 1", 100, 200)
	without("global_step200/bf16_zero_pp_rank_1")(deepspeed)
	torn := one("epoch_1")
	without("epoch_1/optimizer.bin")(torn)
	composer := fstest.MapFS{"ep1-ba200-rank0.pt": document("x")}
	automodel := fstest.MapFS{"epoch_0_step_20/model/model.safetensors": document("x")}
	begun := fstest.MapFS{"400/model/decoder/model_weight.safetensors": document("x")}
	for name, tc := range map[string]struct {
		one, other fstest.MapFS
		both       []string
	}{
		"Trainer and accelerate":       {trainer("200"), one("epoch_0"), []string{"checkpoint-N", "epoch_N"}},
		"Trainer and accelerate's N":   {trainer("200"), one("checkpoint_7"), []string{"checkpoint-N", "checkpoint_N"}},
		"Trainer and nanotron":         {trainer("200"), nanotron, []string{"checkpoint-N", "N of nanotron"}},
		"Trainer and OLMo-core":        {trainer("200"), olmoSaves(2, nil)(t), []string{"checkpoint-N", "OLMo-core's stepN"}},
		"Trainer and torchtune":        {trainer("200"), torchtuneRun(t), []string{"checkpoint-N", "torchtune"}},
		"torchtitan and accelerate":    {titan, one("step_5"), []string{"step-N", "step_N"}},
		"DeepSpeed and accelerate":     {deepspeed, one("checkpoint_1"), []string{"global_stepN", "checkpoint_N"}},
		"OLMo-core and nanotron":       {olmoSaves(2, nil)(t), nanotron, []string{"OLMo-core's stepN", "N of nanotron"}},
		"accelerate by two names":      {torn, one("step_7"), []string{"epoch_N", "step_N"}},
		"accelerate's own and another": {one("checkpoint_7"), torn, []string{"checkpoint_N", "epoch_N"}},
		"a project of accelerate's":    {fstest.MapFS{"x.txt": document("x")}, under("checkpoints/", one("checkpoint_7"), torn), []string{"checkpoint_N", "epoch_N"}},
		"Trainer and Composer":         {job("hf trainer, one process", 100), composer, []string{"checkpoint-N", "Composer"}},
		"Trainer and Automodel":        {job("hf trainer, one process", 100), automodel, []string{"checkpoint-N", "Automodel"}},
		"Trainer and what has begun":   {job("hf trainer, one process", 100), begun, []string{"checkpoint-N", "N of nanotron"}},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := maps.Clone(tc.one)
			maps.Copy(fsys, tc.other)
			r, ok := safe(t, fsys, ckpt.Options{})
			require.False(t, ok)
			require.Contains(t, r.Why, "several frameworks")
			for _, family := range tc.both {
				require.Contains(t, r.Why, family)
			}
		})
	}
}

// What is called by a number, and holds no state of a job, is no save.
func TestFamilies_NamesThatOtherThingsHave(t *testing.T) {
	for _, name := range []string{"0/stdout.log", "3", "epoch_1/events.out.tfevents.1", "step_5/sample.png", "step7/config.json", "ep1-ba200.png", "epoch_0_step_5/x.json"} {
		f := inMemory(t, saves(t, "hf trainer, one process", 100, 200)).(fstest.MapFS)
		f[name] = document("x")
		r, ok := safe(t, f, ckpt.Options{})
		require.True(t, ok, "%s: %s", name, r.Why)
	}
	tags := fstest.MapFS{}
	for name, file := range inMemory(t, saves(t, "deepspeed, ZeRO 1", 100, 200)).(fstest.MapFS) {
		tags[strings.Replace(name, "global_step100", "epoch_1", 1)] = file
	}
	r, ok := safe(t, tags, ckpt.Options{})
	require.True(t, ok, "tags of one job: %s", r.Why)
}

// under puts folders below another.
func under(dir string, all ...fstest.MapFS) fstest.MapFS {
	out := fstest.MapFS{}
	for _, f := range all {
		for name, file := range f {
			out[dir+name] = file
		}
	}
	return out
}
