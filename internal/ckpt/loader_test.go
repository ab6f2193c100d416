// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// Of saves of two frameworks in one folder those of one are read; which a resume reads is not known.
func TestSeveralFrameworksInOneFolder(t *testing.T) {
	dir := saves(t, "torchtitan", 100)
	require.True(t, judgeDir(t, dir).OK())
	other := saves(t, "hf trainer, one process", 200)
	require.NoError(t, os.Rename(filepath.Join(other, "checkpoint-200"), filepath.Join(dir, "checkpoint-200")))
	r := judgeDir(t, dir)
	require.False(t, r.OK())
	require.Contains(t, r.Why, "several frameworks (torchtitan's step-N, Hugging Face's checkpoint-N)")
}

// Megatron-DeepSpeed has the trackers of both, and DeepSpeed's folders.
func TestMegatronDeepSpeed(t *testing.T) {
	dir := saves(t, "deepspeed, ZeRO 1", 100, 200)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "latest_checkpointed_iteration.txt"), []byte("200"), 0o600))
	r := judgeDir(t, dir)
	require.True(t, r.OK(), r.Why)
	require.EqualValues(t, 200, r.Epoch.V)
}

// A key that differs in case is another key to who wrote it.
func TestKeysThatDifferInCase(t *testing.T) {
	dir := saves(t, "hf trainer, one process", 100)
	file := filepath.Join(dir, "checkpoint-100", "trainer_state.json")
	state, err := os.ReadFile(file)
	require.NoError(t, err)
	more := strings.Replace(string(state), "}", `, "Global_Step": 7}`, 1)
	require.NotEqual(t, string(state), more)
	require.NoError(t, os.WriteFile(file, []byte(more), 0o600))
	require.True(t, judgeDir(t, dir).OK())
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(state), `"global_step"`, `"Global_Step"`, 1)), 0o600))
	require.False(t, judgeDir(t, dir).OK())
}

// What lies beside the saves of a job, and is none, costs the job nothing.
func TestWhatLiesBesideSaves(t *testing.T) {
	for _, name := range []string{"tb_20240501", "plugins_1", "logs_20240501123456789012345", "tensorboard"} {
		dir := saves(t, "orbax", 100, 200)
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		r := judgeDir(t, dir)
		require.True(t, r.OK(), "%s: %s", name, r.Why)
		require.EqualValues(t, 200, r.Epoch.V)
	}
	const hf = "hf trainer, one process"
	dir := saves(t, hf, 100)
	final := saves(t, "deepspeed, ZeRO 3", 50)
	for _, name := range []string{"global_step50", "latest"} {
		require.NoError(t, os.Rename(filepath.Join(final, name), filepath.Join(dir, name)))
	}
	r := judgeDir(t, dir)
	require.True(t, r.OK(), r.Why)
	require.EqualValues(t, 100, r.Epoch.V, "the Trainer resumes of its own")

	dir = saves(t, hf, 100)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pretrained_backbone.ckpt"), []byte("x"), 0o600))
	r = judgeDir(t, dir)
	require.True(t, r.OK(), r.Why)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "epoch=1-step=300.ckpt"), []byte("x"), 0o600))
	require.False(t, judgeDir(t, dir).OK())
}

// With a prefix of the user's, a step of Orbax without anything in it is one to the loader.
func TestOrbaxWithAPrefix(t *testing.T) {
	dir := saves(t, "orbax", 100, 200)
	for _, n := range []string{"100", "200"} {
		require.NoError(t, os.Rename(filepath.Join(dir, n), filepath.Join(dir, "checkpoint_"+n)))
	}
	r := judgeDir(t, dir)
	require.True(t, r.OK(), r.Why)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tb_300"), 0o700))
	require.True(t, judgeDir(t, dir).OK())
	require.NoError(t, os.Mkdir(filepath.Join(dir, "checkpoint_300"), 0o700))
	require.False(t, judgeDir(t, dir).OK())

	dir = t.TempDir() // the first save of all was cut off
	require.NoError(t, os.Mkdir(filepath.Join(dir, "checkpoint_100.orbax-checkpoint-tmp-1"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "checkpoint_50"), 0o700))
	require.False(t, judgeDir(t, dir).OK())
	root := ckpt.Read(t.Context(), os.DirFS(dir), ckpt.Options{})
	require.Len(t, root.Saves, 1)
}
