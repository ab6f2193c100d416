// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// linesConfig writes log records as the published configurations write findings.
const linesConfig = `yaml:
receivers: {otlp: {protocols: {http: {endpoint: "${env:OTLP}", max_request_body_size: 4194304}}}}
exporters: {json_lines: {path: "${env:FILE}"}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {logs: {receivers: [otlp], exporters: [json_lines]}}
`

// largestLine is much larger than any buffer on the way to the file.
const largestLine = 1 << 20

// A collector that is killed while it writes costs at most the line it was writing: each other line
// is JSON, and what it has acknowledged is in the file.
func TestKilledWhileWritingLines_LosesAtMostTheCutLine(t *testing.T) {
	t.Parallel()
	kills := 3
	if tier.Full(t) {
		kills = 30
	}
	kills = environmentNumber(t, "LOCKSTEP_KILLS", kills)
	seed := environmentNumber(t, "LOCKSTEP_SEED", int(time.Now().UnixNano()))
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	ports := freePorts(t, 1)
	w := &lineWriters{url: "http://" + ports[0] + "/v1/logs"}
	file := filepath.Join(t.TempDir(), "lines.jsonl")
	for range kills {
		collector := start(t, map[string]string{"OTLP": ports[0], "FILE": file}, built(t, "otelcol-lockstep"), "--config", linesConfig)
		stop := w.start(random.Uint64())
		before := w.acknowledged.Load()
		eventually(t, readyLimit, func() error {
			if w.acknowledged.Load() == before {
				return fmt.Errorf("write a line: none is acknowledged yet")
			}
			return nil
		}, collector)
		time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
		require.NoError(t, collector.cmd.Process.Kill())
		<-collector.done
		stop()
	}
	written, cut := linesOf(t, file)
	lost := 0
	w.ids.Range(func(id, _ any) bool {
		if !written[id.(string)] {
			lost++
		}
		return true
	})
	t.Logf("seed %d: %d kills, %d lines acknowledged, %d of them lost, %d lines cut", seed, kills, w.acknowledged.Load(), lost, cut)
	assert.LessOrEqual(t, cut, kills)
	assert.Zero(t, lost, "acknowledged lines that are not in the file")
}

// linesOf returns the ids of a file's records, and how many lines are no JSON.
func linesOf(t *testing.T, file string) (written map[string]bool, cut int) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	written = map[string]bool{}
	for line := range bytes.Lines(content) {
		var logs logLine
		if json.Unmarshal(line, &logs) != nil {
			cut++
			continue
		}
		for _, resource := range logs.ResourceLogs {
			for _, scope := range resource.ScopeLogs {
				for _, record := range scope.LogRecords {
					written[record.EventName] = true
				}
			}
		}
	}
	return written, cut
}

// lineWriters send log records of random sizes, each once.
type lineWriters struct {
	url          string
	sent         atomic.Int64
	acknowledged atomic.Int64
	ids          sync.Map // of what was acknowledged
}

// start begins to send, and returns how to stop it.
func (w *lineWriters) start(seed uint64) (stop func()) {
	quit := make(chan struct{})
	var all sync.WaitGroup
	for i := range uint64(4) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, i))
			client := &http.Client{Transport: &http.Transport{}, Timeout: requestLimit}
			defer client.CloseIdleConnections()
			for {
				select {
				case <-quit:
					return
				default:
					w.sendOne(client, random)
				}
			}
		})
	}
	return func() { close(quit); all.Wait() }
}

func (w *lineWriters) sendOne(client *http.Client, random *rand.Rand) {
	id := fmt.Sprint(w.sent.Add(1))
	body := fmt.Sprintf(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1","eventName":%q,"body":{"stringValue":%q}}]}]}]}`,
		id, strings.Repeat("x", 1+random.IntN(largestLine)))
	resp, err := client.Post(w.url, "application/json", strings.NewReader(body))
	if err != nil {
		time.Sleep(time.Millisecond) // while the collector starts
		return
	}
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		w.ids.Store(id, true)
		w.acknowledged.Add(1)
	}
}
