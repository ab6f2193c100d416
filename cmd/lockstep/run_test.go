package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// replayConfig is the configuration that `make run` uses.
func replayConfig(t *testing.T) string {
	t.Helper()
	return filepath.Join(testdata.Root(t), "distro", "config", "replay.yaml")
}

func TestRunEndsByItselfWithTheFinding(t *testing.T) {
	t.Setenv("LOCKSTEP_TRACES", testdata.Recording(t, "slow"))
	status, stdout, stderr := call("run", replayConfig(t))
	assert.Equal(t, exitNothing, status, stderr)
	said := words(stdout)
	assert.Contains(t, said, "operations of 8 ranks")
	assert.Contains(t, said, "Finding 1 of 1: rank 5")
	assert.Contains(t, said, "class host")
	assert.Contains(t, said, "wait caused")
	assert.Contains(t, said, "is all that mending this place alone would save")
	assert.Contains(t, said, "confidence")
}

func TestRunHealthyRecording(t *testing.T) {
	t.Setenv("LOCKSTEP_TRACES", testdata.Recording(t, "healthy"))
	status, stdout, stderr := call("run", replayConfig(t))
	assert.Equal(t, exitNothing, status, stderr)
	assert.Contains(t, stdout, "operations of 8 ranks")
	assert.NotContains(t, stdout, "Finding 1")
}

func TestRunWithoutTraces(t *testing.T) {
	t.Setenv("LOCKSTEP_TRACES", t.TempDir())
	status, _, _ := call("run", replayConfig(t))
	assert.Equal(t, exitFailed, status, "a replay of nothing is no success")
}

func TestRunBadConfig(t *testing.T) {
	status, _, stderr := call("run", filepath.Join(t.TempDir(), "absent.yaml"))
	assert.Equal(t, exitFailed, status)
	assert.Contains(t, stderr, "absent.yaml")

	path := filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(path, []byte("receivers: {nonesuch: }\n"), 0o600))
	status, _, stderr = call("run", path)
	assert.Equal(t, exitFailed, status)
	assert.Contains(t, stderr, "nonesuch")
}
