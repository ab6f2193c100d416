// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// balancedOverlay adds to gateway.yaml exporters of all spans and of step traces, as killOverlay does, and has
// missing spans decided soon.
const balancedOverlay = killOverlay + `
extensions: {sequence: {wait: 4s}}
`

// balancedAgentOverlay has agents try again sooner than the wait of the gateways.
const balancedAgentOverlay = `yaml:
exporters: {load_balancing: {retry_on_failure: {initial_interval: 500ms, max_interval: 1s}}}
`

// TestBalanced_GatewayKilled_LossIsCounted kills gateways at random moments under load. Each operation is in a step
// that was concluded, or is counted as lost; a step that lost some says how many. LOCKSTEP_KILLS sets how often,
// LOCKSTEP_SEED repeats the moments.
func TestBalanced_GatewayKilled_LossIsCounted(t *testing.T) {
	t.Parallel()
	kills := 2
	if tier.Full(t) {
		kills = 20
	}
	kills = environmentNumber(t, "LOCKSTEP_KILLS", kills)
	seed := environmentNumber(t, "LOCKSTEP_SEED", int(time.Now().UnixNano()))
	w := newBalancedWorld(t)
	w.run(t, rand.New(rand.NewPCG(uint64(seed), 0)), kills)
	got := w.count(t)
	t.Logf("seed %d, %d SIGKILLs\n%s", seed, kills, got)
	assert.Positive(t, got.whole)
	assert.Positive(t, got.lost, "gateways had open steps in memory")
	assert.Equal(t, got.arrived, got.produced+got.stepless, "the gateways have counted what the test has")
	assert.Zero(t, got.gap, "everything arrived")
	silent := got.produced - got.whole - got.flagged - got.lost
	assert.GreaterOrEqual(t, silent, 0, "operations that were counted as lost, and are in a step")
	assert.LessOrEqual(t, silent, got.uncertain, "operations that are in no step, and not counted")
	assert.Equal(t, got.stepsLost, got.eventSpans, "the events have all that the counter has")
	assert.Equal(t, []string{fmt.Sprintf("straggler host rank %d", slowRank)}, slices.Sorted(maps.Keys(got.accused)))
}

// balancedWorld is a job of rings at one agent, jobs over OTLP at two agents, and two gateways.
type balancedWorld struct {
	agents, gateways []*killable
	findings, events []string
	load             *stepLoad
	sink             *balancedSink
	workers          []*process
}

func newBalancedWorld(t *testing.T) *balancedWorld {
	t.Helper()
	dir := t.TempDir()
	ports := freePorts(t, 2*7+2*4)
	w := &balancedWorld{sink: newBalancedSink(t)}
	var gateways []string
	for i := range 2 {
		name, p := fmt.Sprint("gateway", i), ports[7*i:]
		findings, events := filepath.Join(dir, name+"-findings.jsonl"), filepath.Join(dir, name+"-events.jsonl")
		w.findings, w.events = append(w.findings, findings), append(w.events, events)
		w.gateways = append(w.gateways, newKillable(t, "otelcol-lockstep", "gateway.yaml", p[0], p[1], map[string]string{
			"LOCKSTEP_OTLP_GRPC_ENDPOINT": p[2], "LOCKSTEP_OTLP_HTTP_ENDPOINT": p[3],
			"LOCKSTEP_PROMETHEUS_ENDPOINT": p[4], "LOCKSTEP_TIMELINE_ENDPOINT": p[5], "LOCKSTEP_JAEGER_ENDPOINT": p[6],
			"LOCKSTEP_FINDINGS": findings, "LOCKSTEP_EVENTS": events,
			"LOCKSTEP_STATE": filepath.Join(dir, name), "SINK": w.sink.url,
		}, "--config", balancedOverlay))
		gateways = append(gateways, p[2])
	}
	rings := ringDirectory(t)
	for i := range 2 {
		p, of := ports[14+4*i:], rings
		if i > 0 {
			of = t.TempDir()
		}
		w.agents = append(w.agents, newKillable(t, "otelcol-lockstep", "agent-balanced.yaml", p[0], p[1], map[string]string{
			"LOCKSTEP_OTLP_GRPC_ENDPOINT": p[2], "LOCKSTEP_OTLP_HTTP_ENDPOINT": p[3],
			"LOCKSTEP_GATEWAYS": "[" + strings.Join(gateways, ", ") + "]", "LOCKSTEP_GATEWAY_INSECURE": "true",
			"LOCKSTEP_DIR": of, "LOCKSTEP_TRACES": t.TempDir(), "LOCKSTEP_DUMPS": t.TempDir(),
			"LOCKSTEP_STATE": filepath.Join(dir, fmt.Sprint("agent", i)),
		}, "--config", balancedAgentOverlay))
	}
	all := slices.Concat(w.gateways, w.agents)
	for _, k := range all {
		k.start(t)
	}
	var ends []string
	for _, k := range all {
		k.ready(t)
	}
	for _, a := range w.agents {
		ends = append(ends, (&url.URL{Scheme: "http", Host: a.env["LOCKSTEP_OTLP_HTTP_ENDPOINT"], Path: "/v1/traces"}).String())
	}
	w.load = startStepLoad(t, ends)
	w.workers = startWorkers(t, rings, "host")
	return w
}

// run kills gateways again and again, and then lets all that is left arrive and be decided.
func (w *balancedWorld) run(t *testing.T, random *rand.Rand, kills int) {
	t.Helper()
	for range kills {
		time.Sleep(2*time.Second + time.Duration(random.Int64N(int64(2*time.Second)))) // steps are open by then
		victim := w.gateways[random.IntN(len(w.gateways))]
		victim.kill(t)
		victim.start(t)
	}
	all := slices.Concat(w.gateways, w.agents)
	for _, k := range all {
		k.ready(t)
	}
	eventually(t, answerLimit, w.accuses, all[0].process, all[1].process, all[2].process)
	w.load.stop()
	for _, worker := range w.workers {
		require.NoError(t, worker.cmd.Process.Signal(syscall.SIGINT))
	}
	for _, worker := range w.workers {
		assert.Zero(t, worker.wait(t, stopLimit))
	}
	eventually(t, answerLimit, func() error {
		if missing := w.load.produced() - w.sink.ofLoad(); missing != 0 {
			return fmt.Errorf("wait for the spans of the load: %d are missing", missing)
		}
		return nil
	})
	// Deadlines close the steps of which nothing more comes, and the wait of the ledger is over.
	eventually(t, answerLimit, func() error {
		for _, g := range w.gateways {
			if open := sequenceMetric(t, g, "otelcol_extension_sequence_spans_open", ""); open != 0 {
				return fmt.Errorf("wait for the spans of open steps: %d", open)
			}
		}
		return nil
	})
	w.sink.settle()
}

// accuses returns an error until a finding is written.
func (w *balancedWorld) accuses() error {
	for _, file := range w.findings {
		if info, err := os.Stat(file); err == nil && info.Size() > 0 {
			return nil
		}
	}
	return fmt.Errorf("find a finding in %v: none", w.findings)
}

// balancedCount is where operations have gone: those in the steps that were concluded whole and in those that say that
// some were lost, and those that counters have.
type balancedCount struct {
	produced, stepless             int
	whole, flagged                 int
	steps, stepsFlagged, stepsGone int
	arrived, lost, uncertain, gap  int
	stepsLost, eventSpans          int
	accused                        map[string]int
}

func (w *balancedWorld) count(t *testing.T) *balancedCount {
	t.Helper()
	c := &balancedCount{accused: map[string]int{}}
	for _, g := range w.gateways {
		of := func(outcome string) int { return sequenceMetric(t, g, "otelcol_extension_sequence_spans", outcome) }
		c.arrived += sequenceMetric(t, g, "otelcol_extension_sequence_arrivals", "")
		c.lost, c.uncertain, c.gap = c.lost+of("lost"), c.uncertain+of("uncertain"), c.gap+of("gap")+of("elsewhere")+of("forgotten")
	}
	c.stepsLost = c.lost + c.uncertain
	for _, k := range slices.Concat(w.agents, w.gateways) {
		assert.Zero(t, k.end(t))
	}
	for i, file := range w.findings {
		var of killCount
		of.accused = c.accused
		if _, err := os.Stat(file); err == nil {
			of.readFindings(t, file)
		}
		c.eventSpans += spansLost(t, w.events[i])
	}
	w.sink.count(c)
	return c
}

func (c *balancedCount) String() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tproduced\tin whole steps\tin flagged steps\tcounted lost\tuncertain\tneither in a step nor lost\t")
	fmt.Fprintf(table, "operations\t%d\t%d\t%d\t%d\t%d\t%d\t\n", c.produced, c.whole, c.flagged, c.lost, c.uncertain, c.produced-c.whole-c.flagged-c.lost)
	_ = table.Flush()
	fmt.Fprintf(&b, "steps: %d, flagged %d, without a trace %d; other spans: %d\nfindings: %v\n", c.steps, c.stepsFlagged, c.stepsGone, c.stepless, c.accused)
	return b.String()
}
