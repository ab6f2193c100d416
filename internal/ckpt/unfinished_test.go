// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// A download from the Hugging Face hub that was not finished is named, and what to do about it.
func TestUnfinishedDownload(t *testing.T) {
	for name, f := range map[string]fstest.MapFS{
		"before the weights": {"config.json": document("{}"), ".cache/huggingface/download/x.etag.incomplete": document("")},
		"in a folder":        {"tokenizer.json": document("{}"), ".cache/huggingface/download/unet/x.etag.incomplete": document("x")},
	} {
		r, ok := safe(t, f, ckpt.Options{})
		require.False(t, ok, name)
		require.Contains(t, r.Why, "was not finished, by .cache/huggingface/download/", name)
		require.Contains(t, r.Why, "run the download again", name)
	}
	for name, f := range map[string]fstest.MapFS{
		"all files": {"config.json": document("{}"), ".cache/huggingface/download/config.json.metadata": document("x")},
		"a lock":    {"config.json": document("{}"), ".cache/huggingface/download/x.lock": document("")},
	} {
		r, ok := safe(t, f, ckpt.Options{})
		require.False(t, ok, name)
		require.NotContains(t, r.Why, "download", name)
	}
	repository := filepath.Join(t.TempDir(), "models--org--model")
	snapshot := filepath.Join(repository, "snapshots", "0123456789abcdef0123456789abcdef01234567")
	for _, dir := range []string{snapshot, filepath.Join(repository, "blobs")} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(snapshot, "config.json"), []byte("{}"), 0o600))
	require.NotContains(t, judgeDir(t, snapshot).Why, "download")
	require.NoError(t, os.WriteFile(filepath.Join(repository, "blobs", "bb.incomplete"), nil, 0o600))
	require.Contains(t, judgeDir(t, snapshot).Why, "was not finished, by blobs/bb.incomplete")
}

// Folders with saves that lie below a folder of models are named.
func TestModelsOverSaves(t *testing.T) {
	adapters := fstest.MapFS{"style-000001.safetensors": weightsOf("{}", "a"), "style-000002.safetensors": weightsOf("{}", "a")}
	for _, n := range []string{"style-000001-state", "style-000002-state"} {
		stateOf(t, adapters, n, "model.safetensors", 1, 100)
	}
	r, ok := safe(t, adapters, ckpt.Options{})
	require.False(t, ok)
	require.Contains(t, r.Why, "folders in it hold saves of a job (style-000001-state, style-000002-state); give the one to resume from")
	given, ok := safe(t, below(adapters, "style-000002-state/"), ckpt.Options{})
	require.True(t, ok, given.Why)
	for name, f := range map[string]fstest.MapFS{
		"models alone":           {"a.safetensors": weightsOf("{}", "a"), "b.safetensors": weightsOf("{}", "a")},
		"pictures beside":        {"a.safetensors": weightsOf("{}", "a"), "b.safetensors": weightsOf("{}", "a"), "sample/1.png": document("x")},
		"a pipeline's models":    {"v1-5.safetensors": weightsOf("{}", "a"), "unet/model.safetensors": weightsOf("{}", "a")},
		"shards without index":   {"model-00001-of-00002.safetensors": weightsOf("{}", "a"), "assets/1.png": document("x")},
		"one model and a folder": {"model.safetensors": weightsOf("{}", "a"), "1_Pooling/config.json": document("{}")},
	} {
		r, _ := safe(t, f, ckpt.Options{})
		require.NotContains(t, r.Why, "hold saves of a job", name)
	}
}

// A cache of the hub keeps models in snapshots, which are named.
func TestHub_SnapshotsOfACache(t *testing.T) {
	const one, two = "models--org--name/snapshots/abc123/", "models--org--other/snapshots/def456/"
	model := func(f fstest.MapFS, dir string) fstest.MapFS {
		f[dir+"model.safetensors"], f[dir+"config.json"] = weightsOf("{}", "w"), document("{}")
		repository, _, _ := strings.Cut(dir, "/")
		f[repository+"/blobs/0f0f"], f[repository+"/refs/main"] = document("x"), document("abc123")
		return f
	}
	all := model(model(fstest.MapFS{}, one), two)
	for name, tc := range map[string]struct {
		f    fstest.MapFS
		want []string
	}{
		"a repository":     {below(model(fstest.MapFS{}, one), "models--org--name/"), []string{"snapshots/abc123"}},
		"a cache":          {model(fstest.MapFS{}, two), []string{"models--org--other/snapshots/def456"}},
		"a cache of two":   {all, []string{"models--org--name/snapshots/abc123", "models--org--other/snapshots/def456"}},
		"no snapshot yet":  {fstest.MapFS{"blobs/0f0f": document("x"), "refs/main": document("abc")}, nil},
		"snapshots, alone": {fstest.MapFS{"snapshots/abc/notes": document("x"), "refs/main": document("abc")}, nil},
	} {
		r, ok := safe(t, tc.f, ckpt.Options{})
		require.False(t, ok, name)
		root := ckpt.Read(t.Context(), tc.f, ckpt.Options{})
		require.Equal(t, tc.want, root.Below, name)
		for _, snapshot := range tc.want {
			require.Contains(t, r.Why, snapshot, name)
			require.Contains(t, root.Problems[0].What, "give one of "+tc.want[0], name)
		}
	}
}
