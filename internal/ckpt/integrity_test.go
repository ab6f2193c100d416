// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/model"
)

const integrityJob = "megatron, torch_dist, integrity.json"

// overwrite has other contents for a file, whose times stay.
func overwrite(t *testing.T, file string, data []byte) {
	t.Helper()
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data, 0o600))
	require.NoError(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
}

func contents(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return b
}

// A shard of another save, whole and with the times of the one that it replaces, is told by its digest
// alone; so is a byte of a file that has no checksums.
func TestDigestsTellWhatIsOfAnotherSave(t *testing.T) {
	for file, other := range map[string]func(dir string) []byte{
		"__1_0.distcp": func(dir string) []byte {
			return contents(t, filepath.Join(dir, "iter_0000100", "__1_0.distcp"))
		},
		"metadata.json": func(dir string) []byte {
			b := contents(t, filepath.Join(dir, "iter_0000200", "metadata.json"))
			return []byte(strings.Replace(string(b), `"common_backend_version": 1`, `"common_backend_version": 2`, 1))
		},
	} {
		dir := saves(t, integrityJob, 100, 200)
		for _, verify := range []bool{false, true} {
			r := gate(t, os.DirFS(dir), verify)
			require.True(t, r.OK(), "%s, verify %t: %s", file, verify, r.Why)
		}
		overwrite(t, filepath.Join(dir, "iter_0000200", file), other(dir))
		require.True(t, gate(t, os.DirFS(dir), false).OK(), "%s: no byte of it is compared", file)
		r := gate(t, os.DirFS(dir), true)
		require.False(t, r.OK(), file)
		require.EqualValues(t, 100, r.Frontier.V)
		require.Equal(t, ckpt.CheckTorn, r.Judged.Problems[0].Check)
		require.Contains(t, problems(r), "got a SHA-256 of ")
	}
}

// What is listed must be there, whether digests are compared or not; what is not listed need not.
func TestListedFilesAreExpected(t *testing.T) {
	for _, verify := range []bool{false, true} {
		dir := saves(t, integrityJob, 100, 200)
		save := filepath.Join(dir, "iter_0000200")
		require.NoError(t, os.WriteFile(filepath.Join(save, "run_config.yaml"), []byte("x"), 0o600))
		require.True(t, gate(t, os.DirFS(dir), verify).OK(), "it is not listed")
		list := filepath.Join(save, "integrity.json")
		lists := string(contents(t, list))
		overwrite(t, list, []byte(strings.Replace(lists, `"files": {`, `"files": {"modelopt_state": "`+strings.Repeat("0", 64)+`",`, 1)))
		r := gate(t, os.DirFS(dir), verify)
		require.False(t, r.OK())
		require.Contains(t, r.Why, "file modelopt_state, which is absent")
		require.Equal(t, ckpt.CheckShards, r.Judged.Problems[0].Check)

		overwrite(t, list, []byte(lists))
		require.NoError(t, os.Remove(filepath.Join(save, "__2_0.distcp")))
		require.False(t, gate(t, os.DirFS(dir), verify).OK())

		dir = saves(t, integrityJob, 100)
		file := filepath.Join(dir, "iter_0000100", "metadata.json")
		require.NoError(t, os.WriteFile(file, append(contents(t, file), ' '), 0o600))
		later := time.Now().Add(time.Hour)
		require.NoError(t, os.Chtimes(file, later, later))
		r = gate(t, os.DirFS(dir), verify)
		require.False(t, r.OK(), "it was overwritten since")
		require.Contains(t, problems(r), "integrity.json, which has its digest")
	}
}

// An integrity.json that says nothing that can be compared leaves its save unconfirmed, as Megatron's
// loader refuses it.
func TestIntegrityOfWhatever(t *testing.T) {
	digest := strings.Repeat("0", 64)
	list := func(algorithm, name, digest string) string {
		return fmt.Sprintf(`{%s"files": {%q: %q}}`, algorithm, name, digest)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                 {"", "got 0 bytes; want at least 1"},
		"no JSON":                 {"{", "read JSON"},
		"a list":                  {"[]", "read JSON"},
		"no files":                {`{"algorithm": "sha256"}`, "got no files; want the digest of each"},
		"digests of numbers":      {`{"files": {"metadata.json": 1}}`, "read JSON"},
		"another algorithm":       {list(`"algorithm": "sha512", `, "metadata.json", digest), `got algorithm "sha512"; want sha256`},
		"an algorithm of numbers": {list(`"algorithm": [1], `, "metadata.json", digest), `got algorithm "[1]"; want sha256`},
		"an algorithm twice":      {list(`"algorithm": "md5", "algorithm": "sha256", `, "metadata.json", digest), `got key "algorithm" twice`},
		"files twice":             {`{"files": {}, "files": {"metadata.json": "` + digest + `"}}`, `got key "files" twice`},
		"a file twice":            {`{"files": {"common.pt": "00", "common.pt": "` + digest + `"}}`, `got key "common.pt" twice`},
		"a file twice, escaped":   {`{"files": {"a": "00", "\u0061": "` + digest + `"}}`, `got key "a" twice`},
		"an algorithm of null":    {list(`"algorithm": null, `, "metadata.json", digest), `got algorithm "null"; want sha256`},
		"another digest":          {list("", "metadata.json", "00"), "want a file of the folder and a SHA-256"},
		"a digest in capitals":    {list("", "metadata.json", strings.Repeat("A", 64)), "want a file of the folder and a SHA-256"},
		"the folder above":        {list("", "../latest_checkpointed_iteration.txt", digest), "want a file of the folder"},
		"an absolute path":        {list("", "/etc/passwd", digest), "want a file of the folder"},
		"the folder":              {list("", ".", digest), "want a file of the folder"},
		"a folder":                {list("", "sub", digest), "got a folder; want a regular file"},
		"control characters":      {`{"files": {"\u001b[31m": "` + digest + `"}}`, "got no such file"},
		"more files than allowed": {`{"files": {"a": "", "b": "", "c": "", "d": "", "e": "", "f": "", "g": "", "h": "", "i": ""}}`, "got 9 files; want at most 8"},
	} {
		for _, verify := range []bool{false, true} {
			dir := saves(t, integrityJob, 100)
			require.NoError(t, os.Mkdir(filepath.Join(dir, "iter_0000100", "sub"), 0o700))
			limits := ckpt.Options{Verify: verify, Limits: ckpt.Limits{Entries: 8}}
			r, ok := safe(t, os.DirFS(dir), limits)
			require.True(t, ok, r.Why)
			overwrite(t, filepath.Join(dir, "iter_0000100", "integrity.json"), []byte(tc.text))
			r, ok = safe(t, os.DirFS(dir), limits)
			require.False(t, ok, name)
			require.Contains(t, told(r), tc.want, name)
		}
	}
	dir := saves(t, integrityJob, 100)
	file := filepath.Join(dir, "iter_0000100", "integrity.json")
	overwrite(t, file, []byte(strings.Replace(string(contents(t, file)), `"algorithm": "sha256",`, "", 1)))
	require.True(t, gate(t, os.DirFS(dir), true).OK(), "the loader takes SHA-256 where none is named")
}

// Whichever one look at the disk fails, a shard of another save is not confirmed.
func TestDigestsOnADiskThatFails(t *testing.T) {
	dir := saves(t, integrityJob, 100, 200)
	overwrite(t, filepath.Join(dir, "iter_0000200", "__1_0.distcp"), contents(t, filepath.Join(dir, "iter_0000100", "__1_0.distcp")))
	f := &failing{FS: inMemory(t, dir), at: 1}
	for ; ; f.at++ {
		f.looks = 0
		r := gate(t, f, true)
		if f.looks < f.at {
			break
		}
		require.False(t, r.OK(), "look %d", f.at)
		require.NotEqual(t, model.Some[int64](200), r.Frontier, "look %d", f.at)
	}
	require.Greater(t, f.at, 100)
}
