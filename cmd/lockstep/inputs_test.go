// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDiscoverTakesEachFileOnce(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	require.NoError(t, os.Mkdir(sub, 0o700))
	a, b := filepath.Join(dir, "a.json"), filepath.Join(sub, "b")
	for _, path := range []string{a, b} {
		require.NoError(t, os.WriteFile(path, []byte(`{"traceEvents": []}`), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes"), []byte("text"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "damaged.json"), []byte("{"), 0o600))

	var p problems
	in := discover([]string{a, dir, dir + "/*.json", sub + "/../a.json"}, &p)
	require.Len(t, in.files, 2)
	assert.Equal(t, []string{a, b}, []string{in.files[0].path, in.files[1].path})
	assert.EqualValues(t, 2*len(`{"traceEvents": []}`), in.size())
	assert.Equal(t, 1, in.skipped)
	require.Len(t, p.list, 1, "damaged.json once")
	assert.Equal(t, filepath.Join(dir, "damaged.json"), p.list[0].File)
}

func TestDiscoverRefusesWhatIsNoFile(t *testing.T) {
	var p problems
	discover([]string{os.DevNull}, &p)
	require.Len(t, p.list, 1)
	assert.Contains(t, p.list[0].What, "want a regular file")
}

func TestWhatOthersReadIsPointedTo(t *testing.T) {
	log := `{"header":{"id":"0xabc","rank":0},"metadata":{"inspector_output_format_version":"v4.0"}}` + "\n"
	for name, tc := range map[string]struct{ text, want string }{
		"1-2-00000000.ring": {"LOCKSTEP\x00", "; rings are read by `lockstep rings`"},
		"n-pid7.log":        {log, "; logs of NCCL Inspector are read by a collector (distro/config/inspector.yaml)"},
		"notes.log":         {"text\n", ""},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(tc.text), 0o600))
		var p problems
		discover([]string{dir}, &p)
		discover([]string{path}, &p)
		require.Len(t, p.list, 2, name)
		for _, said := range p.list {
			assert.Contains(t, said.What, tc.want, name)
			assert.Equal(t, tc.want != "", strings.Contains(said.What, "are read by"), name)
		}
	}
}

func TestDiscover_PathsThatNameNothing_SayWhatIsAccepted(t *testing.T) {
	for path, want := range map[string]string{
		"":      `"": find path: got an empty path; want a file, a folder or a pattern`,
		"[a":    "[a: match pattern: got a [ without its ], or a \\ at the end; want a path, or a pattern of *, ? and [a-z]",
		"no*no": "no*no: match pattern: got no match; want at least one file",
	} {
		var p problems
		discover([]string{path}, &p)
		require.Len(t, p.list, 1)
		assert.Equal(t, want, p.list[0].File+": "+p.list[0].What)
		assert.EqualValues(t, 1, p.refused, "an argument that is not read is refused")
	}
}

func TestProblemsAreBounded(t *testing.T) {
	var p problems
	for range maxProblems + 7 {
		p.add("f", -1, os.ErrInvalid)
	}
	assert.Len(t, p.list, maxProblems)
	assert.EqualValues(t, 7, p.omitted)
}
