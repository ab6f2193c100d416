// SPDX-License-Identifier: Apache-2.0

//go:build unix

package ckpt_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// tree is a folder with the file "data" in "real", and links by name.
func tree(t *testing.T, folder string, links map[string]string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "real"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "real", "data"), []byte("inside"), 0o600))
	for name, to := range links {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700))
		require.NoError(t, os.Symlink(to, filepath.Join(folder, name)))
	}
}

// A link is followed where it leads back into the folder, however it is written, and nowhere else.
func TestDirOpen_LinksWithinTheFolder(t *testing.T) {
	outer := t.TempDir()
	folder := filepath.Join(outer, "run")
	require.NoError(t, os.WriteFile(filepath.Join(outer, "secret"), []byte("outside"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(outer, "run2"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(outer, "run2", "data"), []byte("outside"), 0o600))
	require.NoError(t, os.Symlink("run", filepath.Join(outer, "alias")))
	abs := func(name string) string { return filepath.Join(folder, name) }
	tree(t, folder, map[string]string{
		"relative": "real/data", "absolute": abs("real/data"), "to-folder": abs("real"), "chain": abs("to-folder"),
		"above": "../run/real/data", "through-alias": filepath.Join(outer, "alias", "real", "data"), "sub/up": "../../run/real/data",
		"self": abs("."), "loop": abs("loop"), "ping": abs("pong"), "pong": abs("ping"), "gone": abs("real/none"),
		"out": filepath.Join(outer, "secret"), "out-above": "../secret", "like": filepath.Join(outer, "run2", "data"), "root": "/",
		"climb": abs("real/../../secret"),
	})
	for _, given := range []string{folder, filepath.Join(outer, "alias")} {
		d, err := ckpt.OpenDir(given)
		require.NoError(t, err)
		for name, want := range map[string]string{
			"relative": "", "absolute": "", "through-alias": "", "to-folder/data": "", "chain/data": "", "above": "", "sub/up": "", "self/real/data": "", "self/self/absolute": "",
			"loop": "loop of links", "ping": "loop of links", "gone": "no such file", "none": "no such file",
			"out": "outside of the folder", "out-above": `got a link to "../secret"`, "like": "outside of the folder", "root/etc": "outside of the folder",
			"climb": "outside of the folder",
		} {
			f, err := d.Open(name)
			if want != "" {
				require.ErrorContains(t, err, want, "%s of %s", name, given)
				_, err = fs.Stat(d, name)
				require.ErrorContains(t, err, want, "%s of %s", name, given)
				continue
			}
			require.NoError(t, err, "%s of %s", name, given)
			text, err := io.ReadAll(f)
			require.NoError(t, err)
			require.Equal(t, "inside", string(text), name)
			require.NoError(t, f.Close())
			info, err := fs.Stat(d, name)
			require.NoError(t, err)
			require.EqualValues(t, 6, info.Size(), name)
		}
		require.NoError(t, d.Close())
	}
}

// A snapshot in a cache of the hub has links to the blobs of its repository, and those alone lead out of it.
func TestDirOpen_SnapshotOfTheHub(t *testing.T) {
	for name, tc := range map[string]struct {
		repo, link, want string
	}{
		"a model":             {"models--org--name", "../../blobs/abc", ""},
		"a model, absolute":   {"models--org--name", "ABS/blobs/abc", ""},
		"a data set":          {"datasets--org--name", "../../blobs/abc", ""},
		"beside the blobs":    {"models--org--name", "../../refs/main", "outside of the folder"},
		"another repository":  {"models--org--name", "../../../models--org--other/blobs/abc", "outside of the folder"},
		"up from the blobs":   {"models--org--name", "../../blobs/../refs/main", "outside of the folder"},
		"no cache of the hub": {"org", "../../blobs/abc", "outside of the folder"},
	} {
		t.Run(name, func(t *testing.T) {
			cache := t.TempDir()
			repo := filepath.Join(cache, tc.repo)
			for _, file := range []string{filepath.Join(repo, "blobs", "abc"), filepath.Join(repo, "refs", "main"), filepath.Join(cache, "models--org--other", "blobs", "abc")} {
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
				require.NoError(t, os.WriteFile(file, []byte("blob"), 0o600))
			}
			snapshot := filepath.Join(repo, "snapshots", "rev")
			require.NoError(t, os.MkdirAll(snapshot, 0o700))
			link := tc.link
			if len(link) > 3 && link[:3] == "ABS" {
				link = repo + link[3:]
			}
			require.NoError(t, os.Symlink(link, filepath.Join(snapshot, "model.safetensors")))
			d, err := ckpt.OpenDir(snapshot)
			require.NoError(t, err)
			defer func() { require.NoError(t, d.Close()) }()
			f, err := d.Open("model.safetensors")
			if tc.want != "" {
				require.ErrorContains(t, err, tc.want)
				return
			}
			require.NoError(t, err)
			require.NoError(t, f.Close())
		})
	}
}

// No link in the blobs leads out of them, nor does a link that is called blobs.
func TestDirOpen_LinkInBlobsOfTheHub(t *testing.T) {
	for name, links := range map[string]map[string]string{
		"a blob, out of the repository": {"repo/blobs/abc": "../../secret/data"},
		"a blob, absolute":              {"repo/blobs/abc": "ABS/secret/data"},
		"a blob, in the repository":     {"repo/blobs/abc": "../refs/data"},
		"a blob, two links":             {"repo/blobs/abc": "def", "repo/blobs/def": "../../secret/data"},
		"a folder of blobs":             {"repo/blobs/sub": "../../secret", "rev/model": "../../blobs/sub/data"},
		"blobs, out of the repository":  {"repo/blobs": "../secret", "rev/model": "../../blobs/data"},
		"blobs, absolute":               {"repo/blobs": "ABS/secret", "rev/model": "../../blobs/data"},
		"blobs, in the repository":      {"repo/blobs": "refs", "rev/model": "../../blobs/data"},
		"the hub's cache, no blobs":     {"rev/model": "../../../secret/data"},
	} {
		t.Run(name, func(t *testing.T) {
			cache := t.TempDir()
			repo := filepath.Join(cache, "models--org--name")
			for _, dir := range []string{filepath.Join(cache, "secret"), filepath.Join(repo, "refs")} {
				require.NoError(t, os.MkdirAll(dir, 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "data"), []byte("outside"), 0o600))
			}
			snapshot := filepath.Join(repo, "snapshots", "rev")
			if links["rev/model"] == "" {
				links["rev/model"] = "../../blobs/abc"
			}
			for at, to := range links {
				path := strings.NewReplacer("repo", repo, "rev", snapshot).Replace(at)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.Symlink(strings.Replace(to, "ABS", cache, 1), path))
			}
			d, err := ckpt.OpenDir(snapshot)
			require.NoError(t, err)
			defer func() { require.NoError(t, d.Close()) }()
			_, err = d.Open("model")
			require.Error(t, err)
			_, err = fs.Stat(d, "model")
			require.Error(t, err)
		})
	}
}

// A model in a snapshot of the hub is read through its links.
func TestRead_SnapshotOfTheHub(t *testing.T) {
	repo := filepath.Join(t.TempDir(), "models--org--name")
	snapshot := filepath.Join(repo, "snapshots", "rev")
	require.NoError(t, os.MkdirAll(snapshot, 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(repo, "blobs"), 0o700))
	for name, file := range shards(20) {
		require.NoError(t, os.WriteFile(filepath.Join(repo, "blobs", "of-"+name), file.Data, 0o600))
		require.NoError(t, os.Chtimes(filepath.Join(repo, "blobs", "of-"+name), file.ModTime, file.ModTime))
		require.NoError(t, os.Symlink("../../blobs/of-"+name, filepath.Join(snapshot, name)))
	}
	r := judgeDir(t, snapshot)
	require.True(t, r.OK(), r.Why+told(r))
	require.EqualValues(t, 20, r.Epoch.V)
	require.NoError(t, os.Remove(filepath.Join(repo, "blobs", "of-a.safetensors")))
	r = judgeDir(t, snapshot)
	require.False(t, r.OK())
	require.Contains(t, told(r), "which is not there; want the file")
}

// Lightning's last.ckpt may be a link to the newest save, by its absolute path.
func TestLastCheckpoint_AbsoluteLink(t *testing.T) {
	dir := saves(t, "lightning, last.ckpt", 100)
	require.NoError(t, os.Rename(filepath.Join(dir, "last.ckpt"), filepath.Join(dir, "epoch=1-step=100.ckpt")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "epoch=1-step=100.ckpt"), filepath.Join(dir, "last.ckpt")))
	r := judgeDir(t, dir)
	require.True(t, r.OK(), "%s\n%s", r.Why, told(r))
	require.EqualValues(t, 100, r.Epoch.V)
	away := filepath.Join(t.TempDir(), "away.ckpt")
	require.NoError(t, os.Rename(filepath.Join(dir, "epoch=1-step=100.ckpt"), away))
	require.NoError(t, os.Remove(filepath.Join(dir, "last.ckpt")))
	require.NoError(t, os.Symlink(away, filepath.Join(dir, "last.ckpt")))
	r = judgeDir(t, dir)
	require.False(t, r.OK())
	require.Contains(t, told(r), away)
	require.Contains(t, r.Why, "last.ckpt could not be read: got a link to "+strconv.Quote(away))
}

// Of a save that is a link out of the folder, the link is the reason.
func TestSave_LinkOutOfTheFolder(t *testing.T) {
	for job, save := range map[string]string{
		"torchtitan": "step-200", "hf trainer, one process": "checkpoint-200", "megatron, torch_dist": "iter_0000200", "orbax": "200",
		"deepspeed, ZeRO 1": "global_step200",
	} {
		dir, outside := saves(t, job, 100, 200), filepath.Join(t.TempDir(), "away")
		require.NoError(t, os.Rename(filepath.Join(dir, save), outside))
		require.NoError(t, os.Symlink(outside, filepath.Join(dir, save)))
		r := judgeDir(t, dir)
		require.False(t, r.OK(), job)
		require.Contains(t, r.Why, save+" could not be read: got a link to "+strconv.Quote(outside), job)
	}
}

// Links between folders of a save that lead back to each other cost no more than the folders.
func TestRead_LinksThatLeadBack(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"levanter":   {"step-7/metadata.json": `{"step": 7, "timestamp": "2026"}`, "step-7/model/w/.zarray": "{}"},
		"nanotron":   {"7/checkpoint_metadata.json": `{"metas": {"last_train_step": 7}}`, "7/model/w/model_weight.safetensors": "x"},
		"accelerate": {"checkpoint_7/random_states_0.pkl": "x", "checkpoint_7/unet/a.safetensors": "x"},
		"verl":       {"global_step_7/actor/fsdp_config.json": "{}", "latest_checkpointed_iteration.txt": "7"},
		"olmo":       {"step7/.metadata.json": "{}", "step7/train/rank0.pt": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range files {
				path := filepath.Join(dir, filepath.FromSlash(file))
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				for i := range 3 {
					if err == nil && d.IsDir() && path != dir {
						err = os.Symlink(filepath.Dir(path), filepath.Join(path, string(rune('x'+i))))
					}
				}
				return err
			}))
			d, err := ckpt.OpenDir(dir)
			require.NoError(t, err)
			defer func() { require.NoError(t, d.Close()) }()
			root := ckpt.Read(t.Context(), d, ckpt.Options{})
			require.NotEmpty(t, root.Saves)
			require.Less(t, root.Counts.Folders, int64(1000))
		})
	}
}
