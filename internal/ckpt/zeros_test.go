// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/ckptsim"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

// A shard whose bytes were never written is not one of another serialization, nor are all.
func TestShardsOfZeros(t *testing.T) {
	for job, shards := range map[string]string{
		"torchtitan": "step-100/*.distcp", "megatron, torch_dist": "iter_0000100/*.distcp",
	} {
		found, err := filepath.Glob(filepath.Join(saves(t, job, 100), shards))
		require.NoError(t, err)
		require.Greater(t, len(found), 2, job)
		for i := range found {
			dir := saves(t, job, 100)
			require.True(t, gate(t, os.DirFS(dir), false).OK(), job)
			all, _ := filepath.Glob(filepath.Join(dir, shards))
			zero(t, all[i])
			for _, verify := range []bool{false, true} {
				require.False(t, gate(t, os.DirFS(dir), verify).OK(), "%s: %s", job, all[i])
			}
			for _, f := range all {
				zero(t, f)
			}
			require.False(t, gate(t, os.DirFS(dir), false).OK(), job)
		}
	}
}

// Nor is one of which only a part was never written, where each rank commits for itself.
func TestTheEndOfShardsOfZeros(t *testing.T) {
	judge := func(dir string, verify bool) *preflight.Result {
		root := ckpt.Read(t.Context(), os.DirFS(dir), ckpt.Options{WorldSize: 3, Verify: verify})
		return preflight.Judge([]preflight.Place{{Name: "x", Root: root}}, model.Some[int64](100))
	}
	const job = "dcp, each rank for itself"
	dir := saves(t, job, 100)
	found, err := filepath.Glob(filepath.Join(dir, "*.distcp"))
	require.NoError(t, err)
	require.Len(t, found, 3)
	before := time.Now().Add(-time.Hour) // of the metadata of any rank
	for _, file := range found {
		require.NoError(t, os.Chtimes(file, before, before))
	}
	require.True(t, judge(dir, true).OK())
	for _, file := range found {
		info, err := os.Stat(file)
		require.NoError(t, err)
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var ends []int // of items
		for at := 0; ; {
			n := bytes.Index(data[at:], []byte("PK\x05\x06"))
			if n < 0 {
				break
			}
			at += n + 22
			ends = append(ends, at)
		}
		require.Greater(t, len(ends), 3)
		lost := slices.Clone(data)
		if strings.HasSuffix(file, "__0_0.distcp") { // whose step is its first item
			clear(lost[ends[len(ends)-2]:])
		} else {
			clear(lost[ends[0]:ends[1]])
		}
		write := func(data []byte) {
			require.NoError(t, os.WriteFile(file, data, 0o600))
			require.NoError(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
		}
		write(lost)
		require.False(t, judge(dir, true).OK(), file)
		if strings.HasSuffix(file, "__0_0.distcp") {
			require.False(t, judge(dir, false).OK(), "the last item of a file is looked at always")
		}
		write(data)
		require.True(t, judge(dir, true).OK())
	}
}

// Of items that are no files of torch.save it is known that not all begin with zeros, nor one that
// was compressed.
func TestItemsOfZeros(t *testing.T) {
	weights, zeros := []byte{0, 0, 0x80, 0x3f, 1, 2, 3, 4}, make([]byte, 8)
	zstd := append([]byte{0x28, 0xb5, 0x2f, 0xfd}, weights...)
	for name, c := range map[string]struct {
		items      [][]byte
		transforms []string
		want       bool
	}{
		"whole":                             {[][]byte{weights, weights}, nil, true},
		"a bias that is zero":               {[][]byte{weights, zeros}, nil, true},
		"nothing but zeros":                 {[][]byte{zeros, zeros}, nil, false},
		"compressed":                        {[][]byte{zstd, zstd}, []string{"zstd"}, true},
		"compressed, the last is lost":      {[][]byte{zstd, zeros}, []string{"zstd"}, false},
		"compressed, nothing but zeros":     {[][]byte{zeros, zeros}, []string{"zstd"}, false},
		"transformed so that none is known": {[][]byte{weights, weights}, []string{"mine"}, true},
	} {
		dir := t.TempDir()
		metadata, shard := ckptsim.RawDCP(c.items, c.transforms...)
		folder := filepath.Join(dir, "step-100")
		require.NoError(t, os.Mkdir(folder, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "__0_0.distcp"), shard, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, ".metadata"), metadata, 0o600))
		for _, verify := range []bool{false, true} {
			r := gate(t, os.DirFS(dir), verify)
			require.Equal(t, c.want, r.OK(), "%s, verify %v: %s", name, verify, r.Why)
		}
	}
}
