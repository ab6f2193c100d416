// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// NeMo resumes from the save whose name ends with "-last".
func TestNeMo_Last(t *testing.T) {
	whole := memory(t, saves(t, "nemo", 100, 200))
	folders := map[string]string{} // by their step
	for name := range whole {
		top, _, _ := strings.Cut(name, "/")
		for _, step := range []string{"100", "200"} {
			if strings.Contains(top, "step="+step) {
				folders[step] = top
			}
		}
	}
	require.Len(t, folders, 2)
	last := func(steps ...string) func(fstest.MapFS) {
		return func(f fstest.MapFS) {
			for _, step := range steps {
				rename(folders[step]+"/", folders[step]+"-last/")(f)
			}
		}
	}
	for name, tc := range map[string]struct {
		do    func(fstest.MapFS)
		want  bool
		epoch int64
		text  string
	}{
		"the newest is the last":      {last("200"), true, 200, ""},
		"an older one is the last":    {last("100"), true, 100, ""},
		"two are, of different steps": {last("100", "200"), false, 0, "nothing says of which epoch"},
		"it is not finished":          {all(last("200"), put(folders["200"]+"-last-unfinished", document(""))), false, 200, "got the marker of an unfinished save"},
		"it is torn":                  {all(last("200"), cut(path.Join(folders["200"]+"-last", firstFile(whole, folders["200"])))), false, 200, "bytes; want at least"},
		"none is":                     {func(fstest.MapFS) {}, false, 0, "nothing says which of 2 saves a resume would take"},
	} {
		f := fstest.MapFS{}
		for file, of := range whole {
			again := *of
			f[file] = &again
		}
		tc.do(f)
		r, ok := safe(t, f, ckpt.Options{})
		require.Equal(t, tc.want, ok, "%s: %s\n%s", name, r.Why, told(r))
		require.Equal(t, tc.epoch, r.Epoch.V, name)
		require.Contains(t, r.Why+told(r), tc.text, name)
	}
}

// firstFile is the first shard in a folder, relative to it.
func firstFile(f fstest.MapFS, folder string) string {
	first := ""
	for name := range f {
		if rest, ok := strings.CutPrefix(name, folder+"/"); ok && strings.HasSuffix(rest, ".distcp") && (first == "" || rest < first) {
			first = rest
		}
	}
	return first
}
