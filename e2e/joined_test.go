// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	joinedRanks = 3
	// joinedStuck is the rank whose data does not come.
	joinedStuck = 1
)

// A real job is watched live, and leaves dumps: the recorder in the process knows that the rank
// waits for its data, and the dumps know the lines of the program. They are one finding.
func TestTorchDumpsJoinLive(t *testing.T) {
	t.Parallel()
	python := torchPython(t)
	rings, dumps, ask := ringDirectory(t), t.TempDir(), filepath.Join(t.TempDir(), "ask")
	c := startCollector(t, "standalone.yaml", map[string]string{
		"LOCKSTEP_DIR": rings, "LOCKSTEP_DUMPS": dumps, "LOCKSTEP_JOB_ID": "torch", "LOCKSTEP_TRACES": t.TempDir(),
		"LOCKSTEP_EVENTS":          filepath.Join(t.TempDir(), "events.jsonl"),
		"LOCKSTEP_JAEGER_ENDPOINT": freePorts(t, 1)[0], // nobody: spans are not what is looked at
	})
	ranks := startTorch(t, python, rings, joinedRanks, map[string]string{
		"ASK": ask, "STUCK": fmt.Sprint(joinedStuck), "TORCH_FR_DUMP_TEMP_FILE": filepath.Join(dumps, "comm_lib_trace_rank_"),
	}, filepath.Join(repoRoot(t), "e2e", "testdata", "torch", "stuck_loader.py"))

	live := c.hang(t, "", append(ranks, c.process)...)
	assert.Equal(t, "dataloader", live["lockstep.finding.cause"], "the rank's scopes say it")
	assert.Empty(t, live["lockstep.finding.stack"], "a ring has no stacks")

	require.NoError(t, os.WriteFile(ask, nil, 0o600))
	joined := c.hang(t, "stuck_loader.py", append(ranks, c.process)...)
	assert.Equal(t, live["lockstep.finding.id"], joined["lockstep.finding.id"], "it is the same hang")
	assert.Equal(t, "dataloader", joined["lockstep.finding.cause"])
	assert.Equal(t, "gradients", joined["lockstep.finding.comm.name"], "as the dumps name the group")
	t.Logf("live: %v", live)
	t.Logf("with dumps: %v", joined)
}

// hang waits for the finding of the stuck rank with a stack that has the text, and refuses every
// other hang.
func (c *collector) hang(t *testing.T, stack string, needs ...*process) (hang map[string]string) {
	t.Helper()
	eventually(t, time.Minute, func() error {
		found, err := findingsIn(c.findings)
		for _, f := range found {
			if f["lockstep.finding.kind"] != "desync" {
				continue
			}
			require.Equal(t, "not_scheduled "+fmt.Sprint(joinedStuck), f["lockstep.finding.class"]+" "+f["lockstep.finding.rank"], "%v", f)
			if strings.Contains(f["lockstep.finding.stack"], stack) {
				hang = f
				return nil
			}
		}
		return fmt.Errorf("find rank %d, with a stack in %q: got %v, %w", joinedStuck, stack, found, err)
	}, needs...)
	return hang
}
