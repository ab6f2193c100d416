// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"cmp"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// library is a script of testdata/libraries, which saves with a real library.
type library struct {
	script, module string
	scenarios      []librarySaves
}

// librarySaves is a folder of saves, and what preflight has to say of it.
type librarySaves struct {
	name string
	full bool // in the full tier only
	// want is the exit status: 0 or 3. At 3 the answer must contain the words of why.
	want int
	why  string
	// newest is the newest step that training can resume from; none without one. Where a format does not say
	// its step, it is unsaid.
	newest int64
	// save is the folder of the newest save. parts are files of it without which it can not be resumed from.
	save  string
	parts []string
	// older is the folder of the save before, of which stale are files that say of which save they are.
	older string
	stale []string
}

const (
	none   = -1
	unsaid = -2

	weightsOnly = "cannot resume training"
)

var libraries = []library{
	{"hf_trainer", "transformers", []librarySaves{
		{name: "whole", newest: 4, save: "checkpoint-4", parts: []string{"model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json"}, older: "checkpoint-2", stale: []string{"optimizer.pt", "scheduler.pt", "trainer_state.json"}},
		{name: "weights_alone", want: 3, why: weightsOnly, newest: none},
		{name: "weights_alone_last", want: 3, why: weightsOnly, newest: 2},
		{name: "adapters", newest: 4, save: "checkpoint-4", parts: []string{"adapter_model.safetensors", "policy/adapter_model.safetensors", "optimizer.pt"}, older: "checkpoint-2", stale: []string{"optimizer.pt", "scheduler.pt"}},
		{name: "adapters_alone", want: 3, why: weightsOnly, newest: none},
		{name: "several_updates", newest: 4, save: "checkpoint-4", parts: []string{"model.safetensors", "optimizer.pt", "scheduler.pt"}, older: "checkpoint-2", stale: []string{"optimizer.pt", "scheduler.pt"}},
		{name: "plateau", newest: 4, save: "checkpoint-4", parts: []string{"model.safetensors", "optimizer.pt", "scheduler.pt"}, older: "checkpoint-2", stale: []string{"optimizer.pt"}},
		{name: "two_ranks", newest: 4, save: "checkpoint-4", parts: []string{"model.safetensors", "optimizer.pt", "rng_state_1.pth"}, older: "checkpoint-2", stale: []string{"optimizer.pt", "scheduler.pt"}},
		{name: "export", newest: unsaid, parts: []string{"model.safetensors"}},
		{name: "export_sharded", want: 3, newest: none},
	}},
	{"accelerate_state", "accelerate", []librarySaves{
		{name: "automatic", newest: 1, save: "checkpoints/checkpoint_1", parts: []string{"model.safetensors", "optimizer.bin", "scheduler.bin", "random_states_0.pkl"}, older: "checkpoints/checkpoint_0", stale: []string{"optimizer.bin", "scheduler.bin"}},
		{name: "two_ranks", newest: 1, save: "checkpoints/checkpoint_1", parts: []string{"model.safetensors", "optimizer.bin", "random_states_1.pkl"}, older: "checkpoints/checkpoint_0", stale: []string{"optimizer.bin", "scheduler.bin"}},
		{name: "named", newest: 4, save: "checkpoint-4", parts: []string{"model.safetensors", "optimizer.bin", "scheduler.bin"}, older: "checkpoint-2", stale: []string{"optimizer.bin", "scheduler.bin"}},
		{name: "weights_alone", want: 3, newest: none},
	}},
	{"lightning_fit", "lightning", []librarySaves{
		{name: "whole", newest: 4, parts: []string{"last.ckpt"}},
		{name: "link", newest: 4, parts: []string{"epoch=1-step=4.ckpt"}},
		{name: "no_last", want: 3, why: "which of 2 saves", newest: 4},
		{name: "weights_alone", want: 3, why: weightsOnly, newest: none},
		{name: "weights_alone_last", want: 3, why: weightsOnly, newest: 2},
		{name: "adversaries", newest: 8, parts: []string{"last.ckpt"}},
	}},
	{"torchtitan_manager", "torchtitan.components.checkpointer.dcp", []librarySaves{
		{name: "whole", newest: 4, save: "step-4", parts: []string{"__0_0.distcp", "__1_0.distcp"}, older: "step-2", stale: []string{"__0_0.distcp"}},
		{name: "weights_alone_last", want: 3, why: weightsOnly, newest: 2},
		{name: "async", newest: 4, save: "step-4", parts: []string{"__0_0.distcp", "__1_0.distcp"}, older: "step-2", stale: []string{"__0_0.distcp"}},
	}},
	{"deepspeed_zero", "deepspeed", []librarySaves{
		{name: "zero1", newest: 4, save: "global_step4", parts: []string{"mp_rank_00_model_states.pt", "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"}, older: "global_step2", stale: []string{"mp_rank_00_model_states.pt", "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"}},
		{name: "zero2", full: true, newest: 4, save: "global_step4", parts: []string{"mp_rank_00_model_states.pt", "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"}, older: "global_step2", stale: []string{"mp_rank_00_model_states.pt", "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"}},
		{name: "zero3", newest: 4, save: "global_step4", parts: []string{"zero_pp_rank_1_mp_rank_00_model_states.pt", "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"}, older: "global_step2", stale: []string{"zero_pp_rank_1_mp_rank_00_model_states.pt", "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"}},
		{name: "skipped", newest: 4, save: "global_step4", parts: []string{"mp_rank_00_model_states.pt", "zero_pp_rank_1_mp_rank_00_optim_states.pt"}, older: "global_step2", stale: []string{"mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt"}},
		{name: "skipped_zero3", full: true, newest: 4, save: "global_step4", parts: []string{"zero_pp_rank_0_mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt"}, older: "global_step2", stale: []string{"zero_pp_rank_0_mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt"}},
		{name: "weights_alone", want: 3, newest: none},
	}},
	{"hf_deepspeed", "transformers", []librarySaves{
		{name: "skipped", full: true, newest: 4, save: "checkpoint-4", parts: []string{"scheduler.pt", "global_step4/mp_rank_00_model_states.pt", "global_step4/zero_pp_rank_0_mp_rank_00_optim_states.pt"}, older: "checkpoint-2", stale: []string{"scheduler.pt"}},
		{name: "weights_alone", full: true, want: 3, why: weightsOnly, newest: none},
	}},
}

// copyTimes are the times that copies of a folder can have, by the place of a file among n.
var copyTimes = []struct {
	name   string
	broken bool // parts are also broken in the quick tier
	at     func(i, n int, written time.Time) time.Time
}{
	{"as written", true, func(_, _ int, written time.Time) time.Time { return written }},
	{"cp -r", false, nil},
	{"one time", true, func(_, _ int, _ time.Time) time.Time { return copied }},
	{"by name", false, func(i, _ int, _ time.Time) time.Time { return copied.Add(time.Duration(i) * time.Second) }},
	{"by name, last first", true, func(i, n int, _ time.Time) time.Time { return copied.Add(time.Duration(n-i) * time.Second) }},
	{"whole seconds", false, func(_, _ int, written time.Time) time.Time { return written.Truncate(time.Second) }},
	{"at random, 1", false, func(i, _ int, _ time.Time) time.Time { return atRandom(1, i) }},
	{"at random, 2", false, func(i, _ int, _ time.Time) time.Time { return atRandom(2, i) }},
}

var copied = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// atRandom is a moment within a minute, in milliseconds, as of a download by many workers.
func atRandom(seed uint64, i int) time.Time {
	return copied.Add(time.Duration(rand.New(rand.NewPCG(seed, uint64(i))).IntN(60_000)) * time.Millisecond)
}

// TestTorchLibraries: whole saves of real libraries are safe whatever times a copy of them has, saves of weights
// alone are not, and those that have lost or cut files are not.
func TestTorchLibraries(t *testing.T) {
	python := torchPython(t)
	folder := os.Getenv("LOCKSTEP_TORCH_LIBRARIES")
	if folder == "" {
		missing(t, "LOCKSTEP_TORCH_LIBRARIES is not set; `make e2e-torch` installs the libraries and sets it")
	}
	for _, l := range libraries {
		t.Run(l.script, func(t *testing.T) {
			t.Parallel()
			l.test(t, python, folder)
		})
	}
}

func (l library) test(t *testing.T, python, folder string) {
	t.Helper()
	cases := slices.DeleteFunc(slices.Clone(l.scenarios), func(s librarySaves) bool { return s.full && !tier.Full(t) })
	if len(cases) == 0 {
		t.Skip("in the full tier only")
	}
	root := t.TempDir()
	args := []string{filepath.Join(repoRoot(t), "e2e", "testdata", "libraries", l.script+".py"), root}
	for _, s := range cases {
		args = append(args, s.name)
	}
	cmd := exec.CommandContext(t.Context(), python, args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+folder, "PYTHONWARNINGS=ignore", "PYTHONDONTWRITEBYTECODE=1",
		"HF_HUB_OFFLINE=1", "DS_ACCELERATOR=cpu", "OMP_NUM_THREADS=1", "GLOO_SOCKET_IFNAME=lo", "HOME="+t.TempDir())
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "save with %s: %s", l.module, out)
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.Logf("%s saved %d scenarios in %.1f s, and used %.1f s of a core", l.module, len(cases), time.Since(begun).Seconds(), used.Seconds())
	for _, s := range cases {
		for _, times := range copyTimes {
			t.Run(s.name+"/"+times.name, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), s.name)
				copyFolder(t, filepath.Join(root, s.name), dir, times.at)
				s.judge(t, dir)
				if times.broken || tier.Full(t) {
					s.judgeBroken(t, dir)
				}
			})
		}
	}
}

// copyFolder copies a folder and gives its files times; where at is nil, those of the copying.
func copyFolder(t *testing.T, from, to string, at func(i, n int, written time.Time) time.Time) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "cp", "-r", from, to).CombinedOutput()
	require.NoError(t, err, "%s", out)
	if at == nil {
		return
	}
	names := filesBelow(t, from)
	for i, name := range names {
		info, err := os.Stat(filepath.Join(from, name))
		require.NoError(t, err)
		mod := at(i, len(names), info.ModTime())
		require.NoError(t, os.Chtimes(filepath.Join(to, name), mod, mod))
	}
}

// filesBelow are the files below a folder, by name, without links.
func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	require.NoError(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, err = filepath.Rel(dir, name)
		names = append(names, name)
		return err
	}))
	return names
}

func (s librarySaves) judge(t *testing.T, dir string) {
	t.Helper()
	a := preflight(t, dir)
	assert.Equal(t, s.want == 0, a.Safe, "%s", a.Why)
	assert.Contains(t, a.Why, s.why)
	if s.newest != unsaid {
		assert.Equal(t, s.newest, *cmp.Or(a.Frontier, ptr(none)), "newest step that can be resumed from")
	}
}

func ptr(n int64) *int64 { return &n }

// judgeBroken removes, cuts and empties each part in turn, and replaces it by that of the save before.
func (s librarySaves) judgeBroken(t *testing.T, dir string) {
	t.Helper()
	for _, part := range s.parts {
		name := filepath.Join(dir, s.save, part)
		whole := read(t, name)
		s.judgeInstead(t, dir, part, "removed", nil)
		for how, content := range map[string][]byte{"cut": whole[:len(bytes.TrimSpace(whole))-1], "cut in two": whole[:len(whole)/2], "empty": {}} {
			s.judgeInstead(t, dir, part, how, content)
		}
	}
	for _, part := range s.stale {
		s.judgeInstead(t, dir, part, "of the save before", read(t, filepath.Join(dir, s.older, part)))
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	return content
}

// judgeInstead judges the folder with other content in a part of it, or without the part for nil.
func (s librarySaves) judgeInstead(t *testing.T, dir, part, how string, content []byte) {
	t.Helper()
	name := filepath.Join(dir, s.save, part)
	info, err := os.Stat(name)
	require.NoError(t, err)
	aside := filepath.Join(t.TempDir(), "aside")
	require.NoError(t, os.Rename(name, aside))
	if content != nil {
		require.NoError(t, os.WriteFile(name, content, 0o644))
		require.NoError(t, os.Chtimes(name, info.ModTime(), info.ModTime()))
	}
	assert.False(t, preflight(t, dir).Safe, "%s is %s", part, how)
	require.NoError(t, os.Rename(aside, name))
}
