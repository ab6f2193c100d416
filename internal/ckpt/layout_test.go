// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// table is a dict of Python: its values are int, string, nil, []any or table.
type table map[string]any

// pickleValue writes a value in protocol 2.
func pickleValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "N"
	case int:
		return pickleInt(int64(v))
	case string:
		return pickleText(v)
	case []any:
		out := "]("
		for _, item := range v {
			out += pickleValue(item)
		}
		return out + "e"
	case table:
		out := "}("
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out += pickleText(key) + pickleValue(v[key])
		}
		return out + "u"
	}
	panic(fmt.Sprintf("pickle %T", v))
}

// torchSaved is a file of torch.save.
func torchSaved(t *testing.T, v any) *fstest.MapFile {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateHeader(&zip.FileHeader{Name: "archive/data.pkl"})
	require.NoError(t, err)
	_, err = w.Write([]byte("\x80\x02" + pickleValue(v) + "."))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return &fstest.MapFile{Data: b.Bytes(), ModTime: time.Unix(98, 0)}
}

// optimizerAt is the state of an optimizer after some steps.
func optimizerAt(t *testing.T, steps int) *fstest.MapFile {
	t.Helper()
	return torchSaved(t, table{"state": table{"0": table{"step": steps}}, "param_groups": []any{table{"lr": 1}}})
}

func document(s string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(s), ModTime: time.Unix(98, 0)}
}

// torn cuts a file off.
func torn(f *fstest.MapFile) *fstest.MapFile {
	return &fstest.MapFile{Data: f.Data[:len(f.Data)/2], ModTime: f.ModTime}
}

// change is what becomes of a folder that was whole, and what is said of it then.
type change struct {
	do      func(f fstest.MapFS)
	world   int64
	want    bool                  // a resume is safe
	epoch   int64                 // that is judged
	newest  model.Optional[int64] // that is safe
	text    string                // in the reason or a problem
	verdict epoch.Verdict         // where it matters
}

// changes judges a whole folder, and what becomes of it.
func changes(t *testing.T, whole func(t *testing.T) fstest.MapFS, format ckpt.Format, newest int64, cases map[string]change) {
	t.Helper()
	r, ok := safe(t, whole(t), ckpt.Options{})
	require.True(t, ok, "whole: %s\n%s", r.Why, told(r))
	require.Equal(t, newest, r.Epoch.V, "whole")
	require.Equal(t, format, r.Judged.Format, "whole")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fsys := whole(t)
			tc.do(fsys)
			r, ok := safe(t, fsys, ckpt.Options{WorldSize: tc.world})
			said := r.Why + "\n" + told(r)
			for _, p := range r.Problems {
				said += p.What + "\n"
			}
			require.Equal(t, tc.want, ok, said)
			require.Equal(t, tc.epoch, r.Epoch.V, said)
			require.Equal(t, tc.newest, r.Frontier, said)
			require.Contains(t, said, tc.text)
			if tc.verdict != "" {
				require.Equal(t, tc.verdict, r.Verdict, said)
			}
		})
	}
}

// without is a change that takes files away: all that begin so.
func without(prefixes ...string) func(fstest.MapFS) {
	return func(f fstest.MapFS) {
		for _, p := range prefixes {
			found := false
			for name := range f {
				if strings.HasPrefix(name, p) {
					delete(f, name)
					found = true
				}
			}
			if !found {
				panic("got no file " + p)
			}
		}
	}
}

// cut is a change that cuts files off.
func cut(names ...string) func(fstest.MapFS) {
	return func(f fstest.MapFS) {
		for _, name := range names {
			f[name] = torn(f[name])
		}
	}
}

// put is a change that writes a file.
func put(name string, file *fstest.MapFile) func(fstest.MapFS) {
	return func(f fstest.MapFS) { f[name] = file }
}

// all does several changes.
func all(dos ...func(fstest.MapFS)) func(fstest.MapFS) {
	return func(f fstest.MapFS) {
		for _, do := range dos {
			do(f)
		}
	}
}

func at(n int64) model.Optional[int64] { return model.Some(n) }

// dcpIn writes a save of DCP by two ranks into a folder: items that begin with the names given.
func dcpIn(f fstest.MapFS, dir string, names ...string) {
	var items []item
	for r := range 2 {
		file := fmt.Sprintf("__%d_0.distcp", r)
		for k := range names {
			items = append(items, item{file, int64(k) * 100, 100})
		}
		f[dir+"/"+file] = shard(100 * len(names))
	}
	f[dir+"/.metadata"] = fqns(names, items)
}

// fqns is a .metadata whose items are called by names, in turn.
func fqns(names []string, items []item) *fstest.MapFile {
	called := make([]string, len(items))
	for i := range items {
		called[i] = fmt.Sprintf("%s.%d", names[i%len(names)], i/len(names))
	}
	return metadataOf(called, items)
}

// metadataOf is a .metadata with the name of each item.
func metadataOf(fqns []string, items []item) *fstest.MapFile {
	const module = "torch.distributed.checkpoint."
	var b strings.Builder
	b.WriteString("\x80\x02c" + module + "metadata\nMetadata\n)\x81}(" + pickleText("storage_data") + "}(")
	for i, it := range items {
		b.WriteString("c" + module + "metadata\nMetadataIndex\n)\x81}(" + pickleText("fqn") + pickleText(fqns[i]) + "ub")
		b.WriteString("c" + module + "filesystem\n_StorageInfo\n)\x81}(" + pickleText("relative_path") + pickleText(it.file) +
			pickleText("offset") + pickleInt(it.offset) + pickleText("length") + pickleInt(it.length) + "ub")
	}
	b.WriteString("u" + pickleText("state_dict_metadata") + "}(")
	for i := range items {
		b.WriteString(pickleText(fqns[i]) + "c" + module + "metadata\nBytesStorageMetadata\n)\x81")
	}
	b.WriteString("uub.")
	return &fstest.MapFile{Data: []byte(b.String()), ModTime: time.Unix(100, 0)}
}

func lfsPointer(size string) *fstest.MapFile {
	return document("version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("ab", 32) + "\nsize " + size + "\n")
}

// A pointer of git-lfs is named, with the size of the file that it stands for, and is no file of the save.
func TestPointersOfGitLFS(t *testing.T) {
	for name, tc := range map[string]struct{ job, file, size, want string }{
		"safetensors":   {"hf trainer, one process", "checkpoint-200/model.safetensors", "4976698672", "of 5.0 GB); want the file itself: run git lfs pull"},
		"an optimizer":  {"hf trainer, one process", "checkpoint-200/optimizer.pt", "999", "of 999 bytes)"},
		"an index":      {"hf trainer, sharded model", "checkpoint-200/model.safetensors.index.json", "23456", "of 23.5 kB)"},
		".metadata":     {"torchtitan", "step-200/.metadata", "1200000", "of 1.2 MB)"},
		"a shard":       {"torchtitan", "step-200/__1_0.distcp", "5000000000000", "of 5.0 TB)"},
		"DeepSpeed":     {"deepspeed, ZeRO 1", "global_step200/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt", "x", "of an unknown size)"},
		"last.ckpt":     {"lightning, last.ckpt", "last.ckpt", "77", "of 77 bytes)"},
		"Megatron's":    {"megatron, legacy", "iter_0000200/mp_rank_00_000/model_optim_rng.pt", "1", "of 1 bytes)"},
		"metadata.json": {"megatron, torch_dist", "iter_0000200/metadata.json", "1000", "of 1.0 kB)"},
		"Orbax's array": {"orbax", "200/state/manifest.ocdbt", "1000", "a pointer of git-lfs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := saves(t, tc.job, 100, 200)
			if tc.job == "lightning, last.ckpt" {
				dir = saves(t, tc.job, 200)
			}
			file := filepath.Join(dir, filepath.FromSlash(tc.file))
			require.FileExists(t, file)
			require.NoError(t, os.WriteFile(file, lfsPointer(tc.size).Data, 0o600))
			r := judgeDir(t, dir)
			require.False(t, r.OK())
			require.Contains(t, told(r), tc.want)
		})
	}
	for name, data := range map[string]string{
		"text that only begins so": "version https://git-lfs.github.com", "another": "version 1\n",
		"too long": "version https://git-lfs.github.com/spec/v1\n" + strings.Repeat("x", 1024),
	} {
		fsys := fstest.MapFS{"model.safetensors": document(data)}
		r, ok := safe(t, fsys, ckpt.Options{})
		require.False(t, ok, name)
		require.NotContains(t, told(r), "git-lfs", name)
	}
}

// A copy of a tag in DeepSpeed's universal form lies beside it, and is no tag.
func TestUniversalCopiesOfDeepSpeed(t *testing.T) {
	dir := saves(t, "deepspeed, ZeRO 1", 100, 200)
	universal := filepath.Join(dir, "global_step200_universal")
	require.NoError(t, os.MkdirAll(filepath.Join(universal, "zero", "w"), 0o700))
	model, err := os.ReadFile(filepath.Join(dir, "global_step200", "mp_rank_00_model_states.pt"))
	require.NoError(t, err)
	for _, name := range []string{"mp_rank_00_model_states.pt", "zero/w/fp32.pt", "zero/w/exp_avg.pt"} {
		require.NoError(t, os.WriteFile(filepath.Join(universal, name), model, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "latest_universal"), []byte("global_step200_universal"), 0o600))
	r := judgeDir(t, dir)
	require.True(t, r.OK(), r.Why)
	require.EqualValues(t, 200, r.Epoch.V)
	require.Len(t, r.Saves, 2)

	rename := func(from, to string) { require.NoError(t, os.Rename(filepath.Join(dir, from), filepath.Join(dir, to))) }
	rename("global_step200_universal", "converted")
	require.True(t, judgeDir(t, dir).OK(), "whatever it is called")
	rename("global_step200", "away")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "away")))
	require.False(t, judgeDir(t, dir).OK(), "it stands in for no tag")

	save := saves(t, "deepspeed, ZeRO 1", 100)
	require.NoError(t, os.Rename(filepath.Join(dir, "converted", "zero"), filepath.Join(save, "global_step100", "zero")))
	require.True(t, judgeDir(t, save).OK(), "a tag with shards is one, whatever else lies in it")
}
