// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

// savedAt has a .metadata say that it was written to a path: as a text, or as a path of Python.
func savedAt(f fstest.MapFS, name, path string, object bool) {
	id := pickleText(path)
	if object {
		id = "cpathlib\nPosixPath\n("
		for _, part := range strings.Split(path, "/") {
			id += pickleText(part)
		}
		id += "tR"
	}
	text := strings.TrimSuffix(string(f[name].Data), "ub.")
	text += pickleText("storage_meta") + "ctorch.distributed.checkpoint.metadata\nStorageMeta\n)\x81}(" + pickleText("checkpoint_id") + id + "ub" + "ub."
	f[name] = &fstest.MapFile{Data: []byte(text), ModTime: f[name].ModTime}
}

// The metadata of DCP names the folder that it was written to, which shows that it was copied from another save.
func TestDCP_WrittenForAnotherSave(t *testing.T) {
	trainer := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := fsdpTrainer(t)
		without("checkpoint-200/optimizer.bin", "checkpoint-200/pytorch_model_fsdp.bin")(f)
		dcpIn(f, "checkpoint-200/pytorch_model_fsdp_0", "model")
		dcpIn(f, "checkpoint-200/optimizer_0", "optimizer.state")
		return f
	}
	titan := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := fstest.MapFS{}
		dcpIn(f, "step-200", "model", "optimizer.state")
		return f
	}
	const model, whole = "checkpoint-200/pytorch_model_fsdp_0/.metadata", "step-200/.metadata"
	for name, tc := range map[string]struct {
		make       func(*testing.T) fstest.MapFS
		file, path string
		want       bool
	}{
		"the Trainer's":                     {trainer, model, "/runs/7/checkpoint-200/pytorch_model_fsdp_0", true},
		"the Trainer's, of a run copied":    {trainer, model, "/elsewhere/checkpoint-200/pytorch_model_fsdp_0", true},
		"the Trainer's, of the save before": {trainer, model, "/runs/7/checkpoint-100/pytorch_model_fsdp_0", false},
		"the Trainer's, of another model":   {trainer, model, "/runs/7/checkpoint-200/pytorch_model_fsdp_1", false},
		"torchtitan's":                      {titan, whole, "out/checkpoint/step-200", true},
		"torchtitan's, of a later save":     {titan, whole, "out/checkpoint/step-300", false},
		"torchtitan's, of a draft":          {titan, whole, "out/checkpoint/tmp_step-300", true},
		"torchtitan's, in a store":          {titan, whole, "s3://bucket/job7/step-200", true},
		"torchtitan's, of another store":    {titan, whole, "s3://bucket/job7/step-100", false},
		"a path without parts":              {titan, whole, "", true},
	} {
		for _, object := range []bool{false, true} {
			f := tc.make(t)
			savedAt(f, tc.file, tc.path, object)
			r, ok := safe(t, f, ckpt.Options{})
			require.Equal(t, tc.want, ok, "%s: %s\n%s", name, r.Why, told(r))
			if !tc.want {
				require.Contains(t, told(r), "it was copied from that save", name)
			}
			if tc.file == whole {
				given, ok := safe(t, calledBy{below(f, "step-200/"), "step-200"}, ckpt.Options{})
				require.Equal(t, tc.want, ok, "%s, given: %s", name, given.Why)
				_, ok = safe(t, below(f, "step-200/"), ckpt.Options{})
				require.True(t, ok, "%s, under another name", name)
			}
		}
	}
}

// A rank that saves nothing of its own leaves an empty file, which is none of another save.
func TestDCP_EmptyFileOfARank(t *testing.T) {
	for size, want := range []string{"", "got a shard that .metadata does not name"} {
		f := fstest.MapFS{}
		dcpIn(f, "step-200", "model", "optimizer.state")
		f["step-200/__2_0.distcp"] = document(strings.Repeat("x", size))
		r, _ := safe(t, f, ckpt.Options{})
		require.Equal(t, want != "", strings.Contains(told(r), "does not name"), told(r))
	}
}

// Who copies, moves and renames runs, and puts zeros before the numbers of saves, has whole saves still.
func TestDCP_RenamedSave(t *testing.T) {
	for name, tc := range map[string]struct {
		folder, path string
		want         bool
	}{
		"zeros before the number":        {"step-0200", "out/checkpoint/step-200", true},
		"zeros taken away":               {"step-200", "out/checkpoint/step-000000200", true},
		"of a run of another number":     {"step-200", "/disk1/run1/step-200", true},
		"of a disk, a date and a run":    {"step-200", "/mnt/nvme3/2025-11-28/job-17/step-200", true},
		"another step, zeros before it":  {"step-0200", "out/checkpoint/step-100", false},
		"another step, as many digits":   {"step-0200", "out/checkpoint/step-0201", false},
		"another step, of the same run":  {"step-200", "/runs/7/step-20", false},
		"called otherwise, the same run": {"step-200", "/runs/7/best", true},
	} {
		f := fstest.MapFS{}
		dcpIn(f, tc.folder, "model", "optimizer.state")
		savedAt(f, tc.folder+"/.metadata", tc.path, false)
		given, ok := safe(t, calledBy{below(f, tc.folder+"/"), tc.folder}, ckpt.Options{})
		require.Equal(t, tc.want, ok, "%s, given: %s\n%s", name, given.Why, told(given))
		// Of a run torchtitan opens step-200, and no folder that is called otherwise.
		run, ok := safe(t, f, ckpt.Options{})
		require.Equal(t, tc.want && tc.folder == "step-200", ok, "%s: %s\n%s", name, run.Why, told(run))
		for _, r := range []*preflight.Result{given, run} {
			require.Equal(t, !tc.want, strings.Contains(told(r), "where the folder was renamed, give it that name again"), name)
		}
	}
	accelerate := func(folder, path string) fstest.MapFS {
		f := accelerateAt("checkpoint_%d", "model.safetensors", 0, 1)(t)
		for _, dir := range []string{"checkpoint_0/", "checkpoint_1/"} {
			without(dir + "model.safetensors")(f)
			dcpIn(f, dir+"pytorch_model_fsdp_0", "model")
		}
		savedAt(f, "checkpoint_1/pytorch_model_fsdp_0/.metadata", path, false)
		moved := fstest.MapFS{}
		for name, file := range f {
			moved[folder+name] = file
		}
		return moved
	}
	for name, tc := range map[string]struct {
		f    fstest.MapFS
		want bool
	}{
		"accelerate, another run":     {accelerate("checkpoints/", "/runs/1/checkpoint_1/pytorch_model_fsdp_0"), true},
		"accelerate, another project": {accelerate("checkpoints/", "/runs/1/checkpoints/checkpoint_001/pytorch_model_fsdp_0"), true},
		"accelerate, the save before": {accelerate("checkpoints/", "/runs/1/checkpoints/checkpoint_0/pytorch_model_fsdp_0"), false},
		"accelerate, another model":   {accelerate("", "/runs/1/checkpoint_1/pytorch_model_fsdp_2"), false},
	} {
		r, ok := safe(t, tc.f, ckpt.Options{})
		require.Equal(t, tc.want, ok, "%s: %s\n%s", name, r.Why, told(r))
	}
}

// A save without a step in its name is not judged by its name: a run is copied to one of another number.
func TestDCP_RunOfAnotherNumber(t *testing.T) {
	for _, name := range []string{"run2", "job-17", "2025-11-29", "exp_4_b"} {
		f := fstest.MapFS{}
		dcpIn(f, name, "model", "optimizer.state")
		savedAt(f, name+"/.metadata", "/runs/"+strings.NewReplacer("2", "1", "17", "16", "4", "3").Replace(name), false)
		r, _ := safe(t, calledBy{below(f, name+"/"), name}, ckpt.Options{})
		require.NotContains(t, told(r), "copied from that save", name)
	}
}
