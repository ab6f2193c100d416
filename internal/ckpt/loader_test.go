package ckpt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
