// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a process that writes logs as NCCL Inspector does is told, in its environment.
const (
	envInspectorLog  = "LOCKSTEP_E2E_INSPECTOR_LOG"  // the file
	envInspectorRank = "LOCKSTEP_E2E_INSPECTOR_RANK" // of inspectorRanks
	envInspectorHang = "LOCKSTEP_E2E_INSPECTOR_HANG" // line in the middle of which it stops
)

const (
	inspectorRanks = 3
	inspectorLines = 2500
	rotateEvery    = 600 // lines
	killedAt       = 1700
)

// TestInspectorWriter is no test: started by TestInspectorLogs, it is a process that
// writes a log and rotates it.
func TestInspectorWriter(t *testing.T) {
	path := os.Getenv(envInspectorLog)
	if path == "" {
		t.Skip("it is a process of another test")
	}
	rank, err := strconv.Atoi(os.Getenv(envInspectorRank))
	require.NoError(t, err)
	hang, err := strconv.Atoi(os.Getenv(envInspectorHang))
	require.NoError(t, err)
	var f *os.File
	var w *bufio.Writer
	for n := range inspectorLines {
		if n%rotateEvery == 0 {
			if f != nil {
				require.NoError(t, w.Flush())
				require.NoError(t, f.Close())
				require.NoError(t, os.Rename(path, fmt.Sprintf("%s.%d", path, n/rotateEvery)))
			}
			f, err = os.Create(path)
			require.NoError(t, err)
			// As C's stdio: what is on disk ends anywhere in a line.
			w = bufio.NewWriterSize(f, 4096)
		}
		line := inspectorLine(rank, n)
		if n == hang {
			_, _ = w.WriteString(line[:len(line)/2])
			require.NoError(t, w.Flush())
			_, _ = os.Stdout.WriteString("half a line is written\n")
			time.Sleep(time.Hour)
		}
		_, _ = w.WriteString(line)
		if n%50 == 49 {
			require.NoError(t, w.Flush())
		}
		time.Sleep(2 * time.Millisecond)
	}
	require.NoError(t, w.Flush())
	require.NoError(t, f.Close())
}

// inspectorLine is one of a verbose log of format v4.0.
func inspectorLine(rank, seq int) string {
	const epoch = 1790000000000000
	at := epoch + 10_000*seq
	return inspectorText(rank, inspectorRanks, seq, at, at+10, at+900, at+5000)
}

func inspectorText(rank, ranks, seq, launch, start, stop, dumped int) string {
	return fmt.Sprintf(`{"header":{"id":"0xfeed","rank":%d,"n_ranks":%d,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0",`+
		`"dump_timestamp_us":%d,"hostname":"node","pid":%d},"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":1048576,`+
		`"coll_exec_time_us":%d,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":1.0,"coll_busbw_gbs":1.5,"event_trace_ts":{"coll_start_ts":%d,`+
		`"coll_stop_ts":%d,"kernel_events":[{"channel_id":0,"kernel_start_ts":%d,"kernel_stop_ts":%d,"kernel_record_ts":%d}]}}}`+"\n",
		rank, ranks, dumped, 1000+rank, seq, stop-start, launch, launch+3, start, stop, stop)
}

// Three processes write logs and rotate them, one is killed in the middle of a line,
// and the collector is stopped and started between: each line that is whole is a
// span, and counted, once.
func TestInspectorLogs(t *testing.T) {
	t.Parallel()
	built(t, "otelcol-lockstep")
	dir, state := filepath.Join(t.TempDir(), "nccl-inspector-4242"), t.TempDir()
	require.NoError(t, os.Mkdir(dir, 0o700))
	env := map[string]string{
		"LOCKSTEP_INSPECTOR": filepath.Join(dir, "*.log*"), "LOCKSTEP_STATE": state,
		"LOCKSTEP_SPANS": filepath.Join(t.TempDir(), "spans.jsonl"), "LOCKSTEP_METRICS": filepath.Join(t.TempDir(), "metrics.jsonl"),
	}
	first := startCollector(t, "inspector.yaml", env)
	writers := make([]*process, inspectorRanks)
	for rank := range writers {
		hang := -1
		if rank == 1 {
			hang = killedAt
		}
		writers[rank] = start(t, map[string]string{
			envInspectorLog:  filepath.Join(dir, fmt.Sprintf("node-pid%d.log", 1000+rank)),
			envInspectorRank: strconv.Itoa(rank), envInspectorHang: strconv.Itoa(hang),
		}, os.Args[0], "-test.run=^TestInspectorWriter$", "-test.timeout=5m")
	}
	spans := func(least int) func() error {
		return func() error {
			got, err := inspectorSpans(env["LOCKSTEP_SPANS"])
			if err == nil && len(got) < least {
				err = fmt.Errorf("count spans: got %d; want at least %d", len(got), least)
			}
			return err
		}
	}
	eventually(t, time.Minute, spans(inspectorRanks*rotateEvery), first.process)
	assert.Zero(t, first.terminate(t, stopLimit))
	eventually(t, time.Minute, func() error {
		if !strings.Contains(writers[1].output.String(), "half a line") {
			return fmt.Errorf("wait for the writer to stop: it said %q", writers[1].output.String())
		}
		return nil
	}, writers[1])
	require.NoError(t, writers[1].cmd.Process.Kill())
	second := startCollector(t, "inspector.yaml", env)
	for _, rank := range []int{0, 2} {
		assert.Zero(t, writers[rank].wait(t, time.Minute), writers[rank].output.String())
	}
	const whole = 2*inspectorLines + killedAt
	eventually(t, time.Minute, spans(whole), second.process)
	assert.Zero(t, second.terminate(t, stopLimit))

	got, err := inspectorSpans(env["LOCKSTEP_SPANS"])
	require.NoError(t, err)
	want := map[string]int{}
	for rank := range inspectorRanks {
		n := inspectorLines
		if rank == 1 {
			n = killedAt
		}
		for seq := range n {
			want[fmt.Sprintf("%d/%d", rank, seq)] = 1
		}
	}
	assert.Equal(t, want, got)
	counted, err := inspectorCounted(env["LOCKSTEP_METRICS"])
	require.NoError(t, err)
	assert.Equal(t, whole, counted)
}

// Verbose logs of four ranks, of which one is late: the finding names it.
func TestInspectorFindings(t *testing.T) {
	const ranks, slow, steps, epoch = 4, 2, 40, 1790000000000000
	dir := filepath.Join(t.TempDir(), "nccl-inspector-4243")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for rank := range ranks {
		var text strings.Builder
		for n := range steps {
			begin := epoch + 50_000*n
			own := begin + 20_000
			if rank == slow {
				own += 10_000
			}
			text.WriteString(inspectorText(rank, ranks, 2*n, own, own+10, begin+31_000, begin+50_000))
			text.WriteString(inspectorText(rank, ranks, 2*n+1, begin+36_000, begin+36_010, begin+37_000, begin+50_000))
		}
		last := epoch + 50_000*steps + 60_000_000 // the log has gone on
		text.WriteString(inspectorText(rank, ranks, 2*steps, last, last+10, last+1000, last+2000))
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("node-pid%d.log", rank)), []byte(text.String()), 0o600))
	}
	c := startCollector(t, "inspector.yaml", map[string]string{
		"LOCKSTEP_INSPECTOR": dir, "LOCKSTEP_ANCHOR_FUNCTION": "all_reduce", "LOCKSTEP_ANCHOR_EVERY": "2",
	})
	eventually(t, time.Minute, func() error {
		found, err := findingsIn(c.findings)
		if err != nil {
			return err
		}
		for _, f := range found {
			if f["lockstep.finding.rank"] == strconv.Itoa(slow) {
				return nil
			}
		}
		return fmt.Errorf("find rank %d: got %v", slow, found)
	}, c.process)
	exposed, err := get("http://" + c.prometheus + "/metrics")
	require.NoError(t, err)
	assert.Contains(t, string(exposed), "lockstep_collective_io_bytes_total{")
	assert.Contains(t, string(exposed), `lockstep_job_id="4243"`)
	assert.Zero(t, c.terminate(t, stopLimit))
}

// inspectorSpans counts the spans of a file by rank and number.
func inspectorSpans(file string) (map[string]int, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for line := range bytes.Lines(content) {
		var data struct {
			ResourceSpans []struct {
				Resource struct {
					Attributes []keyValue `json:"attributes"`
				} `json:"resource"`
				ScopeSpans []struct {
					Spans []struct {
						Attributes []keyValue `json:"attributes"`
					} `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		if json.Unmarshal(line, &data) != nil {
			continue // it is being written
		}
		for _, rs := range data.ResourceSpans {
			rank := valueOf(rs.Resource.Attributes, "lockstep.rank")
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					out[rank+"/"+valueOf(s.Attributes, "lockstep.collective.seq")]++
				}
			}
		}
	}
	return out, nil
}

func valueOf(attributes []keyValue, key string) string {
	for _, a := range attributes {
		if a.Key == key {
			return a.Value.String + a.Value.Int
		}
	}
	return ""
}

// inspectorCounted sums the last counts of all series, of each life of a series apart.
func inspectorCounted(file string) (sum int, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	last := map[string]int{}
	for line := range bytes.Lines(content) {
		var data struct {
			ResourceMetrics []struct {
				ScopeMetrics []struct {
					Metrics []struct {
						Name      string `json:"name"`
						Histogram struct {
							Points []struct {
								Attributes []keyValue `json:"attributes"`
								Start      string     `json:"startTimeUnixNano"`
								Count      int        `json:"count,string"`
							} `json:"dataPoints"`
						} `json:"exponentialHistogram"`
					} `json:"metrics"`
				} `json:"scopeMetrics"`
			} `json:"resourceMetrics"`
		}
		if err := json.Unmarshal(line, &data); err != nil {
			return 0, fmt.Errorf("decode a line of %s: %w", file, err)
		}
		for _, rm := range data.ResourceMetrics {
			for _, m := range rm.ScopeMetrics[0].Metrics {
				for _, p := range m.Histogram.Points {
					last[p.Start+"/"+valueOf(p.Attributes, "lockstep.rank")] = p.Count
				}
			}
		}
	}
	for _, n := range last {
		sum += n
	}
	return sum, nil
}
