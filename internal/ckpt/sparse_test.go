// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/preflight"
)

// sparse is a folder in which the disk backs nothing of some files from an offset on.
type sparse struct {
	fs.FS
	suffix string
}

func (s sparse) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, s.suffix) {
		return f, err
	}
	return sparseFile{f.(*os.File)}, nil
}

type sparseFile struct{ *os.File }

func (sparseFile) Hole() (int64, error) { return 64, nil }

// A sparse copy has holes where zeros were. Only checksums tell it from a file of which data never
// reached the disk.
func TestSparseCopies(t *testing.T) {
	for job, files := range map[string]string{
		"torchtitan": "step-100/__1_0.distcp", "deepspeed, ZeRO 1": "global_step100/mp_rank_00_model_states.pt",
	} {
		dir := saves(t, job, 100)
		copied := sparse{os.DirFS(dir), filepath.Base(files)}
		r := gate(t, copied, false)
		require.False(t, r.OK(), job)
		require.Contains(t, problems(r), "or the copy is sparse, which only its checksums tell")
		r = gate(t, copied, true)
		require.True(t, r.OK(), "%s: %s", job, r.Why)

		file := filepath.Join(dir, files)
		info, err := os.Stat(file)
		require.NoError(t, err)
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		at := strings.Index(string(data), "data/0") + 64 // within a tensor
		clear(data[at : at+4])
		require.NoError(t, os.WriteFile(file, data, 0o600))
		require.NoError(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
		require.False(t, gate(t, copied, true).OK(), "%s: data was lost", job)
	}
	dir := saves(t, "hf trainer, one process", 100) // safetensors has no checksums
	require.False(t, gate(t, sparse{os.DirFS(dir), ".safetensors"}, true).OK())
}

func problems(r *preflight.Result) string {
	var all []string
	for i := range r.Saves {
		for _, p := range r.Saves[i].Problems {
			all = append(all, p.What)
		}
	}
	return strings.Join(all, "\n")
}
