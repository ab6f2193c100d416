// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refused is the configuration of testdata/collectors that no collector of ours accepts.
const refused = "refused.yaml"

// Configurations with the components and the wiring that people use are accepted, become
// ready, run and stop. Nothing listens where their exporters send.
func TestConfigsOfPeople_Run(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "collectors", "*.yaml"))
	require.NoError(t, err)
	require.Greater(t, len(paths), 1)
	program := built(t, "otelcol-lockstep")
	for _, path := range paths {
		if filepath.Base(path) == refused {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			absolute, err := filepath.Abs(path)
			require.NoError(t, err)
			env := everyEnvironment(t)
			collector := start(t, env, program, "--config", absolute)
			eventually(t, readyLimit, func() error {
				_, err := get("http://" + env["HEALTH"] + "/")
				return err
			}, collector)
			select {
			case <-collector.done:
				assert.Fail(t, "ended by itself")
			case <-time.After(3 * time.Second):
				assert.Zero(t, collector.terminate(t, stopLimit))
			}
		})
	}
}

// Upstream's error comes with a line for each component that we know something about.
func TestUnknownComponents_UpstreamsErrorAndHints(t *testing.T) {
	path, err := filepath.Abs(filepath.Join("testdata", "collectors", refused))
	require.NoError(t, err)
	for _, name := range []string{"otelcol-lockstep", "otelcol-lockstep-agent"} {
		cmd := exec.CommandContext(t.Context(), built(t, name), "validate", "--config", path)
		cmd.Env = append(cmd.Environ(), "CLOSED=127.0.0.1:1")
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		for _, want := range []string{
			`unknown type: "httpcheck" for id: "httpcheck/front" (valid values: [`,
			`Hint: receivers: "httpcheck/front": `,
			`Hint: connectors: "routing": `,
			`Hint: exporters: "jaeger": `,
		} {
			assert.Contains(t, string(out), want, name)
		}
	}
}

// The collector for nodes points at the full one for what that holds; the full one holds it.
func TestAgent_ComponentOfTheFullCollector_SaysSo(t *testing.T) {
	config := "yaml:{receivers: {otlp: {protocols: {grpc: }}}, exporters: {kafka: }, connectors: {straggler: }," +
		" service: {pipelines: {traces: {receivers: [otlp], exporters: [kafka]}}}}"
	out, err := exec.CommandContext(t.Context(), built(t, "otelcol-lockstep-agent"), "validate", "--config", config).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), `Hint: exporters: "kafka": otelcol-lockstep holds this component`)
	assert.Contains(t, string(out), `Hint: connectors: "straggler": otelcol-lockstep holds this component`)

	assert.NotContains(t, run(t, built(t, "otelcol-lockstep"), "validate", "--config", config), "Hint")
}

var stamps = regexp.MustCompile(`(?:\+|commit )([0-9a-f]{12})(?:\.| of )(\d{4}-\d{2}-\d{2})`)

// A version names a commit and its date, so that a report of a fault can be placed.
func TestVersions_NameTheCommit(t *testing.T) {
	for _, command := range [][]string{{"otelcol-lockstep", "--version"}, {"otelcol-lockstep-agent", "--version"}, {"lockstep", "version"}} {
		version := run(t, built(t, command[0]), command[1])
		stamp := stamps.FindStringSubmatch(version)
		require.NotNil(t, stamp, version)
		show := exec.CommandContext(t.Context(), "git", "-C", repoRoot(t), "show", "-s", "--date=format-local:%Y-%m-%d", "--format=%cd", stamp[1])
		show.Env = append(os.Environ(), "TZ=UTC")
		date, err := show.Output()
		require.NoError(t, err, "%s is a commit of this checkout", stamp[1])
		assert.Equal(t, stamp[2], strings.TrimSpace(string(date)))
	}
}
