// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func publishedConfigs(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("../distro/config")
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestPublishedConfigsAreValid(t *testing.T) {
	t.Setenv("LOCKSTEP_COMMIT_TOKEN", commitToken)
	program := built(t, "otelcol-lockstep")
	for _, name := range publishedConfigs(t) {
		t.Run(name, func(t *testing.T) {
			run(t, program, "validate", "--config", configPath(name))
		})
	}
}

// Without a token whoever reaches the receiver of commits could speak for a rank.
func TestCommits_WithoutToken_DoNotStart(t *testing.T) {
	p := start(t, map[string]string{"LOCKSTEP_COMMIT_TOKEN": ""}, built(t, "otelcol-lockstep"), "--config", configPath("commits.yaml"))
	assert.NotZero(t, p.wait(t, readyLimit))
	assert.Contains(t, p.output.String(), "extensions::bearertokenauth/LOCKSTEP_COMMIT_TOKEN: no bearer token provided")
}

// A token's file that is missing or empty lets no rank in, and health names it, as the configuration says.
func TestCommits_TokenFileMissingOrEmpty_IsNotGreen(t *testing.T) {
	t.Parallel()
	program, dir := built(t, "otelcol-lockstep"), t.TempDir()
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for _, file := range []string{filepath.Join(dir, "missing"), empty} {
		ports := freePorts(t, 4)
		_, telemetry, err := net.SplitHostPort(ports[3])
		require.NoError(t, err)
		c := start(t, map[string]string{
			"LOCKSTEP_COMMIT_TOKEN": "", "LOCKSTEP_COMMIT_TOKEN_FILE": file, "LOCKSTEP_COMMIT_ENDPOINT": ports[0],
			"LOCKSTEP_HEALTH_ENDPOINT": ports[1], "LOCKSTEP_PROMETHEUS_ENDPOINT": ports[2], "LOCKSTEP_TELEMETRY_PORT": telemetry,
			"LOCKSTEP_STATE": t.TempDir(), "LOCKSTEP_FINDINGS": filepath.Join(dir, "findings"),
			"LOCKSTEP_EVENTS": filepath.Join(dir, "events"), "LOCKSTEP_SPANS": filepath.Join(dir, "spans"),
		}, program, "--config", configPath("commits.yaml"))
		eventually(t, readyLimit, func() error {
			_, err := get("http://" + ports[1] + "/")
			if err == nil || !strings.Contains(err.Error(), "status 500: ") || !strings.Contains(err.Error(), filepath.Base(file)) {
				return fmt.Errorf("ask for health: got %w; want status 500 and %s", err, file)
			}
			return nil
		}, c)
		for _, token := range []string{"Bearer ", "Bearer", ""} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+ports[0]+"/v1/commit", http.NoBody)
			require.NoError(t, err)
			r.Header.Set("Authorization", token)
			answer, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			assert.Equal(t, http.StatusUnauthorized, answer.StatusCode, "token %q", token)
		}
		assert.Zero(t, c.terminate(t, stopLimit))
	}
}

// The command that a published configuration names makes directories whose files their group reads,
// so that the collector of another user can read a ring. Users outside the group cannot make a ring there.
func TestPublishedConfigs_Directories_BelongToAGroup(t *testing.T) {
	command := regexp.MustCompile(`(?m)^#.* (install -d .*?)((?: /\S+)+)$`)
	var found int
	for _, name := range publishedConfigs(t) {
		text, err := os.ReadFile(filepath.Join("..", "distro", "config", name))
		require.NoError(t, err)
		for _, match := range command.FindAllSubmatch(text, -1) {
			found++
			dir := filepath.Join(t.TempDir(), "dir")
			install := strings.Replace(string(match[1]), "-g lockstep", "-g "+strconv.Itoa(os.Getgid()), 1)
			arguments := append(strings.Fields(install)[1:], dir)
			out, err := exec.CommandContext(t.Context(), "install", arguments...).CombinedOutput() //nolint:gosec // of our file
			require.NoError(t, err, "%s", out)
			info, err := os.Stat(dir)
			require.NoError(t, err)
			assert.Equal(t, os.ModeDir|os.ModeSetgid|0o770, info.Mode(), "%s: %s", name, match[0])
		}
	}
	assert.Equal(t, 8, found, "configurations that read directories of jobs")
}

// Every published configuration becomes ready without anything to talk to but the topics that it reads,
// and ends with status 0 when it is told to.
func TestPublishedConfigsStartAndStop(t *testing.T) {
	t.Parallel()
	var broker *kafka
	for _, name := range publishedConfigs(t) {
		env := map[string]string{"LOCKSTEP_TRACES": recording(t, "slow")}
		if strings.HasSuffix(name, "-kafka.yaml") { // health is not green without what is read
			if broker == nil {
				broker = startKafka(t, false, nil)
				broker.topics(t, 4)
			}
			env["LOCKSTEP_KAFKA_BROKERS"] = broker.plain
		}
		t.Run(name, func(t *testing.T) {
			status := -1
			// The collector is ready a moment before it listens to signals: one that comes then kills it.
			for attempt := 0; attempt < 3 && status == -1; attempt++ {
				c := startCollector(t, name, env)
				status = c.terminate(t, stopLimit)
			}
			assert.Zero(t, status)
		})
	}
}
