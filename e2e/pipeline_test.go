// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strconv"
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

// One process over eight ranks' traces: Jaeger shows the step of all ranks with
// links to the last arriver, Prometheus has every rank, and the file has the
// finding that is known to be right.
func TestStandalone(t *testing.T) {
	t.Parallel()
	t.Run("recording", func(t *testing.T) {
		traces := recording(t, "slow")
		assertStandalone(t, traces, expected(t, traces))
	})
	// A real training run on eight GPUs, whose rank 7 was held up by its host.
	t.Run("dlrm", func(t *testing.T) {
		rank := int64(7)
		assertStandalone(t, sharedData(t, "dlrm-8xV100"), truth{Rank: &rank, Class: "host"})
	})
}

func assertStandalone(t *testing.T, traces string, want truth) {
	t.Helper()
	j := startJaeger(t)
	c := startCollector(t, "standalone.yaml", map[string]string{
		"LOCKSTEP_TRACES":          traces,
		"LOCKSTEP_JAEGER_ENDPOINT": j.otlp,
	})
	t.Run("links", func(t *testing.T) { assertLinks(t, j, ranks, c) })
	t.Run("prometheus", func(t *testing.T) { assertRankSeries(t, c, ranks) })
	t.Run("file", func(t *testing.T) { assertFinding(t, c, want) })
	assert.Zero(t, c.terminate(t, stopLimit))
	t.Run("finding span", func(t *testing.T) { assertFindingSpan(t, j) })
	t.Run("spans", func(t *testing.T) { assertAnnotatedSpans(t, c, want) })
}

// assertAnnotatedSpans reads the file of all operations: members of collectives
// say whom they waited for, and the command finds in it what the collector found.
func assertAnnotatedSpans(t *testing.T, c *collector, want truth) {
	t.Helper()
	content, err := os.ReadFile(c.spans)
	require.NoError(t, err)
	assert.Contains(t, string(content), `"lockstep.wait.owed_to"`)
	assert.Contains(t, string(content), `"lockstep.summary.wait"`)
	got, status := analyze(t, built(t, "lockstep"), c.spans)
	assert.Equal(t, statusFindings, status)
	require.NotEmpty(t, got.Findings)
	assert.Equal(t, *want.Rank, *got.Findings[0].Rank)
	assert.Equal(t, want.Class, got.Findings[0].Class)
}

// The healthy twin of the recording has waits as well, and nobody to blame.
func TestStandaloneHealthy(t *testing.T) {
	t.Parallel()
	c := startCollector(t, "standalone.yaml", map[string]string{
		"LOCKSTEP_TRACES":          recording(t, "healthy"),
		"LOCKSTEP_JAEGER_ENDPOINT": startJaeger(t).otlp,
	})
	assertRankSeries(t, c, ranks)
	assert.Zero(t, c.terminate(t, stopLimit))
	found, err := findingsIn(c.findings)
	require.NoError(t, err)
	assert.Empty(t, found)
}

// The slowed run through an agent and a gateway.
func TestAgentAndGateway(t *testing.T) {
	t.Parallel()
	traces := recording(t, "slow")
	j := startJaeger(t)
	gateway := startCollector(t, "gateway.yaml", map[string]string{"LOCKSTEP_JAEGER_ENDPOINT": j.otlp})
	agent := startCollector(t, "agent.yaml", map[string]string{
		"LOCKSTEP_TRACES":           traces,
		"LOCKSTEP_GATEWAY_ENDPOINT": gateway.otlp,
		"LOCKSTEP_GATEWAY_INSECURE": "true",
	})
	t.Run("links", func(t *testing.T) { assertLinks(t, j, ranks, gateway, agent) })
	t.Run("prometheus", func(t *testing.T) { assertRankSeries(t, gateway, ranks) })
	t.Run("file", func(t *testing.T) { assertFinding(t, gateway, expected(t, traces)) })
	assert.Zero(t, agent.terminate(t, stopLimit))
	assert.Zero(t, gateway.terminate(t, stopLimit))
	t.Run("finding span", func(t *testing.T) { assertFindingSpan(t, j) })
}

// assertLinks finds a trace that holds operations of all ranks, some of them
// linked to others of the same trace.
func assertLinks(t *testing.T, j *jaeger, ranks int, needs ...*collector) {
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
		for _, trace := range traces {
			if len(trace.ranks()) == ranks && trace.linksWithin() > 0 {
				return nil
			}
		}
		return fmt.Errorf("find a trace of %d ranks with links: %s", ranks, describe(traces))
	}, processes...)
}

func describe(traces []jaegerTrace) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d traces", len(traces))
	for i, trace := range traces {
		if i == 10 {
			b.WriteString("; ...")
			break
		}
		fmt.Fprintf(&b, "; %d spans of %d ranks, %d links", len(trace.Spans), len(trace.ranks()), trace.linksWithin())
	}
	return b.String()
}

// assertFindingSpan finds the span of a finding. It is written when the finding
// closes, at the latest when the collector stops.
func assertFindingSpan(t *testing.T, j *jaeger) {
	t.Helper()
	eventually(t, answerLimit, func() error {
		traces, err := j.allTraces()
		if err != nil {
			return err
		}
		for _, trace := range traces {
			for _, span := range trace.Spans {
				if strings.HasPrefix(span.Name, "finding ") {
					return nil
				}
			}
		}
		return fmt.Errorf("find a span that renders a finding: %s", describe(traces))
	}, j.process)
}

// assertRankSeries scrapes the collector and expects one series per rank.
func assertRankSeries(t *testing.T, c *collector, ranks int) {
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

// assertFinding finds the straggler of the recording in the file of findings.
func assertFinding(t *testing.T, c *collector, want truth) {
	t.Helper()
	rank := strconv.FormatInt(*want.Rank, 10)
	var found []finding
	eventually(t, answerLimit, func() (err error) {
		if found, err = findingsIn(c.findings); err == nil && len(found) == 0 {
			err = fmt.Errorf("find an event in %s: none", c.findings)
		}
		return err
	}, c.process)
	for _, f := range found {
		assert.Equal(t, "straggler", f["lockstep.finding.kind"])
		assert.Equal(t, want.Class, f["lockstep.finding.class"])
		assert.Equal(t, rank, f["lockstep.finding.rank"])
	}
}
