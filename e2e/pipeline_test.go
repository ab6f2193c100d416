package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	ranks = 8
	// answerLimit covers parsing, analysis, batching and a scrape.
	answerLimit = 2 * time.Minute
)

// One process over the recording of a slowed run: Jaeger shows the step of
// all ranks with links to the last arriver, Prometheus has every rank, and
// the file has the finding.
func TestStandalone(t *testing.T) {
	traces := recording(t, "slow")
	j := startJaeger(t)
	c := startCollector(t, "standalone.yaml", map[string]string{
		"LOCKSTEP_TRACES":          traces,
		"LOCKSTEP_JAEGER_ENDPOINT": j.otlp,
	})
	t.Run("jaeger", func(t *testing.T) { assertStory(t, j, c) })
	t.Run("prometheus", func(t *testing.T) { assertRankSeries(t, c) })
	t.Run("file", func(t *testing.T) { assertFindingFile(t, c) })
	assert.Zero(t, c.terminate(t, stopLimit))
}

// The same through an agent and a gateway.
func TestAgentAndGateway(t *testing.T) {
	traces := recording(t, "slow")
	j := startJaeger(t)
	gateway := startCollector(t, "gateway.yaml", map[string]string{"LOCKSTEP_JAEGER_ENDPOINT": j.otlp})
	agent := startCollector(t, "agent.yaml", map[string]string{
		"LOCKSTEP_TRACES":           traces,
		"LOCKSTEP_GATEWAY_ENDPOINT": gateway.otlp,
		"LOCKSTEP_GATEWAY_INSECURE": "true",
	})
	t.Run("jaeger", func(t *testing.T) { assertStory(t, j, gateway, agent) })
	t.Run("prometheus", func(t *testing.T) { assertRankSeries(t, gateway) })
	assert.Zero(t, agent.terminate(t, stopLimit))
	assert.Zero(t, gateway.terminate(t, stopLimit))
}

// assertStory finds a trace in which every rank has a step span, operations
// are linked to spans of the same trace, and a finding has been rendered.
func assertStory(t *testing.T, j *jaeger, needs ...*collector) {
	t.Helper()
	processes := []*process{j.process}
	for _, c := range needs {
		processes = append(processes, c.process)
	}
	eventually(t, answerLimit, func() error {
		traces, err := j.allTraces()
		if err != nil {
			return err
		}
		return storyIn(traces)
	}, processes...)
}

func storyIn(traces []jaegerTrace) error {
	linked, finding := 0, false
	for _, trace := range traces {
		linked = max(linked, linksWithin(trace))
		for _, span := range trace.Spans {
			finding = finding || strings.HasPrefix(span.Name, "finding ")
		}
	}
	if linked == 0 {
		return fmt.Errorf("find a span linked within its trace: none in %d traces", len(traces))
	}
	if !finding {
		return fmt.Errorf("find a span that renders a finding: none in %d traces", len(traces))
	}
	return nil
}

// linksWithin counts the links whose target is in the trace too.
func linksWithin(trace jaegerTrace) int {
	ids := map[string]bool{}
	for _, span := range trace.Spans {
		ids[span.SpanID] = true
	}
	n := 0
	for _, span := range trace.Spans {
		for _, id := range span.links(trace.TraceID) {
			if ids[id] && id != span.SpanID {
				n++
			}
		}
	}
	return n
}

func assertRankSeries(t *testing.T, c *collector) {
	t.Helper()
	p := startPrometheus(t, c.prometheus)
	for _, name := range []string{"lockstep_wait_caused_seconds_total", "lockstep_wait_suffered_seconds_total"} {
		var found []series
		eventually(t, answerLimit, func() (err error) {
			if found, err = p.query(name); err == nil && len(found) == 0 {
				err = fmt.Errorf("query %s: no series", name)
			}
			return err
		}, p.process, c.process)
		assert.Len(t, found, ranks, "%s", name)
		byRank := map[string]bool{}
		for _, s := range found {
			byRank[s.Metric["lockstep_rank"]] = true
		}
		assert.Len(t, byRank, ranks, "ranks of %s", name)
	}
}

// assertFindingFile finds the event of a straggler in the file of findings.
func assertFindingFile(t *testing.T, c *collector) {
	t.Helper()
	eventually(t, answerLimit, func() error {
		content, err := os.ReadFile(c.findings)
		if err != nil {
			return err
		}
		line, _, _ := strings.Cut(string(content), "\n")
		if !strings.Contains(line, `"lockstep.finding.kind"`) {
			return fmt.Errorf("find an event in %s: %.300s", c.findings, line)
		}
		return nil
	}, c.process)
	content, err := os.ReadFile(c.findings)
	require.NoError(t, err)
	line, _, _ := strings.Cut(string(content), "\n")
	assert.True(t, json.Valid([]byte(line)), "one JSON object a line")
}
