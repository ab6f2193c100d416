// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/epoch"
)

const indexName = "model.safetensors.index.json"

// weightsOf is a file of safetensors with a number for each tensor, and metadata.
func weightsOf(metadata string, tensors ...string) *fstest.MapFile {
	head := `{"__metadata__":` + metadata
	for i, name := range tensors {
		head += fmt.Sprintf(`,%q:{"dtype":"F32","shape":[],"data_offsets":[%d,%d]}`, name, 4*i, 4*i+4)
	}
	head += "}"
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...)
	return &fstest.MapFile{Data: append(b, make([]byte, 4*len(tensors))...), ModTime: time.Unix(99, 0)}
}

// indexOf is an index of "tensor: file" pairs.
func indexOf(metadata string, pairs ...string) *fstest.MapFile {
	var list []string
	for _, p := range pairs {
		tensor, file, _ := strings.Cut(p, ": ")
		list = append(list, fmt.Sprintf("%q: %q", tensor, file))
	}
	return &fstest.MapFile{Data: []byte(`{"metadata": ` + metadata + `, "weight_map": {` + strings.Join(list, ", ") + "}}"), ModTime: time.Unix(100, 0)}
}

func step(n int) string { return fmt.Sprintf(`{"format": "pt", "step": "%d"}`, n) }

// model is a whole save of two shards.
func shards(n int) fstest.MapFS {
	return fstest.MapFS{
		"a.safetensors": weightsOf(step(n), "v", "w"),
		"b.safetensors": weightsOf(step(n), "x"),
		indexName:       indexOf(`{"total_size": 12}`, "v: a.safetensors", "w: a.safetensors", "x: b.safetensors"),
	}
}

// Shards of safetensors that each say their step are of one save where all that the index lists are there
// and say the same.
func TestSafetensorsThatSayTheirStep(t *testing.T) {
	r, ok := safe(t, shards(20), ckpt.Options{})
	require.True(t, ok, r.Why)
	require.EqualValues(t, 20, r.Epoch.V)
	for name, tc := range map[string]struct {
		change func(fsys fstest.MapFS)
		want   string // in a problem, or the reason
	}{
		"a shard of another save":   {func(f fstest.MapFS) { f["b.safetensors"] = weightsOf(step(10), "x") }, "got epoch 10 by step in b.safetensors; want 20, by step in a.safetensors"},
		"a shard that says none":    {func(f fstest.MapFS) { f["b.safetensors"] = weightsOf(`{}`, "x") }, "nor model b.safetensors says an epoch"},
		"a shard that is not there": {func(f fstest.MapFS) { delete(f, "b.safetensors") }, "got no such file"},
		"an index of another save": {func(f fstest.MapFS) {
			f[indexName] = indexOf(`{"step": 10}`, "v: a.safetensors", "w: a.safetensors", "x: b.safetensors")
		}, "got epoch 20 by step in a.safetensors; want 10, by step in " + indexName},
		"an index of fewer shards":  {func(f fstest.MapFS) { f[indexName] = indexOf(`{}`, "v: a.safetensors", "w: a.safetensors") }, "that " + indexName + " does not list"},
		"an index of fewer tensors": {func(f fstest.MapFS) { f[indexName] = indexOf(`{}`, "w: a.safetensors", "x: b.safetensors") }, "got 2 tensors; want the 1 that"},
		"an index of more tensors": {func(f fstest.MapFS) {
			f[indexName] = indexOf(`{}`, "v: a.safetensors", "w: a.safetensors", "x: b.safetensors", "y: b.safetensors")
		}, `got no tensor "y"`},
		"an index of other places": {func(f fstest.MapFS) {
			f[indexName] = indexOf(`{}`, "v: a.safetensors", "w: b.safetensors", "x: b.safetensors")
		}, `got no tensor "w"`},
		"an index cut off":        {func(f fstest.MapFS) { f[indexName].Data = f[indexName].Data[:40] }, "read JSON"},
		"no index":                {func(f fstest.MapFS) { delete(f, indexName) }, "no " + indexName + " says how many files there are"},
		"a single file beside it": {func(f fstest.MapFS) { f["model.safetensors"] = weightsOf(step(20), "v", "w", "x") }, "that " + indexName + " does not list"},
		"a shard of more ranks":   {func(f fstest.MapFS) { f["model-00004-of-00004.safetensors"] = weightsOf(step(10), "y") }, "that " + indexName + " does not list"},
		"a shard that is newer":   {func(f fstest.MapFS) { f["b.safetensors"].ModTime = time.Unix(101, 0) }, "got a file that is not older than " + indexName},
		"a shard cut off":         {func(f fstest.MapFS) { f["b.safetensors"].Data = f["b.safetensors"].Data[:30] }, "read header"},
	} {
		fsys := shards(20)
		tc.change(fsys)
		r, ok := safe(t, fsys, ckpt.Options{})
		require.False(t, ok, name)
		require.Contains(t, told(r)+r.Why, tc.want, name)
		require.False(t, r.Frontier.OK, name)
	}
	same := shards(20) // in one tick of the clock
	for _, f := range same {
		f.ModTime = time.Unix(100, 0)
	}
	r, ok = safe(t, same, ckpt.Options{})
	require.True(t, ok, r.Why)
}

// Which texts name a step.
func TestStepsInMetadata(t *testing.T) {
	for metadata, want := range map[string]int64{
		`{"step": "20"}`:                       20,
		`{"global_step": "20", "epoch": "3"}`:  20,
		`{"global_steps": "0020"}`:             20,
		`{"iteration": "20", "step": "20"}`:    20,
		`{"epoch": "20"}`:                      -1,
		`{"Step": "20"}`:                       -1,
		`{"step": "20.0"}`:                     -1,
		`{"step": "-20"}`:                      -1,
		`{"step": " 20"}`:                      -1,
		`{"step": ""}`:                         -1,
		`{"step": "last"}`:                     -1,
		`{"step": "20", "global_step": "160"}`: -1,
		`{"step": "99999999999999999999"}`:     -1,
	} {
		r, ok := safe(t, fstest.MapFS{
			"a.safetensors": weightsOf(metadata, "v"), "b.safetensors": weightsOf(metadata, "w"),
			indexName: indexOf(`{}`, "v: a.safetensors", "w: b.safetensors"),
		}, ckpt.Options{})
		require.Equal(t, want >= 0, ok, "%s: %s", metadata, r.Why)
		if ok {
			require.Equal(t, want, r.Epoch.V, metadata)
		}
	}
}

// What lies in one file is of one save, whether it says which or not. Of several without an index nothing
// says how many there were.
func TestFilesOfSafetensorsWithoutAnIndex(t *testing.T) {
	r, ok := safe(t, fstest.MapFS{"model.safetensors": weightsOf(step(20), "v")}, ckpt.Options{})
	require.True(t, ok, r.Why)
	require.EqualValues(t, 20, r.Epoch.V)
	r, ok = safe(t, fstest.MapFS{"model.safetensors": weightsOf("{}", "v")}, ckpt.Options{})
	require.True(t, ok, r.Why)
	require.False(t, r.Epoch.OK)
	for other, verdict := range map[string]epoch.Verdict{step(20): epoch.Unknown, `{}`: epoch.Unknown, step(10): epoch.MixedEpoch} {
		r, _ := safe(t, fstest.MapFS{"model.safetensors": weightsOf(step(20), "v"), "optimizer.safetensors": weightsOf(other, "v")}, ckpt.Options{})
		require.Equal(t, verdict, r.Verdict, other)
	}
}

// A file that says its step and was copied into a save of the Trainer is of another epoch.
func TestSafetensorsOfAnotherSaveOfTheTrainer(t *testing.T) {
	for n, want := range map[int]bool{200: true, 100: false} {
		dir := saves(t, "hf trainer, one process", 100, 200)
		overwrite(t, filepath.Join(dir, "checkpoint-200", "model.safetensors"), weightsOf(step(n), "w").Data)
		r := gate(t, os.DirFS(dir), false)
		require.Equal(t, want, r.OK(), r.Why)
		if !want {
			require.Equal(t, epoch.MixedEpoch, r.Verdict)
			require.Contains(t, told(r), "got epoch 100 by step in checkpoint-200/model.safetensors; want 200")
		}
	}
}
