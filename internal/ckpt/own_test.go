// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/ckptsim"
	"github.com/lockstep-otel/lockstep/internal/epoch"
)

// calledBy is a folder that is a save, and what it is called.
type calledBy struct {
	fs.FS
	name string
}

func (c calledBy) Name() string { return c.name }

// A save that was cut off anywhere is given as a folder of its own: what lies outside of it is not seen, and
// none is called converged that is not whole.
func TestSavesOfTheirOwn(t *testing.T) {
	for _, job := range ckptsim.Jobs() {
		if job.InPlace || job.Save(10, nil).Dir == "." { // there the folder is the root, or of several saves
			continue
		}
		t.Run(job.Name, func(t *testing.T) {
			t.Parallel()
			ownFolders(t, &job)
		})
	}
}

func ownFolders(t *testing.T, job *ckptsim.Job) {
	t.Helper()
	opt := ckpt.Options{}
	if job.TellWorld {
		opt.WorldSize = int64(job.World)
	}
	trial, err := ckptsim.NewTrial(job, 1, 10, 20) // the save before is deleted after this one
	require.NoError(t, err)
	states, confirmed := 0, 0
	for steps := range trial.Steps() + 1 {
		for crash := range ckptsim.Crashes {
			state, err := trial.At(steps, crash, rand.New(rand.NewPCG(uint64(steps), uint64(crash))))
			require.NoError(t, err)
			for _, of := range trial.Saves {
				if info, err := fs.Stat(state, of.Dir); err != nil || !info.IsDir() {
					continue // it is not begun, gone, or a file
				}
				sub, err := fs.Sub(state, of.Dir)
				require.NoError(t, err)
				said := judge(ckpt.Read(t.Context(), calledBy{sub, filepath.Base(of.Dir)}, opt))
				states++
				switch truth := state.Truth(of, trial.Saves); {
				case said.result.Verdict == epoch.Converged || said.result.OK() || said.result.Frontier.OK:
					confirmed++
					require.Equal(t, ckptsim.Whole, truth, "%d steps of %d, crash %d, epoch %d:\n%s%s", steps, trial.Steps(), crash, of.Epoch, state, said)
				case state.Finished(of, trial.Saves) && slices.Contains([]string{"hf_trainer", "megatron_dist", "torchtitan", "orbax", "lightning"}, job.Format):
					require.Fail(t, "finished, and not confirmed", "%d steps of %d, crash %d, epoch %d:\n%s%s\n%s", steps, trial.Steps(), crash, of.Epoch, state, said, said.result.Why)
				}
			}
		}
	}
	t.Logf("%s: %d folders, %d confirmed", job.Name, states, confirmed)
}

// Megatron's iteration, given as a folder, is held against what Megatron adds to DCP, whatever it is called.
func TestIterationOfMegatronOfItsOwn(t *testing.T) {
	dir := saves(t, integrityJob, 100, 200)
	save := func(n string) string { return filepath.Join(dir, "iter_0000"+n) }
	r := judgeDir(t, save("200"))
	require.True(t, r.OK(), r.Why)
	require.EqualValues(t, 200, r.Epoch.V)
	require.Equal(t, ckpt.FormatMegatronDist, r.Judged.Format)

	overwrite(t, filepath.Join(save("200"), "__1_0.distcp"), contents(t, filepath.Join(save("100"), "__1_0.distcp")))
	r = gate(t, os.DirFS(save("200")), true)
	require.False(t, r.OK())
	require.Contains(t, problems(r), "got a SHA-256 of ")

	for _, file := range []string{"integrity.json", "metadata.json"} {
		require.NoError(t, os.Remove(filepath.Join(save("100"), file)))
	}
	for name, r := range map[string]bool{"named": judgeDir(t, save("100")).OK(), "unnamed": gate(t, os.DirFS(save("100")), false).OK()} {
		require.False(t, r, name)
	}
	plain := saves(t, "torchtitan", 100)
	require.Equal(t, ckpt.FormatDCP, judgeDir(t, filepath.Join(plain, "step-100")).Judged.Format)
}

// A model in safetensors among state of a job is the save of a job, of which nothing says that it is finished.
func TestSafetensorsAmongStateOfAJob(t *testing.T) {
	for _, name := range []string{
		"optimizer.bin", "optimizer.pt", "random_states_0.pkl", "scheduler.bin", "x.pth", "c.safetensors.tmp", "c.safetensors.tmp-7",
		"optimizer/optimizer.safetensors", "ema/model.safetensors", "a/b/c/d/e", "pytorch_model.bin.index.json", "latest", "optimizer",
	} {
		fsys := shards(20)
		fsys[name] = &fstest.MapFile{Data: []byte("x")}
		r, ok := safe(t, fsys, ckpt.Options{})
		require.False(t, ok, name)
		require.False(t, r.Frontier.OK, name)
		require.NotEmpty(t, r.Why, name)
	}
	fsys := shards(20)
	for _, name := range []string{
		"config.json", "generation_config.json", "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json",
		"vocab.json", "merges.txt", "README.md", "LICENSE", ".gitattributes", "chat_template.jinja", "modeling_x.py", "scheduler_config.json",
		"optimizer.py", ".cache/huggingface/download/x.tmp", "assets/picture.png", "1_Pooling/config.json",
	} {
		fsys[name] = &fstest.MapFile{Data: []byte("{}")}
	}
	r, ok := safe(t, fsys, ckpt.Options{})
	require.True(t, ok, r.Why)
	require.EqualValues(t, 20, r.Frontier.V)
}

// A save of the Trainer that was cut off lacks what comes last, and is told so by what came before or by
// the name of its folder.
func TestSaveOfTheTrainerCutOff(t *testing.T) {
	dir := filepath.Join(saves(t, "hf trainer, one process", 100), "checkpoint-100")
	require.True(t, judgeDir(t, dir).OK())
	require.NoError(t, os.Remove(filepath.Join(dir, "trainer_state.json")))
	r := gate(t, os.DirFS(dir), false)
	require.False(t, r.OK())
	require.Contains(t, r.Why, "trainer_state.json, which is absent")
	for _, file := range []string{"rng_state.pth", "scheduler.pt", "optimizer.pt"} {
		require.NoError(t, os.Remove(filepath.Join(dir, file)))
		r := judgeDir(t, dir)
		require.False(t, r.OK(), file)
		require.False(t, r.Frontier.OK, file)
		require.Contains(t, told(r), "got no such file; want it", file)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "training_args.bin")))
	r = judgeDir(t, dir)
	require.False(t, r.OK())
	require.Contains(t, told(r), "got no such file; want it", "a Trainer that was cut off after its model leaves the same")
	t.Chdir(dir)
	require.False(t, judgeDir(t, ".").OK(), "its name is known where it is not written")
}

// One shard alone says of how many it is one, however its name is written.
func TestOneShardOfSeveral(t *testing.T) {
	for _, name := range []string{"model-00001-of-00004", "model_00001-of-00004", "model1-of-4", "x.1-of-4.fp16", "model-1-of-99999999999999999999", "model-1-of-0"} {
		r, ok := safe(t, fstest.MapFS{name + ".safetensors": weightsOf(step(20), "v")}, ckpt.Options{})
		require.False(t, ok, name)
		require.Contains(t, told(r), "got no index", name)
	}
	r, ok := safe(t, fstest.MapFS{"wheel-of-4.safetensors": weightsOf(step(20), "v")}, ckpt.Options{})
	require.True(t, ok, r.Why)
}

// badSector has one file that opens and can not be read.
type badSector struct {
	fs.FS
	name string
}

func (b badSector) Open(name string) (fs.File, error) {
	f, err := b.FS.Open(name)
	if err == nil && name == b.name {
		f = unreadableFile{f}
	}
	return f, err
}

type unreadableFile struct{ fs.File }

func (unreadableFile) ReadAt([]byte, int64) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: "x", Err: syscall.EIO}
}

// A disk that fails does not say that a document is torn.
func TestDocumentOnADiskThatFails(t *testing.T) {
	dir := saves(t, "hf trainer, one process", 100)
	r := gate(t, badSector{os.DirFS(dir), "checkpoint-100/trainer_state.json"}, false)
	require.False(t, r.OK())
	require.Contains(t, told(r), syscall.EIO.Error())
	for _, p := range r.Judged.Problems {
		require.Equal(t, ckpt.CheckInput, p.Check, p)
	}
}

// An iteration of an older Megatron has its number in common.pt alone.
func TestIterationOfAnOlderMegatron(t *testing.T) {
	dir := filepath.Join(saves(t, "lightning, FSDP", 100), "epoch=0-step=100.ckpt") // DCP that says no step
	r := judgeDir(t, dir)
	require.True(t, r.OK(), r.Why)
	meta := filepath.Join(dir, "meta.pt")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "metadata.json"), []byte(`{"sharded_backend": "torch_dist"}`), 0o600))
	require.NoError(t, os.Remove(meta))
	r = judgeDir(t, dir)
	require.False(t, r.OK())
	require.Equal(t, ckpt.FormatMegatronDist, r.Judged.Format)
	require.Contains(t, r.Why, "common, which is absent")
}
