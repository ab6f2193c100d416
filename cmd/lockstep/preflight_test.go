// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckptsim"
)

// megatronSave makes a folder of Megatron's with one save of two tensor-parallel ranks, each
// with a file that PyTorch wrote, and a tracker.
func megatronSave(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	file, err := os.ReadFile("../../internal/torchsave/testdata/megatron.pt")
	require.NoError(t, err)
	for _, rank := range []string{"mp_rank_00", "mp_rank_01"} {
		sub := filepath.Join(dir, "iter_0001000", rank)
		require.NoError(t, os.MkdirAll(sub, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(sub, "model_optim_rng.pt"), file, 0o644))
		file = withBias(t, file)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "latest_checkpointed_iteration.txt"), []byte("1000"), 0o644))
	return dir
}

// withBias is Megatron's file with another bias, as another rank has it.
func withBias(t *testing.T, file []byte) []byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	r, err := z.Open("megatron/data/1")
	require.NoError(t, err)
	bias, err := io.ReadAll(r)
	require.NoError(t, err)
	other := append([]byte{bias[0] + 1}, bias[1:]...)
	sum := func(data []byte) []byte {
		return binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(data))
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(file, bias, other), sum(bias), sum(other))
}

func runPreflight(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = Main(append([]string{"preflight"}, args...), &out, &err)
	return status, out.String(), err.String()
}

func TestPreflightOfARealFile(t *testing.T) {
	dir := megatronSave(t)
	status, out, stderr := runPreflight(dir)
	require.Equal(t, exitNothing, status, out+stderr)
	require.Contains(t, out, "Safe to resume from epoch 1000: all 3 domains confirm it.")

	require.NoError(t, os.Truncate(filepath.Join(dir, "iter_0001000", "mp_rank_01", "model_optim_rng.pt"), 3000))
	status, out, _ = runPreflight(dir)
	require.Equal(t, exitFindings, status)
	require.Contains(t, out, "Not safe to resume from epoch 1000: 1 of 3 domains do not confirm it")
	require.Contains(t, out, "C6")
}

func TestPreflightJSON(t *testing.T) {
	dir := megatronSave(t)
	status, out, _ := runPreflight("--json", "--epoch", "1000", dir)
	require.Equal(t, exitNothing, status)
	var got struct {
		Verdict  string
		Safe     bool
		Epoch    *int64
		Frontier *int64
		Judged   struct {
			Domains int
			Held    []struct{ Epoch, Count int64 }
		}
		Resumes []struct{ By string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got), out)
	require.Equal(t, "converged", got.Verdict)
	require.True(t, got.Safe)
	require.EqualValues(t, 1000, *got.Epoch)
	require.EqualValues(t, 1000, *got.Frontier)
	require.Equal(t, 3, got.Judged.Domains)
	require.Equal(t, "latest_checkpointed_iteration.txt", got.Resumes[0].By)

	status, out, _ = runPreflight("--json", "--epoch", "5", dir)
	require.Equal(t, exitFindings, status)
	require.Contains(t, out, `"judged": null`)
}

func TestPreflightUsage(t *testing.T) {
	dir := megatronSave(t)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing":        {nil, "got no path; want one or more"},
		"no such folder": {[]string{filepath.Join(dir, "nowhere")}, "a mount that failed looks like that"},
		"no such folder, in spite of --allow-empty": {[]string{"--allow-empty", filepath.Join(dir, "nowhere")}, "no such file or directory"},
		"a bucket of S3":            {[]string{"s3://bucket/run/checkpoint-400"}, "got an address of a store; want a local folder"},
		"a bucket of Google":        {[]string{"gs://bucket/run"}, "mount the store, or copy the save"},
		"a file of the hub":         {[]string{"hf://org/model"}, "only local folders are read"},
		"a file":                    {[]string{filepath.Join(dir, "latest_checkpointed_iteration.txt")}, "got a file; want the folder that holds it"},
		"a first start at an epoch": {[]string{"--allow-empty", "--epoch", "5", dir}, "check --allow-empty: got --epoch 5, too"},
		"twice":                     {[]string{dir, dir}, "it is given twice"},
		"twice by another name":     {[]string{dir, dir + "/"}, "it is given twice"},
		"an epoch below 0":          {[]string{"--epoch", "-1", dir}, "check --epoch: got -1; want 0 or more"},
		"a world below 0":           {[]string{"--world-size", "-1", dir}, "check --world-size: got -1"},
		"no time":                   {[]string{"--timeout", "0s", dir}, "check --timeout: got 0s; want more than 0"},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, stderr := runPreflight(tc.args...)
			require.Equal(t, exitUnusable, status)
			require.Empty(t, out)
			require.Contains(t, stderr, tc.want)
		})
	}
}

func TestPreflightOfNothing(t *testing.T) {
	status, out, _ := runPreflight(t.TempDir())
	require.Equal(t, exitFindings, status)
	require.Contains(t, out, "there is no save to resume from")
	require.Contains(t, strings.Join(strings.Fields(out), " "), "got an empty folder; want a folder of saves, or --allow-empty at the first start of a job")
}

// A first start is accepted where the folder is empty, and where nothing else is.
func TestPreflightOfAFirstStart(t *testing.T) {
	empty := t.TempDir()
	status, out, _ := runPreflight("--allow-empty", empty)
	require.Equal(t, exitNothing, status)
	require.Contains(t, out, "No checkpoint: first start.")
	status, out, _ = runPreflight("--allow-empty", "--json", empty)
	require.Equal(t, exitNothing, status)
	require.Contains(t, out, `"verdict": "empty"`)
	require.Contains(t, out, `"safe": true`)

	require.NoError(t, os.WriteFile(filepath.Join(empty, "notes.txt"), nil, 0o600))
	status, out, _ = runPreflight("--allow-empty", empty)
	require.Equal(t, exitFindings, status)
	require.Contains(t, out, "there is no save to resume from")
}

// Empty is what holds no file but those of the file system; else the answer names what is there.
func TestPreflightOfAlmostNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		files []string // a folder ends in a slash
		want  string   // "" for empty
	}{
		"snapshots of the file system": {[]string{".snapshot/hourly.0/notes.txt"}, ""},
		"a file deleted on NFS":        {[]string{".nfs000000000001"}, ""},
		"an empty folder of logs":      {[]string{"runs/"}, ""},
		"empty folders":                {[]string{"lost+found/", "runs/a/b/", "wandb/"}, ""},
		"a log":                        {[]string{"runs/events.out.tfevents.1"}, `but "runs"; want a folder of saves, or a save`},
		"a folder browser of macOS":    {[]string{".DS_Store", "._.DS_Store", "__MACOSX/._x"}, ""},
		"one of Windows":               {[]string{"Thumbs.db", "desktop.ini", "$RECYCLE.BIN/S-1/x"}, ""},
		"one of a network disk":        {[]string{"@eaDir/x", "#recycle/desktop.ini", ".AppleDouble/x"}, ""},
		"a folder kept in git":         {[]string{".gitkeep", "runs/.gitignore", ".git/HEAD", ".git/objects/pack/x"}, ""},
		"tools":                        {[]string{".ipynb_checkpoints/a-checkpoint.ipynb", ".hydra/config.yaml", ".cache/x", ".Trash-1000/files/x"}, ""},
		"an empty folder in a hidden":  {[]string{".nfs/data", "lost+found/#12345"}, ""},
		"hidden, and a log":            {[]string{".DS_Store", "train.log"}, `but ".DS_Store", "train.log"; want`},
		"a save under way":             {[]string{".checkpoint-100.tmp/x"}, `but ".checkpoint-100.tmp"; want`},
		"a copy under way":             {[]string{".model.safetensors.Xy12Zq"}, `but ".model.safetensors.Xy12Zq"; want`},
		"a copy of an optimizer":       {[]string{".optimizer.pt.Xy12Zq"}, `but ".optimizer.pt.Xy12Zq"; want`},
		"a copy of a folder":           {[]string{".iter_0000100.Xy12Zq/x"}, `but ".iter_0000100.Xy12Zq"; want`},
		"hidden state":                 {[]string{".old/checkpoint-100/x", ".old/x"}, "but saves in .old; want"},
		"hidden metadata":              {[]string{".metadata.json"}, `but ".metadata.json"; want`},
		"much":                         {[]string{"a", "b", "c", "d", "e", "f"}, `but "a", "b", "c", "d", 2 more; want`},
		"saves one level down":         {[]string{"run1/"}, "give the folder in it to resume from (run1)"},
		"saves in two folders":         {[]string{"best/", "last/", "logs/x"}, "give the folder in it to resume from (best, last)"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range tc.files {
				path := filepath.Join(dir, filepath.FromSlash(file))
				if strings.HasSuffix(file, "/") {
					require.NoError(t, os.MkdirAll(path, 0o755))
				} else {
					require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
					require.NoError(t, os.WriteFile(path, nil, 0o600))
				}
				if strings.Contains(tc.want, "resume from") && strings.HasSuffix(file, "/") {
					for name, data := range ckptsim.DCPOf(100, 2, "w", "optimizer.w") {
						require.NoError(t, os.MkdirAll(filepath.Join(path, "step-100"), 0o755))
						require.NoError(t, os.WriteFile(filepath.Join(path, "step-100", name), data, 0o600))
					}
				}
			}
			status, out, _ := runPreflight("--allow-empty", dir)
			if tc.want == "" {
				require.Equal(t, exitNothing, status, out)
				return
			}
			require.Equal(t, exitFindings, status, out)
			require.Contains(t, strings.Join(strings.Fields(out), " "), tc.want)
		})
	}
}

// What --allow-weights-only and --ignore-times accept is not safe without them.
func TestPreflightAccepts(t *testing.T) {
	weights, times := t.TempDir(), t.TempDir()
	write := func(dir string, names ...string) {
		for name, data := range ckptsim.DCPOf(100, 2, names...) {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "step-100"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "step-100", name), data, 0o600))
		}
	}
	write(weights, "w")
	write(times, "w", "optimizer.w", "train_state.step")
	now := time.Unix(1_790_000_000, 123_456_789)
	for name, at := range map[string]time.Time{"__0_0.distcp": now, ".metadata": now.Add(time.Second), "__1_0.distcp": now.Add(time.Hour)} {
		require.NoError(t, os.Chtimes(filepath.Join(times, "step-100", name), at, at))
	}
	for flag, dir := range map[string]string{"--allow-weights-only": weights, "--ignore-times": times} {
		status, out, _ := runPreflight(dir)
		require.Equal(t, exitFindings, status)
		require.Contains(t, strings.ReplaceAll(out, "\n", " "), flag)
		status, out, _ = runPreflight(flag, dir)
		require.Equal(t, exitNothing, status, out)
	}
	status, out, _ := runPreflight("--json", weights)
	require.Equal(t, exitFindings, status)
	require.Contains(t, out, `"verdict": "weights_only"`)
	require.Contains(t, out, `"weights_only": "no item in .metadata is of an optimizer`)
	require.Contains(t, out, `"frontier": null`)
	_, out, _ = runPreflight(weights)
	require.Contains(t, out, "complete, weights only: cannot resume training")
}
