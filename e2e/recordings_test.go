// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Exit statuses of `lockstep analyze`.
const (
	statusNothing  = 0
	statusFindings = 3
)

// analysis is what the tests read of `lockstep analyze --json`.
type analysis struct {
	Findings []struct {
		Kind  string `json:"lockstep.finding.kind"`
		Class string `json:"lockstep.finding.class"`
		Rank  *int64 `json:"lockstep.finding.rank"`
		Op    string `json:"lockstep.finding.op"`
	} `json:"findings"`
	Ranks []json.RawMessage `json:"ranks"`
}

// placeScopes are the scopes in which a stall at a place of the script shows.
var placeScopes = map[string][]string{
	"data":      {"data", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"},
	"forward":   {"forward"},
	"optimizer": {"optimizer"},
}

// Every recording is judged as the script that made it says: the committed
// ones, or those below LOCKSTEP_RECORDINGS that `make e2e-recordings` made.
func TestRecordingsAreJudgedRight(t *testing.T) {
	program := built(t, "lockstep")
	dir := os.Getenv("LOCKSTEP_RECORDINGS")
	if dir == "" {
		dir = filepath.Join(repoRoot(t), "testdata", "recordings")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"+truthSuffix))
	require.NoError(t, err)
	require.NotEmpty(t, files, "recordings in %s", dir)
	for _, file := range files {
		traces := strings.TrimSuffix(file, truthSuffix)
		t.Run(filepath.Base(traces), func(t *testing.T) {
			assertJudged(t, program, traces)
		})
	}
}

func assertJudged(t *testing.T, program, traces string) {
	t.Helper()
	want := expected(t, traces)
	got, status := analyze(t, program, traces)
	assert.Len(t, got.Ranks, ranks)
	if want.Rank == nil {
		assert.Equal(t, statusNothing, status)
		assert.Empty(t, got.Findings)
		return
	}
	assert.Equal(t, statusFindings, status)
	require.NotEmpty(t, got.Findings)
	first := got.Findings[0] // the most costly
	assert.Equal(t, "straggler", first.Kind)
	assert.Equal(t, want.Class, first.Class)
	require.NotNil(t, first.Rank)
	assert.Equal(t, *want.Rank, *first.Rank)
	assert.Contains(t, placeScopes[want.Place], first.Op)
}

func analyze(t *testing.T, program, traces string) (result analysis, status int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, "analyze", "--json", traces)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	require.NotNil(t, cmd.ProcessState, "start %s: %v", program, err)
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &result), "%s\n%s", stdout.String(), stderr.String())
	return result, cmd.ProcessState.ExitCode()
}
