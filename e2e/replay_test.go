package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
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
			} else {
				assert.Contains(t, p.output.String(), "No finding")
			}
		})
	}
}
