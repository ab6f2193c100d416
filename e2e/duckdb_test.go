// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const operationsConfig = `yaml:{
  receivers: {otlp: {protocols: {http: {endpoint: '${env:OTLP}'}}}},
  exporters: {parquet: {directory: '${env:DIR}/operations', time_resolution: '${env:RESOLUTION}', file: {max_steps: 2}, %s}},
  service: {telemetry: {metrics: {level: none}}, pipelines: {traces: {receivers: [otlp], exporters: [parquet]}}}}`

// spanAttribute is one of a span, as OTLP JSON.
func spanAttribute(key string, value any) string {
	if s, ok := value.(string); ok {
		return fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, key, s)
	}
	return fmt.Sprintf(`{"key":%q,"value":{"intValue":"%d"}}`, key, value)
}

// operation is a span, from and to so many ms after the first step.
func operation(kind, name string, step int, from, to int64, attributes ...string) string {
	const first, ms = 1_700_000_000_000_000_000, int64(time.Millisecond)
	attributes = append(attributes, spanAttribute("lockstep.op.kind", kind), spanAttribute("lockstep.step", step))
	return fmt.Sprintf(`{"traceId":"%032x","spanId":"%016x","name":%q,"kind":1,"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[%s]}`,
		step+1, from*1000+to, name, first+from*ms, first+to*ms, strings.Join(attributes, ","))
}

func collective(name, comm string, step int, bytes int, from, to int64) string {
	return operation("collective", name, step, from, to, spanAttribute("lockstep.stream.id", 20), spanAttribute("lockstep.comm.id", comm),
		spanAttribute("lockstep.collective.name", name), spanAttribute("lockstep.collective.seq", step),
		spanAttribute("lockstep.collective.seq.scope", "comm"), spanAttribute("lockstep.collective.bytes", bytes))
}

// asked are the operations of two ranks over three steps, which begin at 0, 500 and 1,000 ms. In the first, rank 0
// computes for 12 ms and rank 1 for 10; in the others, rank 0 for 10 and rank 1 for 30. An all-reduce follows until
// ms 13, or 31, and an all-gather from ms 31 of rank 0, and 32 of rank 1, to ms 36. Rank 1 loads data in step 5.
func asked(rank int) string {
	var spans []string
	for step := 1; step <= 3; step++ {
		at, computed, reduced := int64(step-1)*500, int64(10), int64(31)
		switch {
		case step == 1 && rank == 0:
			computed, reduced = 12, 13
		case step == 1:
			reduced = 13
		case rank == 1:
			computed = 30
		}
		spans = append(spans,
			operation("compute", "gemm_kernel_v1", step, at, at+computed, spanAttribute("lockstep.op.key", "gemm"), spanAttribute("lockstep.stream.id", 7)),
			collective("all_reduce", "world", step, 1000, at+computed, at+reduced),
			collective("all_gather", "tp", step, 200, at+31+int64(rank), at+36),
			operation("step", "step", step, at, at+40))
	}
	if rank == 1 {
		spans = append(spans, operation("scope", "data_loading", 5, 2000, 2007, spanAttribute("thread.id", 1)))
	}
	return fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[%s]},"scopeSpans":[{"spans":[%s]}]}]}`, strings.Join([]string{
		spanAttribute("lockstep.job.id", "asked"), spanAttribute("lockstep.job.incarnation", "0011223344556677"), spanAttribute("lockstep.rank", rank),
	}, ","), strings.Join(spans, ","))
}

// answers are those to the queries of the document, by their headings.
var answers = map[string]string{
	"The slowest collective of a step":      `[["all_reduce", "world", 2, 2, 21.0, 20.0]]`,
	"The rank that arrived last most often": `[[1, 5], [0, 1]]`,
	"Percentiles of the durations of each operation": `[["all_gather", 6, [4.5, 5.0, 5.0]], ["all_reduce", 6, [2.0, 21.0, 21.0]],
		["data_loading", 1, [7.0, 7.0, 7.0]], ["gemm", 6, [11.0, 30.0, 30.0]]]`,
	"Bytes of each communicator, by second": `[["tp", 1700000000, 800], ["tp", 1700000001, 400], ["world", 1700000000, 4000], ["world", 1700000001, 2000]]`,
	"What a rank did around a step": `[
		[1, "step", "step", null, -500.0, 40.0], [1, "compute", "gemm_kernel_v1", 7, -500.0, 10.0],
		[1, "collective", "all_reduce", 20, -490.0, 3.0], [1, "collective", "all_gather", 20, -468.0, 4.0],
		[2, "step", "step", null, 0.0, 40.0], [2, "compute", "gemm_kernel_v1", 7, 0.0, 30.0],
		[2, "collective", "all_reduce", 20, 30.0, 1.0], [2, "collective", "all_gather", 20, 32.0, 4.0],
		[3, "step", "step", null, 500.0, 40.0], [3, "compute", "gemm_kernel_v1", 7, 500.0, 30.0],
		[3, "collective", "all_reduce", 20, 530.0, 1.0], [3, "collective", "all_gather", 20, 532.0, 4.0]]`,
}

// queries returns the queries of the document, by their headings.
func queries(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repoRoot(t), "docs", "format", "parquet.md"))
	require.NoError(t, err)
	out := map[string]string{}
	for _, part := range strings.Split(string(text), "\n### ")[1:] {
		heading, rest, _ := strings.Cut(part, "\n")
		for _, m := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(rest, -1) {
			out[heading] += m[1]
		}
	}
	return out
}

// exported runs a collector with the parquet exporter, sends it what is asked, ends it, and returns the folder of the
// files. Until runs before the end.
func exported(t *testing.T, env map[string]string, more string, until func(dir string, c *process)) string {
	t.Helper()
	dir, address := t.TempDir(), freePorts(t, 1)[0]
	all := map[string]string{"DIR": dir, "OTLP": address, "RESOLUTION": "exact"}
	for k, v := range env {
		all[k] = v
	}
	c := start(t, all, built(t, "otelcol-lockstep"), "--config", fmt.Sprintf(operationsConfig, more))
	eventually(t, readyLimit, func() error {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}, c)
	for rank := range 2 {
		post(t, "http://"+address+"/v1/traces", asked(rank))
	}
	dir = filepath.Join(dir, "operations")
	if until != nil {
		until(dir, c)
	}
	assert.Zero(t, c.terminate(t, stopLimit))
	return dir
}

// The queries of the document, as they are there, have the answers that the operations have.
func TestDuckDB_QueriesOfTheDocument_AreAnswered(t *testing.T) {
	python := filepath.Join(built(t, "duckdb-venv"), "bin", "python")
	const documented = "/var/lib/lockstep/operations"
	found := queries(t)
	require.Len(t, found, len(answers))
	for _, resolution := range []string{"exact", "100ns"} {
		t.Run(resolution, func(t *testing.T) {
			dir := exported(t, map[string]string{"RESOLUTION": resolution}, "", nil)
			files, err := filepath.Glob(filepath.Join(dir, "asked", "0011223344556677", "*.parquet"))
			require.NoError(t, err)
			assert.Greater(t, len(files), 1, "each range of two steps has a file")
			for heading, query := range found {
				require.Contains(t, query, documented, heading)
				cmd := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "duckdb", "query.py"))
				cmd.Stdin = strings.NewReader(strings.ReplaceAll(query, documented, dir))
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s: %s", heading, out)
				assert.JSONEq(t, answers[heading], string(out), heading)
			}
		})
	}
}
