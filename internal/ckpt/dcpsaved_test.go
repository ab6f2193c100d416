// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
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

// The metadata of DCP names the folder that it was written to, which tells what was copied from another save.
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
