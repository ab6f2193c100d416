// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

func gate(t *testing.T, fsys fs.FS, verify bool) *preflight.Result {
	t.Helper()
	return preflight.Judge([]preflight.Place{{Name: "x", Root: ckpt.Read(t.Context(), fsys, ckpt.Options{Verify: verify})}}, model.Optional[int64]{})
}

func judgeDir(t *testing.T, dir string) *preflight.Result {
	t.Helper()
	d, err := ckpt.OpenDir(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	return gate(t, d, false)
}

// zero has nothing but zeros for a file, whose times stay.
func zero(t *testing.T, file string) {
	t.Helper()
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, make([]byte, info.Size()), 0o600))
	require.NoError(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
}

// Whichever one look at the disk fails, a save of which a part is of another epoch is not confirmed:
// a step that can not be read may be another.
func TestAnyLookMayFail(t *testing.T) {
	for job, file := range map[string]string{
		"deepspeed, ZeRO 1":       "global_step200/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
		"torchtitan":              "step-200/__0_0.distcp",
		"hf trainer, one process": "checkpoint-200/optimizer.pt",
		"megatron, legacy":        "iter_0000200/mp_rank_00_000/model_optim_rng.pt",
	} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			dir := saves(t, job, 100, 200)
			require.True(t, gate(t, os.DirFS(dir), false).OK())
			old, err := os.ReadFile(filepath.Join(dir, strings.Replace(file, "200", "100", 1)))
			require.NoError(t, err)
			now, err := os.Stat(filepath.Join(dir, file))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), old, 0o600))
			require.NoError(t, os.Chtimes(filepath.Join(dir, file), now.ModTime(), now.ModTime()))
			require.False(t, gate(t, os.DirFS(dir), false).OK())
			fails := 0
			for f := (&failing{FS: os.DirFS(dir), at: 1}); ; f.at++ {
				f.looks = 0
				r := gate(t, f, false)
				if f.looks < f.at {
					break
				}
				fails++
				require.False(t, r.OK(), "look %d", f.at)
				require.NotEqual(t, model.Some[int64](200), r.Frontier, "look %d", f.at)
			}
			require.Greater(t, fails, 10)
		})
	}
}

// failing is a file system of which one look fails, as of a network.
type failing struct {
	fs.FS
	at, looks int
}

func (f *failing) look(name string) error {
	if f.looks++; f.looks == f.at {
		return &fs.PathError{Op: "read", Path: name, Err: syscall.ESTALE}
	}
	return nil
}

func (f *failing) Open(name string) (fs.File, error) {
	if err := f.look(name); err != nil {
		return nil, err
	}
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return failingFile{file, f, name}, nil
}

type failingFile struct {
	fs.File
	of   *failing
	name string
}

func (f failingFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.of.look(f.name); err != nil {
		return 0, err
	}
	return f.File.(io.ReaderAt).ReadAt(p, off)
}

func (f failingFile) ReadDir(n int) ([]fs.DirEntry, error) {
	if err := f.of.look(f.name); err != nil {
		return nil, err
	}
	return f.File.(fs.ReadDirFile).ReadDir(n)
}

// The newest save is what the loader takes, also where it can not be looked into.
func TestTheNewestIsNotLeftOut(t *testing.T) {
	for _, tc := range []struct{ job, newest string }{
		{"hf trainer, one process", "checkpoint-200"}, {"torchtitan", "step-200"}, {"orbax", "200"},
	} {
		t.Run(tc.job, func(t *testing.T) {
			dir := saves(t, tc.job, 100, 200)
			require.True(t, judgeDir(t, dir).OK())
			away := filepath.Join(t.TempDir(), "away")
			require.NoError(t, os.Rename(filepath.Join(dir, tc.newest), away))
			require.True(t, judgeDir(t, dir).OK(), "what is not there is not taken")
			require.NoError(t, os.Symlink(away, filepath.Join(dir, tc.newest)))
			require.False(t, judgeDir(t, dir).OK(), "a link out of the root")
		})
		t.Run(tc.job+", a number of more than 64 bits", func(t *testing.T) {
			dir := saves(t, tc.job, 100, 200)
			name := strings.Replace(tc.newest, "200", "99999999999999999999", 1)
			require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
			r := judgeDir(t, dir)
			require.False(t, r.OK())
			require.Equal(t, `the number in the name of "`+name+`" is larger than is read, which is 9223372036854775807 at most`, r.Why)
		})
	}
	dir := saves(t, "orbax", 100, 200)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "300"), 0o700))
	require.False(t, judgeDir(t, dir).OK(), "a step of Orbax without anything in it")

	dir = saves(t, "torchtitan", 100, 200, 300)
	require.NoError(t, os.Rename(filepath.Join(dir, "step-300"), filepath.Join(dir, "step-300.bak")))
	require.False(t, judgeDir(t, dir).OK(), "the loader opens step-300")
	require.NoError(t, os.Remove(filepath.Join(dir, "step-300.bak", ".metadata")))
	require.True(t, judgeDir(t, dir).OK(), "the loader does not count it")
}

// A save of which only the pointer lacks, and that nothing proves, is not what can be recovered.
func TestWhatIsNotProvenIsNoFrontier(t *testing.T) {
	dir := saves(t, "deepspeed, ZeRO 1", 100, 200)
	require.NoError(t, os.Remove(filepath.Join(dir, "latest")))
	require.Equal(t, model.Some[int64](200), judgeDir(t, dir).Frontier)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "global_step200", "offloaded_tensors"), 0o700))
	require.Equal(t, model.Some[int64](100), judgeDir(t, dir).Frontier)
}

// All shards of ZeRO may be of another save than the model.
func TestShardsOfZeROOfAnotherSave(t *testing.T) {
	dir := saves(t, "deepspeed, ZeRO 1", 100, 200)
	shards, err := filepath.Glob(filepath.Join(dir, "global_step200", "*optim_states.pt"))
	require.NoError(t, err)
	require.Len(t, shards, 3)
	for _, f := range shards {
		old, err := os.ReadFile(filepath.Join(dir, "global_step100", filepath.Base(f)))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(f, old, 0o600))
	}
	require.False(t, judgeDir(t, dir).OK())
}

// Python writes numbers that are no JSON.
func TestNumbersThatAreNotFinite(t *testing.T) {
	for _, tc := range []struct {
		add  string
		want bool
	}{
		{`"loss": NaN, "top": Infinity, "low": -Infinity, "text": "\\\"NaN {"`, true}, {`"loss": Nan`, false}, {`"loss": NaNa`, false},
	} {
		dir := saves(t, "hf trainer, one process", 100)
		file := filepath.Join(dir, "checkpoint-100", "trainer_state.json")
		state, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, []byte("{"+tc.add+", "+strings.TrimPrefix(string(state), "{")), 0o600))
		require.Equal(t, tc.want, judgeDir(t, dir).OK(), tc.add)
	}
}

// Of two forms of the weights the loader takes the one that it looks for first.
func TestTwoFormsOfWeights(t *testing.T) {
	dir := saves(t, "hf trainer, one process", 100, 200)
	stale, err := os.ReadFile(filepath.Join(dir, "checkpoint-100", "model.safetensors"))
	require.NoError(t, err)
	save := filepath.Join(dir, "checkpoint-200")
	require.True(t, judgeDir(t, dir).OK())
	require.NoError(t, os.WriteFile(filepath.Join(save, "model.safetensors.index.json"), []byte(`{"weight_map": {"w": "model-1.safetensors"}}`), 0o600))
	require.NoError(t, os.Rename(filepath.Join(save, "model.safetensors"), filepath.Join(save, "model-1.safetensors")))
	require.NoError(t, os.WriteFile(filepath.Join(save, "model.safetensors"), stale, 0o600))
	r := judgeDir(t, dir)
	require.False(t, r.OK())
	require.Contains(t, told(r), "got it beside model.safetensors.index.json")
}

func told(r *preflight.Result) (text string) {
	for i := range r.Saves {
		for _, p := range r.Saves[i].Problems {
			text += p.What + "\n"
		}
	}
	return text
}

// Which of several copies is the last is known by nothing but times.
func TestSeveralLastCheckpoints(t *testing.T) {
	dir := saves(t, "lightning, last.ckpt", 100)
	require.True(t, judgeDir(t, dir).OK())
	require.NoError(t, os.Rename(filepath.Join(dir, "last.ckpt"), filepath.Join(dir, "last-v1.ckpt")))
	r := judgeDir(t, dir)
	require.True(t, r.OK())
	require.Equal(t, "last-v1.ckpt", r.By)
	other := saves(t, "lightning, last.ckpt", 200)
	require.NoError(t, os.Rename(filepath.Join(other, "last.ckpt"), filepath.Join(dir, "last.ckpt")))
	require.False(t, judgeDir(t, dir).OK())
	same := saves(t, "lightning, last.ckpt", 100)
	require.NoError(t, os.Rename(filepath.Join(same, "last.ckpt"), filepath.Join(dir, "last.ckpt")))
	require.True(t, judgeDir(t, dir).OK())
}

// A loader opens a path, not a number.
func TestTheLoaderOpensAPath(t *testing.T) {
	for job, names := range map[string][2]string{
		"torchtitan":           {"step-200", "step-0200"},
		"megatron, torch_dist": {"iter_0000200", "iter_200"},
		"deepspeed, ZeRO 1":    {"global_step200", "global_step0200"},
	} {
		dir := saves(t, job, 100, 200)
		require.True(t, judgeDir(t, dir).OK(), job)
		require.NoError(t, os.Rename(filepath.Join(dir, names[0]), filepath.Join(dir, names[1])))
		r := judgeDir(t, dir)
		require.False(t, r.OK(), job)
		require.Contains(t, r.Why, "but a resume would open", job)
	}
}

// DeepSpeed within a save of the Trainer loads what its own latest names, whatever else lies beside.
func TestLatestWithinASaveOfTheTrainer(t *testing.T) {
	dir := saves(t, "hf trainer, one process", 100)
	save := filepath.Join(dir, "checkpoint-100")
	inner := saves(t, "deepspeed, ZeRO 1", 90, 100)
	move := func(name string) {
		require.NoError(t, os.Rename(filepath.Join(inner, name), filepath.Join(save, name)))
	}
	move("global_step100")
	move("latest")
	rng, err := os.ReadFile(filepath.Join(save, "rng_state.pth"))
	require.NoError(t, err)
	for _, rank := range []string{"0", "1", "2"} {
		file := filepath.Join(save, "rng_state_"+rank+".pth")
		require.NoError(t, os.WriteFile(file, rng, 0o600))
		before := time.Now().Add(-time.Hour) // the step was written
		require.NoError(t, os.Chtimes(file, before, before))
	}
	require.NoError(t, os.Remove(filepath.Join(save, "rng_state.pth")))
	r := judgeDir(t, dir)
	require.True(t, r.OK(), r.Why)
	latest := filepath.Join(save, "latest")
	for what, text := range map[string]string{"is not there": "global_step300", "is older": "global_step70", "is none": "x"} {
		require.NoError(t, os.WriteFile(latest, []byte(text), 0o600))
		require.False(t, judgeDir(t, dir).OK(), what)
	}
	move("global_step90")
	require.NoError(t, os.WriteFile(latest, []byte("global_step90"), 0o600))
	require.False(t, judgeDir(t, dir).OK(), "it is of another epoch")
	require.NoError(t, os.RemoveAll(filepath.Join(save, "global_step90")))
	require.NoError(t, os.WriteFile(latest, []byte("global_step100"), 0o600))
	require.True(t, judgeDir(t, dir).OK())
	require.NoError(t, os.Remove(latest))
	require.False(t, judgeDir(t, dir).OK(), "nothing says what is loaded")
}
