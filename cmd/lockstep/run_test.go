// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

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
	assert.Contains(t, said, "is all that mending this rank alone would save")
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

// A missing folder is told in words: no stack of this program. The collector logs
// to the process's own stderr, so the command runs in a process of its own.
func TestRunMissingFolderPrintsNoStack(t *testing.T) {
	if os.Getenv("LOCKSTEP_TEST_RUN") != "" {
		os.Exit(Main([]string{"run", replayConfig(t)}, os.Stdout, os.Stderr))
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRunMissingFolderPrintsNoStack$")
	cmd.Env = append(os.Environ(), "LOCKSTEP_TEST_RUN=1", "LOCKSTEP_TRACES="+filepath.Join(t.TempDir(), "absent"))
	said, err := cmd.CombinedOutput()
	var status *exec.ExitError
	require.ErrorAs(t, err, &status)
	assert.Equal(t, exitFailed, status.ExitCode())
	assert.Contains(t, string(said), "got no such file")
	assert.Contains(t, string(said), "Nothing was read")
	assert.NotContains(t, string(said), "torchtracereceiver.(*")
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
	assert.Contains(t, stderr, "otelcol-lockstep validate --config")
}

// Only files can be given to analyze.
func TestRunWithoutFindingAdvisesWhatCanBeDone(t *testing.T) {
	assert.Contains(t, noFinding(true), "`lockstep analyze`")
	assert.Equal(t, "No finding reached an exporter.", noFinding(false))
}

// The help names every component that a configuration may.
func TestRunHelpNamesTheComponents(t *testing.T) {
	status, stdout, stderr := call("run", "--help")
	require.Equal(t, exitNothing, status, stderr)
	f, err := components(newTap())
	require.NoError(t, err)
	for _, types := range [][]component.Type{
		slices.Collect(maps.Keys(f.Receivers)), slices.Collect(maps.Keys(f.Processors)), slices.Collect(maps.Keys(f.Connectors)),
		slices.Collect(maps.Keys(f.Extensions)), slices.Collect(maps.Keys(f.Exporters)),
	} {
		require.NotEmpty(t, types)
		for _, name := range types {
			assert.Regexp(t, `[ ]`+name.String()+`[,\n]`, stdout)
		}
	}
	for line := range strings.Lines(stdout) {
		assert.LessOrEqual(t, len(line), 112, line)
	}
}

// What was found is a result, also where the collector's end reports that a backend did not take it.
func TestRun_BackendIsDown_FindingsArePrinted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "down.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
receivers:
  torch_trace: {include: ["`+testdata.Recording(t, "slow")+`"], mode: once}
connectors:
  straggler: {deadline: 24h}
exporters:
  otlp_grpc: {endpoint: "127.0.0.1:1", tls: {insecure: true}, timeout: 100ms, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
service:
  pipelines:
    traces: {receivers: [torch_trace], exporters: [straggler]}
    logs: {receivers: [straggler], exporters: [otlp_grpc]}
  telemetry: {metrics: {level: none}, logs: {level: error}}
`), 0o600))
	status, stdout, stderr := call("run", path)
	assert.Equal(t, exitFailed, status)
	assert.Contains(t, stderr, "deliver the last events")
	assert.Contains(t, words(stdout), "Finding 1 of 1: rank 5")
}
