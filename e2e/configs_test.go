// SPDX-License-Identifier: Apache-2.0

package e2e

import (
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

// The command that a published configuration names makes directories whose files their group reads,
// which is how the collector of another user reads a ring, and in which nobody else makes one.
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
	assert.Equal(t, 6, found, "configurations that read directories of jobs")
}

// Every published configuration becomes ready without anything to talk to,
// and ends with status 0 when it is told to.
func TestPublishedConfigsStartAndStop(t *testing.T) {
	t.Parallel()
	for _, name := range publishedConfigs(t) {
		t.Run(name, func(t *testing.T) {
			c := startCollector(t, name, map[string]string{"LOCKSTEP_TRACES": recording(t, "slow")})
			assert.Zero(t, c.terminate(t, stopLimit))
		})
	}
}
