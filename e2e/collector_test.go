// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// readyLimit is generous: two cores may compile something beside this.
	readyLimit = 60 * time.Second
	// commitToken is what ranks show the receiver of commits.
	commitToken = "0123456789abcdef"
	// stopLimit covers the flush of what the analyses still hold.
	stopLimit = 60 * time.Second
)

// withHealth adds what replay.yaml leaves out, since `lockstep run`, which it
// is written for, has no extensions.
const withHealth = "yaml:{extensions: {health_check: {endpoint: '${env:LOCKSTEP_HEALTH_ENDPOINT}'}}, service: {extensions: [health_check]}}"

// collector is otelcol-lockstep with one of the published configurations.
type collector struct {
	*process
	otlp       string // OTLP over gRPC
	prometheus string // the job's metrics
	health     string
	findings   string // file of findings
	spans      string // file of annotated operations
	metrics    string // file of metrics
}

// startCollector runs distro/config/<config> on free ports and waits until
// its health check answers.
func startCollector(t *testing.T, config string, env map[string]string) *collector {
	t.Helper()
	program := built(t, "otelcol-lockstep")
	ports := freePorts(t, 8)
	c := &collector{
		otlp:       ports[0],
		prometheus: ports[2],
		health:     ports[3],
		findings:   filepath.Join(t.TempDir(), "findings.jsonl"),
		spans:      filepath.Join(t.TempDir(), "spans.jsonl"),
		metrics:    filepath.Join(t.TempDir(), "metrics.jsonl"),
	}
	_, telemetryPort, err := net.SplitHostPort(ports[4])
	require.NoError(t, err)
	all := map[string]string{
		// Health is not green while one of these is missing.
		"LOCKSTEP_DIR":         t.TempDir(),
		"LOCKSTEP_TRACES":      t.TempDir(),
		"LOCKSTEP_DUMPS":       t.TempDir(),
		"LOCKSTEP_CHECKPOINTS": t.TempDir(),

		"LOCKSTEP_OTLP_GRPC_ENDPOINT":  c.otlp,
		"LOCKSTEP_OTLP_HTTP_ENDPOINT":  ports[1],
		"LOCKSTEP_PROMETHEUS_ENDPOINT": c.prometheus,
		"LOCKSTEP_HEALTH_ENDPOINT":     c.health,
		"LOCKSTEP_TELEMETRY_HOST":      "127.0.0.1",
		"LOCKSTEP_TELEMETRY_PORT":      telemetryPort,
		"LOCKSTEP_FINDINGS":            c.findings,
		"LOCKSTEP_SPANS":               c.spans,
		"LOCKSTEP_METRICS":             c.metrics,
		"LOCKSTEP_STATE":               t.TempDir(),
		"LOCKSTEP_OPERATIONS":          t.TempDir(),
		"LOCKSTEP_TIMELINE_ENDPOINT":   ports[5],
		"LOCKSTEP_PROBE_ADDRESS":       ports[6],
		"LOCKSTEP_COMMIT_ENDPOINT":     ports[7],
		"LOCKSTEP_COMMIT_TOKEN":        commitToken,
	}
	maps.Copy(all, env)
	args := []string{"--config", configPath(config)}
	if config == "replay.yaml" {
		args = append(args, "--config", withHealth)
	}
	c.process = start(t, all, program, args...)
	eventually(t, readyLimit, func() error {
		_, err := get("http://" + c.health + "/")
		return err
	}, c.process)
	return c
}

// configPath is relative to the repository root, where programs are started.
func configPath(name string) string { return filepath.Join("distro", "config", name) }
