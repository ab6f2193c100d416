// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scope is one record of `lockstep rings --records`.
type scope struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Begin  int64  `json:"begin_ns"`
	End    int64  `json:"end_ns"`
	Detail struct {
		Thread int `json:"thread"`
		Depth  int `json:"depth"`
	} `json:"detail"`
}

func (s scope) took() time.Duration { return time.Duration(s.End - s.Begin) }

func (s scope) within(outer scope) bool {
	return outer.Begin <= s.Begin && s.End <= outer.End && s.Detail.Thread == outer.Detail.Thread
}

// scopesOf runs a program that uses NVTX under our library, and reads its scopes by
// their names.
func scopesOf(t *testing.T, program string, args ...string) map[string][]scope {
	t.Helper()
	dir := ringDirectory(t)
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "LOCKSTEP_DIR="+dir,
		"NVTX_INJECTION64_PATH="+built(t, "libnccl-profiler-lockstep.so"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.CommandContext(t.Context(), built(t, "lockstep"), "rings", "--records", dir).Output()
	require.NoError(t, err, "the program made a ring")
	scopes := map[string][]scope{}
	for line := range bytes.Lines(out) {
		var s scope
		require.NoError(t, json.Unmarshal(line, &s), "%s", line)
		if s.Kind == "scope" {
			scopes[s.Name] = append(scopes[s.Name], s)
		}
	}
	return scopes
}

// nvtxVenv returns the folder of the Python environment that has NVTX.
func nvtxVenv(t *testing.T) string {
	t.Helper()
	return built(t, "nvtx-venv")
}

// assertCounts holds scopes to how often there is which name, and nothing else.
func assertCounts(t *testing.T, want map[string]int, scopes map[string][]scope) {
	t.Helper()
	got := map[string]int{}
	for name, s := range scopes {
		got[name] = len(s)
	}
	assert.Equal(t, want, got)
}

// Ranges that a program makes with the Python package nvtx are scopes, though the
// program knows nothing of us.
func TestNVTXFromPython(t *testing.T) {
	scopes := scopesOf(t, filepath.Join(nvtxVenv(t), "bin", "python"), filepath.Join("testdata", "ranges.py"))
	assertCounts(t, map[string]int{
		"step": 3, "trainer: compute": 3, "pushed": 1, "trainer: started": 1, "meanwhile": 1, "trainer: registered": 1,
	}, scopes)
	for i, inner := range scopes["trainer: compute"] {
		assert.Equal(t, 1, inner.Detail.Depth)
		assert.GreaterOrEqual(t, inner.took(), 5*time.Millisecond)
		require.Greater(t, len(scopes["step"]), i)
		outer := scopes["step"][i]
		assert.Equal(t, 0, outer.Detail.Depth)
		assert.True(t, inner.within(outer), "%v in %v", inner, outer)
	}
	require.NotEmpty(t, scopes["pushed"])
	assert.GreaterOrEqual(t, scopes["pushed"][0].took(), 5*time.Millisecond)
	require.NotEmpty(t, scopes["trainer: started"])
	require.NotEmpty(t, scopes["meanwhile"])
	started, meanwhile := scopes["trainer: started"][0], scopes["meanwhile"][0]
	assert.Less(t, started.Begin, meanwhile.Begin)
	assert.Greater(t, started.End, meanwhile.Begin)
	assert.Less(t, started.End, meanwhile.End, "ended by another thread, inside the other one")
	assert.Equal(t, 0, meanwhile.Detail.Depth, "a started range nests nothing")
}

// Likewise a program in C, compiled with NVIDIA's header.
func TestNVTXFromC(t *testing.T) {
	headers, err := filepath.Glob(filepath.Join(nvtxVenv(t), "lib", "python3*", "site-packages", "nvidia", "*", "include"))
	require.NoError(t, err)
	require.Len(t, headers, 1)
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		missing(t, "find gcc: %v", err)
	}
	program := filepath.Join(t.TempDir(), "nvtx")
	out, err := exec.CommandContext(t.Context(), gcc, "-isystem", headers[0], "testdata/ranges.c", "-ldl", "-o", program).CombinedOutput()
	require.NoError(t, err, "%s", out)
	scopes := scopesOf(t, program)
	assertCounts(t, map[string]int{"outer": 1, "wide €": 10, "of a category": 1}, scopes)
	require.NotEmpty(t, scopes["outer"])
	outer := scopes["outer"][0]
	assert.Equal(t, 0, outer.Detail.Depth)
	assert.GreaterOrEqual(t, outer.took(), 10*time.Millisecond)
	for _, inner := range append(scopes["wide €"], scopes["of a category"]...) {
		assert.True(t, inner.within(outer), "%v in %v", inner, outer)
		assert.Equal(t, 1, inner.Detail.Depth)
	}
	for _, s := range scopes["wide €"] {
		assert.GreaterOrEqual(t, s.took(), time.Millisecond)
	}
}
