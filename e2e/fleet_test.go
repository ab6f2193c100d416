// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// nodeRoot is the file system of a made-up node, as far as its driver is concerned.
func nodeRoot(t *testing.T) (root string, load func(driver string)) {
	t.Helper()
	root = t.TempDir()
	dir := filepath.Join(root, "sys", "module", "nvidia")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	return root, func(driver string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "version"), []byte(driver+"\n"), 0o600))
	}
}

// A job that trains on two nodes of different drivers is told of, by what its ranks and the nodes
// say, and told of no more when the one is updated. Its processes are real; the nodes are two names.
func TestFleet(t *testing.T) {
	t.Parallel()
	here, loadHere := nodeRoot(t)
	there, loadThere := nodeRoot(t)
	loadHere("550.90.07")
	loadThere("580.126.09")
	dir := ringDirectory(t)
	c := startCollector(t, "fleet.yaml", map[string]string{
		"LOCKSTEP_DIR": dir, "LOCKSTEP_ROOT": here, "LOCKSTEP_HOST_ID": "here", "LOCKSTEP_EVENTS": filepath.Join(t.TempDir(), "events.jsonl"),
		"LOCKSTEP_POLL": "1s", "LOCKSTEP_HEARTBEAT": "1s", "LOCKSTEP_SETTLE": "8s", "LOCKSTEP_SILENT": "20s",
	})
	start(t, map[string]string{"ROOT": there, "GATEWAY": c.otlp, "LOCKSTEP_HOST_ID": "there"},
		built(t, "otelcol-lockstep"), "--config", filepath.Join("e2e", "testdata", "fleet_node.yaml"))
	startWorkers(t, dir, "none", "here", "there")

	await := func(status string) (found finding) {
		t.Helper()
		eventually(t, answerLimit, func() error {
			all, err := findingsIn(c.findings)
			if err != nil {
				return err
			}
			for _, f := range all {
				if f["lockstep.finding.status"] == status {
					found = f
					return nil
				}
			}
			return fmt.Errorf("find one that is %s in %s: got %v", status, c.findings, all)
		}, c.process)
		return found
	}
	f := await("open")
	t.Log(f)
	require.Equal(t, []string{"epoch", "fleet_mixed", "nvidia_kernel_driver", "live", "2"}, []string{
		f["lockstep.finding.kind"], f["lockstep.finding.class"], f["lockstep.finding.op"], f["lockstep.job.id"], f["lockstep.finding.ranks.count"],
	})
	page, err := get("http://" + c.prometheus + "/metrics")
	require.NoError(t, err)
	for _, want := range []string{
		`lockstep_fleet_nodes{lockstep_version_domain="nvidia_kernel_driver",lockstep_version_value="550.90.07"} 1`,
		`lockstep_fleet_nodes{lockstep_version_domain="nvidia_kernel_driver",lockstep_version_value="580.126.09"} 1`,
	} {
		require.Contains(t, string(page), want)
	}
	loadHere("580.126.09")
	await("closed")
	require.Zero(t, c.terminate(t, stopLimit))
}
