// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHangsConfig has the collector watch a folder into which the dumps of a real hang are
// written: what fault_injection.log beside them says is told, and nobody else is named.
func TestHangsConfig(t *testing.T) {
	t.Parallel()
	for incident, class := range map[string]string{"lock_gil_1st": "not_scheduled", "gpu_error_2nd": "completion_lag"} {
		t.Run(incident, func(t *testing.T) {
			from, dumps := sharedData(t, filepath.Join("flight-recorder", incident)), t.TempDir()
			c := startCollector(t, "hangs.yaml", map[string]string{
				"LOCKSTEP_DUMPS": dumps, "LOCKSTEP_JOB_ID": "moe", "LOCKSTEP_RAS_ADDRESS": freePorts(t, 1)[0],
				"LOCKSTEP_EVENTS": filepath.Join(t.TempDir(), "events.jsonl"),
			})
			began := time.Now()
			for rank := range 16 {
				name := fmt.Sprintf("_dump_%d", rank)
				content, err := os.ReadFile(filepath.Join(from, name))
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(dumps, name), content, 0o600))
			}
			var found []finding
			eventually(t, answerLimit, func() (err error) {
				if found, err = findingsIn(c.findings); err == nil && len(found) < 2 {
					err = fmt.Errorf("find two events in %s: got %d", c.findings, len(found))
				}
				return err
			}, c.process)
			t.Logf("told %v after the dumps were written", time.Since(began).Round(100*time.Millisecond))
			var ranks []string
			for _, f := range found {
				assert.Equal(t, "desync", f["lockstep.finding.kind"])
				assert.Equal(t, class, f["lockstep.finding.class"])
				assert.Equal(t, "moe", f["lockstep.job.id"])
				ranks = append(ranks, f["lockstep.finding.rank"])
			}
			slices.Sort(ranks)
			assert.Equal(t, []string{"14", "9"}, slices.Compact(ranks))
			assert.Zero(t, c.terminate(t, stopLimit))
		})
	}
}
