// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

const wait = "if the job still writes it, wait and run this again; "

// Each refusal of a save that is torn or mixed ends with what to do.
func TestNext(t *testing.T) {
	for name, tc := range map[string]struct {
		make    func(t *testing.T, f fstest.MapFS)
		verdict epoch.Verdict
		next    string
	}{
		"DeepSpeed, cut off": {func(t *testing.T, f fstest.MapFS) {
			t.Helper()
			deepspeed(t, f, "global_step100", 100, 0, 1)
			deepspeed(t, f, "global_step200", 200, 0)
			f["latest"] = text("global_step200")
		}, epoch.Converging, wait + `else resume from epoch 100 with load_checkpoint(DIR, tag="global_step100")`},
		"DeepSpeed, mixed": {func(t *testing.T, f fstest.MapFS) {
			t.Helper()
			deepspeed(t, f, "global_step100", 100, 0, 1)
			deepspeed(t, f, "global_step200", 200, 0, 1)
			f["latest"] = text("global_step200")
			f["global_step200/mp_rank_00_model_states.pt"] = f["global_step100/mp_rank_00_model_states.pt"]
		}, epoch.MixedEpoch, `resume from epoch 100 with load_checkpoint(DIR, tag="global_step100")`},
		"the Trainer, cut off": {func(t *testing.T, f fstest.MapFS) {
			t.Helper()
			hf(t, f, 100)
			hf(t, f, 200)
			delete(f, "checkpoint-200/scheduler.pt")
		}, epoch.Converging, wait + `else resume from epoch 100 with resume_from_checkpoint="checkpoint-100"`},
		"Megatron, cut off": {func(t *testing.T, f fstest.MapFS) {
			t.Helper()
			megatron(t, f, 100)
			megatron(t, f, 200)
			f["latest_checkpointed_iteration.txt"] = text("200")
			f["iter_0000200/mp_rank_01/model_optim_rng.pt"] = text("")
		}, epoch.Converging, wait + "else resume from epoch 100 with --ckpt-step 100"},
		"torchtitan, cut off": {func(t *testing.T, f fstest.MapFS) {
			t.Helper()
			titan(f, 100, true)
			titan(f, 200, true)
			delete(f, "step-200/__1_0.distcp")
		}, epoch.Converging, wait + "else resume from epoch 100 with --checkpoint.load_step 100"},
		"nothing else": {func(t *testing.T, f fstest.MapFS) {
			t.Helper()
			hf(t, f, 200)
			delete(f, "checkpoint-200/scheduler.pt")
		}, epoch.Converging, wait + "no other save is confirmed: restore one from elsewhere, or start a new job"},
		"only times": {func(t *testing.T, f fstest.MapFS) {
			t.Helper()
			titan(f, 100, true)
			f["step-100/__1_0.distcp"].ModTime = f["step-100/.metadata"].ModTime.Add(time.Hour)
		}, epoch.Converging, "only modification times say so: if the files were copied, run this again with --ignore-times; " +
			"no other save is confirmed: restore one from elsewhere, or start a new job"},
		"whole": {func(t *testing.T, f fstest.MapFS) { t.Helper(); hf(t, f, 100) }, epoch.Converged, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := fstest.MapFS{}
			tc.make(t, f)
			r := judge(t, loader, f)
			require.Equal(t, tc.verdict, r.Verdict, r.Why)
			require.Equal(t, tc.next, r.Next, r.Why)
		})
	}
	a, b := fstest.MapFS{}, fstest.MapFS{}
	for _, f := range []fstest.MapFS{a, b} {
		hf(t, f, 100)
	}
	hf(t, b, 200)
	r := judge(t, loader, a, b)
	require.Equal(t, epoch.MixedEpoch, r.Verdict)
	require.Equal(t, `have all resume from epoch 100 with resume_from_checkpoint="checkpoint-100"`, r.Next)
}

// A pointer that names no save is named, with what it has, what is accepted and what to do.
func TestPointersThatLeadNowhere(t *testing.T) {
	tags := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := fstest.MapFS{}
		deepspeed(t, f, "global_step100", 100, 0, 1)
		return f
	}
	iterations := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := fstest.MapFS{}
		megatron(t, f, 100)
		return f
	}
	files := func(t *testing.T) fstest.MapFS {
		t.Helper()
		return fstest.MapFS{"epoch=0-step=100.ckpt": lightningCkpt(t, 100, pair{"optimizer_states", []any{1}})}
	}
	const (
		tag       = "want one line with the name of a tag that is there"
		iteration = "want one line with the number of a save that is there"
		byTag     = `resume from epoch 100 with load_checkpoint(DIR, tag="global_step100")`
		byStep    = "resume from epoch 100 with --ckpt-step 100"
		byFile    = `resume from epoch 100 with ckpt_path="epoch=0-step=100.ckpt"`
		tracker   = "latest_checkpointed_iteration.txt"
	)
	link := &fstest.MapFile{Data: []byte("nowhere"), Mode: fs.ModeSymlink | 0o777}
	cut := func(t *testing.T) *fstest.MapFile {
		t.Helper()
		whole := lightningCkpt(t, 200).Data
		return &fstest.MapFile{Data: whole[:len(whole)/2]}
	}
	for name, tc := range map[string]struct {
		make  func(*testing.T) fstest.MapFS
		file  string
		is    *fstest.MapFile
		why   string
		next  string
		epoch int64
	}{
		"no latest":                {tags, "latest", nil, "latest is not there; " + tag, byTag, 0},
		"an empty latest":          {tags, "latest", text(" \n"), "latest is empty; " + tag, byTag, 0},
		"a latest of no tag":       {tags, "latest", text("best"), `latest holds "best"; ` + tag, byTag, 0},
		"a latest of a step":       {tags, "latest", text("global_step300"), `latest names "global_step300", which is not there; ` + tag, byTag, 300},
		"a latest that leads away": {tags, "latest", link, `latest is a link to "nowhere", which is not there; ` + tag, byTag, 0},

		"no tracker":                {iterations, tracker, nil, tracker + " is not there; " + iteration, byStep, 0},
		"an empty tracker":          {iterations, tracker, text(""), tracker + " is empty; " + iteration, byStep, 0},
		"a tracker of words":        {iterations, tracker, text("iter_0000100"), tracker + ` holds "iter_0000100"; ` + iteration, byStep, 0},
		"a tracker of a step":       {iterations, tracker, text("300"), tracker + ` names "300", which is not there; ` + iteration, byStep, 300},
		"a tracker that leads away": {iterations, tracker, link, tracker + ` is a link to "nowhere", which is not there; ` + iteration, byStep, 0},

		"an empty last.ckpt": {files, "last.ckpt", text(""), "last.ckpt: got 0 bytes; want at least 1", byFile, 0},
		"a last.ckpt that is cut": {
			files, "last.ckpt", cut(t), "last.ckpt: got no end of a zip file; want one: the file is torn, or was not written by torch.save", byFile, 0,
		},
		"a last.ckpt that leads away": {files, "last.ckpt", link, `last.ckpt: got a link to "nowhere", which is not there; want the file`, byFile, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.make(t)
			if tc.is != nil {
				f[tc.file] = tc.is
			}
			r := judge(t, loader, f)
			require.False(t, r.OK())
			want := tc.why
			if tc.file != "last.ckpt" {
				want = "a resume would find no save: " + want
			}
			require.Equal(t, want, r.Why)
			require.Equal(t, tc.next, r.Next)
			require.Equal(t, tc.file, r.By)
			require.Equal(t, tc.epoch, r.Epoch.V)
		})
	}
}

// Where a save is whole and a resume would take another, the answer says how to have the whole one taken.
func TestNext_AnotherSaveWouldBeTaken(t *testing.T) {
	two := func(of func(*testing.T, fstest.MapFS, int)) fstest.MapFS {
		f := fstest.MapFS{}
		of(t, f, 100)
		of(t, f, 200)
		return f
	}
	pointed := func(of func(*testing.T, fstest.MapFS, int), name, to string) fstest.MapFS {
		f := two(of)
		f[name] = text(to)
		return f
	}
	tag := func(t *testing.T, f fstest.MapFS, step int) {
		t.Helper()
		deepspeed(t, f, fmt.Sprintf("global_step%d", step), step, 0, 1)
	}
	steps := func(_ *testing.T, f fstest.MapFS, step int) { titan(f, int64(step), true) }
	padded := fstest.MapFS{}
	for name, file := range two(steps) {
		padded[strings.Replace(name, "step-200/", "step-0200/", 1)] = file
	}
	for name, tc := range map[string]struct {
		f     fstest.MapFS
		epoch int64 // asked for; 0 for none
		next  string
	}{
		"the Trainer":                       {two(hf), 100, `to resume from epoch 100, use resume_from_checkpoint="checkpoint-100"`},
		"DeepSpeed":                         {pointed(tag, "latest", "global_step200"), 100, `use load_checkpoint(DIR, tag="global_step100")`},
		"torchtitan":                        {two(steps), 100, "to resume from epoch 100, use --checkpoint.load_step 100"},
		"torchtitan, under a name of zeros": {padded, 0, `give "step-0200" the name "step-200"`},
		"the one that is taken":             {two(hf), 200, ""},
	} {
		r := judge(t, model.Optional[int64]{V: tc.epoch, OK: tc.epoch > 0}, tc.f)
		require.Equal(t, tc.next == "", r.OK(), "%s: %s", name, r.Why)
		require.Contains(t, r.Next, tc.next, name)
		require.Equal(t, tc.next == "", r.Next == "", name)
	}
}

// Folders of several jobs hold no parts of one save.
func TestJudge_FoldersOfSeveralFrameworks(t *testing.T) {
	trainer, other, tags, steps := fstest.MapFS{}, fstest.MapFS{}, fstest.MapFS{}, fstest.MapFS{}
	hf(t, trainer, 200)
	hf(t, other, 200)
	deepspeed(t, tags, "global_step200", 200, 0, 1)
	tags["latest"] = text("global_step200")
	titan(steps, 200, true)
	for name, tc := range map[string]struct {
		roots []fstest.MapFS
		want  bool
	}{
		"the Trainer and DeepSpeed":  {[]fstest.MapFS{trainer, tags}, false},
		"DeepSpeed and torchtitan":   {[]fstest.MapFS{tags, steps}, false},
		"two and one of another":     {[]fstest.MapFS{trainer, other, steps}, false},
		"two disks of the Trainer's": {[]fstest.MapFS{trainer, other}, true},
		"one of them":                {[]fstest.MapFS{trainer}, true},
	} {
		r := judge(t, model.Optional[int64]{}, tc.roots...)
		require.Equal(t, tc.want, r.OK(), "%s: %s", name, r.Why)
		require.Equal(t, tc.want, r.Frontier.OK, name)
		if !tc.want {
			require.Contains(t, r.Why, "are of several frameworks", name)
			require.Contains(t, r.Why, "node-0", name)
			require.Contains(t, r.Why, "give only folders of one job", name)
		}
	}
}
