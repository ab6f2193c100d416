// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/faulty"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// findingsOverlay has a gateway open, repeat and close findings of every kind within seconds, and keep them.
const findingsOverlay = `yaml:
extensions: {timeline: {solve_interval: 500ms, save_interval: 500ms, forget_after: 15s}}
connectors:
  straggler: {deadline: 2s, flush_interval: 500ms, repeat_interval: 2s, storage: file_storage}
  desync: {limit_floor: 1s, start_limit: 1s, forget: 15s, check_interval: 250ms, flush_interval: 1s, repeat_interval: 2s, storage: file_storage}
  clocks: {timeline: timeline, solve_interval: 500ms}
  epoch:
    settle: 1s
    silent: 6s
    check_interval: 250ms
    flush_interval: 1s
    repeat_interval: 2s
    fleet: {settle: 4s, silent: 6s}
    resume: {silent: 6s}
    replicas: {silent: 6s}
    log_lines: {silent: 6s}
    storage: file_storage
  findings: {flush_interval: 500ms, storage: file_storage}
exporters:
  json_lines/raw: {path: '${env:RAW}'}
service:
  pipelines:
    logs/epoch: {receivers: [otlp], processors: [memory_limiter], exporters: [epoch]}
    logs/raw: {receivers: [straggler, clocks, desync, epoch], exporters: [findings, json_lines/raw]}
`

const (
	// openTime is longer than a gateway that is idle takes to open a finding of any kind.
	openTime = 5 * time.Second
	// openLimit is how long a gateway that starts under load may take to open or repeat a finding.
	openLimit = time.Minute
	// closeLimit is how long a finding that has ended may stay open after a restart: twice the longest silence, a
	// start, and two intervals.
	closeLimit = time.Minute
)

// TestGatewayKilled_OpenFindingsGoOn kills a gateway with SIGKILL while findings of every kind are open: some go on, others
// end within a second of the kill, and others begin about then. LOCKSTEP_KILLS sets how often, LOCKSTEP_SEED repeats the moments.
//
// After each restart every finding that goes on is open under its id, none is opened a second time, and those that
// have ended are closed. In the end all faults are removed: each finding is closed under the id with which it was opened.
func TestGatewayKilled_OpenFindingsGoOn(t *testing.T) {
	t.Parallel()
	kills := environmentNumber(t, "LOCKSTEP_KILLS", tier.N(t, 3, 30))
	seed := environmentNumber(t, "LOCKSTEP_SEED", int(time.Now().UnixNano()))
	w := newFindingsWorld(t)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	ending := w.load.begin("end0", time.Now)
	for round := range kills {
		w.awaitOpen(t, append(ending, w.lasting...))
		kill := time.Now().Add(openTime)
		for _, job := range ending {
			w.load.remove(job, kill.Add(time.Duration(random.Int64N(int64(2*time.Second)))-time.Second))
		}
		ending = nil
		if round+1 < kills {
			ending = w.load.begin(fmt.Sprintf("end%d", round+1), func() time.Time {
				return kill.Add(-time.Duration(random.Int64N(int64(openTime))))
			})
		}
		w.killAt(t, kill)
		w.awaitKept(t)
	}
	for _, job := range w.lasting {
		w.load.remove(job, time.Now())
	}
	w.awaitClosed(t)
	w.load.stop()
	got := w.tally(t)
	t.Logf("seed %d\n%s", seed, got)
	for _, of := range got.rows {
		assert.Equal(t, kills, of.kept, "%s: open under its id after a restart", of.name)
		assert.Zero(t, of.repeated, "%s: opened again", of.name)
		assert.Zero(t, of.leftOpen, "%s: left open", of.name)
	}
	assert.Empty(t, got.others, "findings of no fault")
	assert.Empty(t, w.miscounted, "findings that lockstep.findings counts as opened")
	assert.Zero(t, w.gateway.end(t))
}

// findingsWorld is a gateway that receives faults, and what it writes.
type findingsWorld struct {
	gateway    *killable
	load       *faultLoad
	url        string // of OTLP over HTTP
	prometheus string
	lasting    []*faultJob
	// raw are the findings of the connectors that open them, repetitions too; out are the changes that the findings
	// connector gives out.
	raw, out   *findingFile
	kills      []killed
	miscounted []string
}

// killed is how many lines there were at a kill.
type killed struct{ raw, out int }

func newFindingsWorld(t *testing.T) *findingsWorld {
	t.Helper()
	w := newFindingsGateway(t)
	w.load = startFaults(t, w.url)
	w.lasting = w.load.begin("last", time.Now)
	return w
}

// newFindingsGateway starts a gateway that receives nothing yet.
func newFindingsGateway(t *testing.T) *findingsWorld {
	t.Helper()
	ports := freePorts(t, 7)
	dir := t.TempDir()
	w := &findingsWorld{
		raw: &findingFile{file: filepath.Join(dir, "raw.jsonl")}, out: &findingFile{file: filepath.Join(dir, "findings.jsonl")},
		url: "http://" + ports[3], prometheus: "http://" + ports[4] + "/metrics",
	}
	w.gateway = newKillable(t, "otelcol-lockstep", "gateway.yaml", ports[0], ports[1], map[string]string{
		"LOCKSTEP_OTLP_GRPC_ENDPOINT": ports[2], "LOCKSTEP_OTLP_HTTP_ENDPOINT": ports[3],
		"LOCKSTEP_PROMETHEUS_ENDPOINT": ports[4], "LOCKSTEP_TIMELINE_ENDPOINT": ports[5], "LOCKSTEP_JAEGER_ENDPOINT": ports[6],
		"LOCKSTEP_FINDINGS": w.out.file, "RAW": w.raw.file, "LOCKSTEP_EVENTS": filepath.Join(dir, "events.jsonl"), "LOCKSTEP_STATE": filepath.Join(dir, "state"),
	}, "--config", findingsOverlay)
	w.gateway.start(t)
	w.gateway.ready(t)
	return w
}

// killAt kills the gateway and starts it again.
func (w *findingsWorld) killAt(t *testing.T, kill time.Time) {
	t.Helper()
	time.Sleep(time.Until(kill))
	w.gateway.kill(t)
	w.kills = append(w.kills, killed{len(w.raw.read(t)), len(w.out.read(t))})
	w.gateway.start(t)
	w.gateway.ready(t)
}

// awaitOpen waits until the findings of all jobs are open.
func (w *findingsWorld) awaitOpen(t *testing.T, jobs []*faultJob) {
	t.Helper()
	eventually(t, openLimit, func() error {
		lines := w.out.read(t)
		w.load.retire(lines)
		for _, job := range jobs {
			if last := job.last(lines); last == nil || last.closed() {
				return fmt.Errorf("find an open finding of %s: got %v; its connector reported %v", job, last, job.last(w.raw.read(t)))
			}
		}
		return nil
	}, w.gateway.process)
}

// awaitKept waits until the findings that last were repeated since the kill, and compares what was opened since then with
// what the gateway counts.
func (w *findingsWorld) awaitKept(t *testing.T) {
	t.Helper()
	at := w.kills[len(w.kills)-1]
	eventually(t, openLimit, func() error {
		lines := w.raw.read(t)[at.raw:]
		for _, job := range w.lasting {
			if last := job.last(lines); last == nil && !job.silent() {
				return fmt.Errorf("find that the finding of %s goes on: got none", job)
			}
		}
		return nil
	}, w.gateway.process)
	counted := openedCount(t, w.prometheus)
	var fresh int
	for until := time.Now().Add(openTime); ; time.Sleep(100 * time.Millisecond) { // they are counted before they are written
		if fresh = newSince(w.out.read(t), at.out); fresh >= counted || time.Now().After(until) {
			break
		}
	}
	if counted > fresh {
		w.miscounted = append(w.miscounted, fmt.Sprintf("kill %d: %d counted as opened, %d are new", len(w.kills), counted, fresh))
	}
}

// awaitClosed waits until all findings that have ended are closed, or may no longer be open.
func (w *findingsWorld) awaitClosed(t *testing.T) {
	t.Helper()
	for until := time.Now().Add(closeLimit); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		if len(w.load.open(w.out.read(t))) == 0 {
			return
		}
	}
}

// tally counts over all lines.
func (w *findingsWorld) tally(t *testing.T) *findingsTally {
	t.Helper()
	raw, out := w.raw.read(t), w.out.read(t)
	c := &findingsTally{kills: w.gateway.kills, others: w.load.others(raw)}
	for i, of := range faulty.Faults() {
		row := findingsRow{name: of.Name}
		for _, job := range w.load.of(i) {
			row.repeated += job.repeated(out)
			row.leftOpen += job.leftOpen(out)
		}
		for _, at := range w.kills {
			row.kept += w.lasting[i].kept(raw, at.raw)
		}
		c.rows = append(c.rows, row)
	}
	return c
}
