// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
)

// account is where what was produced has gone.
type account struct{ produced, delivered, duplicated, reported int }

// silent returns how many neither arrived nor were reported lost.
func (a account) silent() int { return a.produced - a.delivered - a.reported }

// killCount is the outcome of a run with kills.
type killCount struct {
	agentKills, gatewayKills int
	spans, steps             account
	judged                   struct{ made, whole, part int }
	lines                    struct{ whole, cut int }
	accused                  map[string]int // findings, by what they say
	metrics                  map[string]int64
}

// killMetrics are counters of both collectors that say what became of data, summed over their lives.
// What a life counted in its last moments before a kill died with it.
var killMetrics = []string{
	"otelcol_exporter_send_failed_spans", "otelcol_exporter_enqueue_failed_spans", "otelcol_receiver_refused_spans",
	"otelcol_extension_queue_storage_requests_lost", "otelcol_exporter_json_lines_cut_lines",
	"otelcol_receiver_rank_events_records_lost", "otelcol_receiver_rank_events_records_before_attach",
	"otelcol_receiver_rank_events_records_reread", "otelcol_receiver_rank_events_steps_missing",
	"otelcol_connector_straggler_duplicate_ops", "otelcol_connector_straggler_late_ops",
	"otelcol_connector_straggler_steps_analysed", "otelcol_connector_straggler_steps_unended",
	"otelcol_connector_findings_lost",
}

func (w *killWorld) count(t *testing.T) *killCount {
	t.Helper()
	c := &killCount{agentKills: w.agent.kills, gatewayKills: w.gateway.kills, accused: map[string]int{}, metrics: map[string]int64{}}
	for _, name := range killMetrics {
		c.metrics[name] = w.agent.meter.total(name) + w.gateway.meter.total(name)
	}
	c.spans.produced = w.load.acknowledged()
	c.spans.delivered = c.spans.produced - w.sink.missing(c.spans.produced)
	c.spans.duplicated = w.sink.spansTwice()
	c.spans.reported = int(c.metrics["otelcol_exporter_send_failed_spans"])
	c.steps.reported = stepsMissing(t, w.events)
	for rank, made := range w.stepsMade(t) {
		seen := w.sink.stepsOf(rank)
		c.steps.produced += made
		c.steps.delivered += len(seen)
		for _, times := range seen {
			c.steps.duplicated += times - 1
		}
	}
	c.judged.made = slices.Min(w.stepsMade(t))
	c.judged.whole, c.judged.part = w.sink.judged(c.judged.made, liveRanks)
	c.readFindings(t, w.findings)
	return c
}

// stepsMissing returns how many steps a file of events says were overwritten in a ring, each once.
func stepsMissing(t *testing.T, file string) int {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	missing := map[string]bool{}
	for line := range bytes.Lines(content) {
		var logs logLine
		if json.Unmarshal(line, &logs) != nil {
			continue // cut
		}
		for _, resource := range logs.ResourceLogs {
			rank := textOf(resource.Resource.Attributes, "lockstep.rank")
			for _, scope := range resource.ScopeLogs {
				for _, record := range scope.LogRecords {
					for _, step := range missingIn(record) {
						missing[fmt.Sprint(rank, " ", step)] = true
					}
				}
			}
		}
	}
	return len(missing)
}

func missingIn(record logRecord) (steps []int) {
	if record.EventName != "lockstep.steps.missing" {
		return nil
	}
	first, err := strconv.Atoi(textOf(record.Attributes, "lockstep.steps.missing.first"))
	last, err2 := strconv.Atoi(textOf(record.Attributes, "lockstep.steps.missing.last"))
	for step := first; err == nil && err2 == nil && step <= last; step++ {
		steps = append(steps, step)
	}
	return steps
}

// readFindings reads a file of lines as any reader would: a line that is no JSON is one that was cut.
func (c *killCount) readFindings(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range bytes.Lines(content) {
		var logs logLine
		if json.Unmarshal(line, &logs) != nil {
			c.lines.cut++
			continue
		}
		c.lines.whole++
		for _, f := range logs.findings() {
			c.accused[fmt.Sprintf("%s %s rank %s", f["lockstep.finding.kind"], f["lockstep.finding.class"], f["lockstep.finding.rank"])]++
		}
	}
}

func (c *killCount) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "SIGKILLs: agent %d, gateway %d\n", c.agentKills, c.gatewayKills)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tproduced\tdelivered\tduplicated\treported lost\tsilently lost\t")
	for _, row := range []struct {
		name string
		account
	}{{"spans over OTLP", c.spans}, {"steps of rings", c.steps}} {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t\n", row.name, row.produced, row.delivered, row.duplicated, row.reported, row.silent())
	}
	_ = table.Flush()
	fmt.Fprintf(&b, "steps of the job: %d, judged over all ranks %d, over some %d, never %d\n",
		c.judged.made, c.judged.whole, c.judged.part, c.judged.made-c.judged.whole-c.judged.part)
	fmt.Fprintf(&b, "findings: %d lines, %d cut; %v\n", c.lines.whole, c.lines.cut, c.accused)
	for _, name := range killMetrics {
		fmt.Fprintf(&b, "%s %d\n", name, c.metrics[name])
	}
	return b.String()
}

// meter sums the counters of a collector over its lives.
type meter struct {
	url        string
	mu         sync.Mutex
	life, done map[string]int64
	ended      bool
}

// startMeter reads the counters again and again, since they end with the process.
func startMeter(t *testing.T, url string) *meter {
	t.Helper()
	m := &meter{url: url, life: map[string]int64{}, done: map[string]int64{}}
	repeat(t, 250*time.Millisecond, m.read)
	return m
}

func (m *meter) read() {
	body, err := get(m.url)
	if err != nil {
		return // not there while the collector starts
	}
	life := map[string]int64{}
	for line := range strings.Lines(string(body)) {
		fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune("{ \n", r) })
		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err == nil && !strings.HasPrefix(line, "#") {
			life[fields[0]] += int64(value)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ended {
		m.life = life
	}
}

// end reads the counters a last time.
func (m *meter) end() {
	m.read()
	m.next()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
}

// next ends a life of the collector.
func (m *meter) next() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, value := range m.life {
		m.done[name] += value
	}
	m.life = map[string]int64{}
}

func (m *meter) total(name string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done[name] + m.life[name]
}

// repeat calls a function until the test ends.
func repeat(t *testing.T, every time.Duration, call func()) {
	t.Helper()
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for ticker := time.NewTicker(every); ; {
			select {
			case <-quit:
				ticker.Stop()
				return
			case <-ticker.C:
				call()
			}
		}
	}()
	t.Cleanup(func() {
		close(quit)
		<-done
	})
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), into), text)
}
