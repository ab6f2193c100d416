// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/epoch"
)

// levanterSaves is a folder of Levanter's with arrays in OCDBT, as TensorStore writes them.
func levanterSaves(t *testing.T) fstest.MapFS {
	t.Helper()
	f := fstest.MapFS{}
	for name, file := range inMemory(t, saves(t, "orbax", 100, 200)).(fstest.MapFS) {
		step, rest, ok := strings.Cut(name, "/state/")
		if ok && (rest == "manifest.ocdbt" || strings.HasPrefix(rest, "d/") || strings.HasPrefix(rest, "ocdbt.process_")) {
			f["step-"+step+"/"+rest] = file
		}
	}
	for _, step := range []int{100, 200} {
		f[fmt.Sprintf("step-%d/metadata.json", step)] = levanterMeta(step, "2026-11-01T00:00:00")
	}
	return f
}

func levanterMeta(step int, when string) *fstest.MapFile {
	return document(fmt.Sprintf(`{"step": %d, "timestamp": %q, "is_temporary": false}`, step, when))
}

// firstIn is the first file below a folder.
func firstIn(f fstest.MapFS, dir string) string {
	name := ""
	_ = fs.WalkDir(f, dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && name == "" {
			name = path
		}
		return err
	})
	return name
}

func TestLevanter(t *testing.T) {
	data := func(f fstest.MapFS) string { return firstIn(f, "step-200/d") }
	changes(t, levanterSaves, ckpt.FormatLevanter, 200, map[string]change{
		"the arrays gone":               {do: without("step-200/d/", "step-200/manifest.ocdbt"), epoch: 200, newest: at(100), text: "model arrays, which is absent"},
		"the manifest gone":             {do: without("step-200/manifest.ocdbt"), epoch: 200, newest: at(100), text: "want the one that says which arrays there are"},
		"a file of arrays gone":         {do: func(f fstest.MapFS) { delete(f, data(f)) }, epoch: 200, newest: at(100), text: "arrays"},
		"a file of arrays torn":         {do: func(f fstest.MapFS) { f[data(f)] = torn(f[data(f)]) }, epoch: 200, newest: at(100), text: "arrays"},
		"the manifest torn":             {do: cut("step-200/manifest.ocdbt"), epoch: 200, newest: at(100), text: "arrays"},
		"a manifest of zeros":           {do: put("step-200/manifest.ocdbt", document(string(make([]byte, 64)))), epoch: 200, newest: at(100), text: "arrays"},
		"another manifest":              {do: put("step-200/manifest.ocdbt", document("\x0c\xdb\x01\x02"+string(make([]byte, 60)))), epoch: 200, newest: at(100), text: "nothing says which arrays there are", verdict: epoch.Unknown},
		"another manifest, and no data": {do: all(without("step-200/d/"), put("step-200/manifest.ocdbt", document("\x0c\xdb\x01\x02"))), epoch: 200, newest: at(100), text: "got no file of arrays"},
		"not committed":                 {do: without("step-200/metadata.json"), want: true, epoch: 100, newest: at(100)},
		"metadata torn":                 {do: put("step-200/metadata.json", document(`{"step": 2`)), epoch: 200, newest: at(100), text: "read JSON"},
		"metadata of another":           {do: put("step-200/metadata.json", levanterMeta(100, "2026-11-01T00:00:00")), epoch: 200, newest: at(100), text: "domains hold"},
		"an older one is later":         {do: put("step-100/metadata.json", levanterMeta(100, "2026-11-02T00:00:00")), want: true, epoch: 100, newest: at(200)},
	})
	r, ok := safe(t, below(levanterSaves(t), "step-100/"), ckpt.Options{})
	require.True(t, ok, r.Why)
	require.Equal(t, at(100), r.Epoch)
}

// Arrays in folders of zarr are looked at, and never confirmed: nothing says which chunks there are.
func TestLevanter_Zarr(t *testing.T) {
	whole := func() fstest.MapFS {
		f := fstest.MapFS{}
		for _, step := range []int{100, 200} {
			dir := fmt.Sprintf("step-%d/", step)
			f[dir+"metadata.json"] = levanterMeta(step, "2026-11-01T00:00:00")
			for _, array := range []string{"model/w", "optimizer/m"} {
				f[dir+array+"/.zarray"] = document(`{"chunks": [1]}`)
				f[dir+array+"/0"] = document("x")
			}
		}
		return f
	}
	for name, tc := range map[string]struct {
		do      func(fstest.MapFS)
		verdict epoch.Verdict
		text    string
	}{
		"whole":         {func(fstest.MapFS) {}, epoch.Unknown, "which of their chunks were written"},
		"no optimizer":  {without("step-200/optimizer/"), epoch.Converging, "optimizer"},
		"no arrays":     {without("step-200/optimizer/", "step-200/model/"), epoch.Converging, "arrays"},
		"one torn":      {put("step-200/model/w/.zarray", document("{")), epoch.Converging, "read JSON"},
		"not committed": {without("step-200/metadata.json"), epoch.Unknown, "step-100 has arrays in zarr"},
	} {
		t.Run(name, func(t *testing.T) {
			f := whole()
			tc.do(f)
			r, ok := safe(t, f, ckpt.Options{})
			require.False(t, ok)
			require.Equal(t, tc.verdict, r.Verdict, r.Why)
			require.Contains(t, r.Why+told(r), tc.text)
			require.False(t, r.Frontier.OK)
		})
	}
}

// torchtitan's step-N stays torchtitan's, also with another metadata.json in it.
func TestLevanter_NamesOfOthers(t *testing.T) {
	fsys := inMemory(t, saves(t, "torchtitan", 100, 200)).(fstest.MapFS)
	for _, text := range []string{`{"step": 200, "timestamp": "x"}`, `{}`, `{"step": 200}`} {
		fsys["step-200/metadata.json"] = document(text)
		r, ok := safe(t, fsys, ckpt.Options{})
		require.True(t, ok, r.Why)
		require.Equal(t, ckpt.FormatTorchtitan, r.Judged.Format)
	}
}
