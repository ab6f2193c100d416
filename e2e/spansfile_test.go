// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// spanLine is one rank's step as OTLP JSON: a kernel, the all-reduce in which it meets
// the others, and the step.
func spanLine(rank, step int, start, kernel, end int64) string {
	span := func(name, kind string, from, to int64, more string) string {
		return fmt.Sprintf(`{"traceId":"%032x","spanId":"%08x%08x","name":%q,"kind":1,"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[`+
			`{"key":"lockstep.op.kind","value":{"stringValue":%q}},{"key":"lockstep.step","value":{"intValue":"%d"}}%s]}`,
			step+1, rank+1, len(name), name, from, to, kind, step, more)
	}
	spans := []string{
		span("gemm", "compute", start, start+kernel, `,{"key":"lockstep.stream.id","value":{"intValue":"7"}}`),
		span("all_reduce", "collective", start+kernel, end, `,{"key":"lockstep.stream.id","value":{"intValue":"20"}}`+
			`,{"key":"lockstep.comm.id","value":{"stringValue":"world"}},{"key":"lockstep.comm.size","value":{"intValue":"4"}}`+
			`,{"key":"lockstep.collective.name","value":{"stringValue":"all_reduce"}},{"key":"lockstep.collective.seq.scope","value":{"stringValue":"comm"}}`+
			fmt.Sprintf(`,{"key":"lockstep.collective.seq","value":{"intValue":"%d"}}`, step)),
		span("step", "step", start, end, ""),
	}
	return fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[{"key":"lockstep.job.id","value":{"stringValue":"file"}},`+
		`{"key":"lockstep.job.incarnation","value":{"stringValue":"0011223344556677"}},{"key":"lockstep.rank","value":{"intValue":"%d"}},`+
		`{"key":"lockstep.world_size","value":{"intValue":"4"}}]},"scopeSpans":[{"spans":[%s]}]}]}`+"\n", rank, strings.Join(spans, ","))
}

const spansFileSteps = 24

// spansFile is a job of four ranks, of which rank 2 computes for 30 ms in each step
// and the others for some 10.
func spansFile(t *testing.T) string {
	t.Helper()
	var lines strings.Builder
	const ms = int64(time.Millisecond)
	for step := range spansFileSteps {
		start := 1_700_000_000_000*ms + int64(step)*40*ms
		for rank := range 4 {
			kernel := 10*ms + int64((rank*7919+step*104729)%20_000)
			if rank == 2 {
				kernel += 20 * ms
			}
			lines.WriteString(spanLine(rank, step, start, kernel, start+32*ms))
		}
	}
	path := filepath.Join(t.TempDir(), "job.json")
	require.NoError(t, os.WriteFile(path, []byte(lines.String()), 0o600))
	return path
}

const spansFileConfig = `yaml:{
  receivers: {otlp_json_file: {include: ['${env:JOB}'], start_at: beginning}},
  connectors: {straggler: {}, findings: {}},
  exporters: {file: {path: '${env:FOUND}'}, file/read: {path: '${env:READ}'}},
  service: {
    telemetry: {metrics: {level: none}},
    pipelines: {
      traces: {receivers: [otlp_json_file], exporters: [straggler, file/read]},
      logs/raw: {receivers: [straggler], exporters: [findings]},
      logs: {receivers: [findings], exporters: [file]}}}}`

// A job that only operation spans in a file describe is judged alike by the collector
// that reads the file and by analyze.
func TestAFileOfSpansIsJudgedAlike(t *testing.T) {
	collector, analyze := built(t, "otelcol-lockstep"), built(t, "lockstep")
	job, found := spansFile(t), filepath.Join(t.TempDir(), "findings.jsonl")

	said, err := exec.CommandContext(t.Context(), analyze, "analyze", "--json", job).Output()
	var status *exec.ExitError
	require.ErrorAs(t, err, &status)
	require.Equal(t, 3, status.ExitCode())
	var result struct {
		Findings []map[string]any `json:"findings"`
	}
	require.NoError(t, json.Unmarshal(said, &result))
	require.Len(t, result.Findings, 1)
	want := result.Findings[0]
	require.InDelta(t, 2, want["lockstep.finding.rank"], 0)

	read := filepath.Join(t.TempDir(), "read.jsonl")
	p := start(t, map[string]string{"JOB": job, "FOUND": found, "READ": read}, collector, "--config", spansFileConfig)
	last := finding{}
	eventually(t, readyLimit, func() error {
		content, err := os.ReadFile(read)
		if got := strings.Count(string(content), `"gemm"`); got < 4*spansFileSteps {
			return fmt.Errorf("read the file: got %d kernels, want %d: %w", got, 4*spansFileSteps, err)
		}
		return nil
	}, p)
	assert.Zero(t, p.terminate(t, stopLimit))
	all, err := findingsIn(found)
	require.NoError(t, err)
	for _, f := range all {
		if f["lockstep.finding.status"] != "closed" { // as it stood before the end
			last = f
		}
	}
	for _, key := range []string{"id", "class", "cause", "op"} {
		key = "lockstep.finding." + key
		assert.Equal(t, want[key], last[key], key)
	}
	for _, key := range []string{"rank", "step.first", "step.last", "cost.seconds", "cost.share", "confidence"} {
		key = "lockstep.finding." + key
		got, err := strconv.ParseFloat(last[key], 64)
		require.NoError(t, err, key)
		assert.InDelta(t, want[key], got, 1e-9, key)
	}
}
