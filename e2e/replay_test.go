// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The command's own collector ends by itself when it has read its files, and
// says what it found; of the healthy twin it says that there is nothing.
func TestReplayEndsByItself(t *testing.T) {
	program := built(t, "lockstep")
	for _, name := range []string{"slow", "healthy"} {
		t.Run(name, func(t *testing.T) {
			traces := recording(t, name)
			p := start(t, map[string]string{"LOCKSTEP_TRACES": traces}, program, "run", configPath("replay.yaml"))
			assert.Zero(t, p.wait(t, stopLimit))
			if want := expected(t, traces); want.Rank != nil {
				assert.Contains(t, p.output.String(), fmt.Sprintf("rank %d", *want.Rank))
				assert.Contains(t, quickstart(t), strings.TrimSpace(p.output.String()), "docs/quickstart.md shows what is printed")
			} else {
				assert.Contains(t, p.output.String(), "No finding")
			}
		})
	}
}

func quickstart(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../docs/quickstart.md")
	require.NoError(t, err)
	return string(content)
}
