// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ours is what otelcol-lockstep adds to upstream's components, by the section
// of the `components` listing.
var ours = map[string][]string{
	"receivers":  {"torch_trace", "rank_events", "flight_recorder", "nccl_inspector", "nccl_ras", "owd_probe"},
	"processors": {"straggler", "clock_skew"},
	"connectors": {"straggler", "desync", "findings", "clocks"},
	"exporters":  {"json_lines"},
	"extensions": {"timeline", "queue_storage"},
}

func TestBinaryListsOurComponents(t *testing.T) {
	listing := run(t, built(t, "otelcol-lockstep"), "components")
	sections := regexp.MustCompile(`(?m)^([a-z]+):\n((?: .*\n)*)`).FindAllStringSubmatch(listing, -1)
	require.NotEmpty(t, sections)
	listed := map[string]string{}
	for _, section := range sections {
		listed[section[1]] = section[2]
	}
	for section, names := range ours {
		for _, name := range names {
			assert.Regexp(t, `(?m)^ +- name: `+name+`\n +module: github\.com/lockstep-otel/lockstep `, listed[section])
		}
	}
}

// run returns what a program that must succeed within a minute prints.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = repoRoot(t)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %v:\n%s", program, args, out)
	return string(out)
}
