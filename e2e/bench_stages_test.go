// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// The benchmark of two stages runs on small jobs, and finds that nothing of them was lost.
func TestBenchStages_SmallJobs_AreMeasured(t *testing.T) {
	if !tier.Full(t) {
		t.Skip("the full tier has it: LOCKSTEP_TESTS=full")
	}
	t.Parallel()
	collector, jars := built(t, "otelcol-lockstep"), built(t, "kafka")
	cmd := exec.CommandContext(t.Context(), "go", "run", "./bench/stages", "-ranks", "16,32", "-steps", "20", "-collector", collector, "-jars", jars)
	cmd.Dir = repoRoot(t)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "both stages: largest over least")
}
