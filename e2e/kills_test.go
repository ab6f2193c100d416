// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// stepDeadline is longer than a retry waits, 5 s.
const stepDeadline = "10s"

// killOverlay adds to gateway.yaml exporters of all spans and of step traces, with queues as those
// that are there, and judges incomplete steps soon.
const killOverlay = `yaml:
connectors: {straggler: {deadline: ` + stepDeadline + `}}
exporters:
  otlp_grpc/jaeger: {retry_on_failure: {max_elapsed_time: 0s}} # nobody is there
  otlp_http/sink:
    endpoint: ${env:SINK}
    encoding: json
    compression: none
    sending_queue: {storage: queue_storage, sizer: bytes, queue_size: 268435456}
    retry_on_failure: {max_elapsed_time: 0s}
  otlp_http/story:
    endpoint: ${env:SINK}` + storyPath + `
    encoding: json
    compression: none
    sending_queue: {storage: queue_storage, sizer: bytes, queue_size: 268435456}
service:
  pipelines:
    traces: {exporters: [straggler, desync, otlp_http/sink]}
    traces/story: {exporters: [otlp_grpc/jaeger, otlp_http/story]}
`

// quietLimit is for how long nothing arrives any more: longer than retries wait after an outage of
// seconds, and than a receiver needs to see that a process has ended.
const quietLimit = 30 * time.Second

// TestKills kills an agent and a gateway at random moments, also while they start, under constant
// load of spans over OTLP and of rings. LOCKSTEP_KILLS sets how often, LOCKSTEP_SEED repeats the moments.
//
// What an agent has acknowledged arrives, or a counter says that it was dropped; what arrives twice
// changes no verdict.
func TestKills(t *testing.T) {
	t.Parallel()
	kills := 2
	if tier.Full(t) {
		kills = 30
	}
	kills = environmentNumber(t, "LOCKSTEP_KILLS", kills)
	seed := environmentNumber(t, "LOCKSTEP_SEED", int(time.Now().UnixNano()))
	w := newKillWorld(t)
	w.run(t, rand.New(rand.NewPCG(uint64(seed), 0)), kills)
	got := w.count(t)
	t.Logf("seed %d\n%s", seed, got)
	assert.Positive(t, got.spans.produced)
	assert.Zero(t, got.spans.silent(), "spans that were acknowledged, and neither arrived nor were reported lost")
	assert.Zero(t, got.spans.reported, "no limit was reached")
	assert.Zero(t, got.metrics["otelcol_extension_queue_storage_requests_lost"], "the disk has room")
	assert.Positive(t, got.steps.produced)
	assert.Zero(t, got.steps.silent(), "steps that were in a ring, and neither arrived nor were reported lost")
	assert.LessOrEqual(t, got.lines.cut, kills, "at most one line a kill")
	assert.Equal(t, []string{fmt.Sprintf("straggler host rank %d", slowRank)}, slices.Sorted(maps.Keys(got.accused)))
}

func environmentNumber(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// killWorld is a job, an agent, a gateway, and what counts on both sides of them.
type killWorld struct {
	agent, gateway *killable
	load           *spanLoad
	sink           *spanSink
	workers        []*process
	findings       string
	events         string
}

func newKillWorld(t *testing.T) *killWorld {
	t.Helper()
	ports := freePorts(t, 11)
	dir := t.TempDir()
	rings := ringDirectory(t)
	w := &killWorld{sink: newSpanSink(t), findings: filepath.Join(dir, "findings.jsonl"), events: filepath.Join(dir, "events.jsonl")}
	w.gateway = newKillable(t, "otelcol-lockstep", "gateway.yaml", ports[0], ports[1], map[string]string{
		"LOCKSTEP_OTLP_GRPC_ENDPOINT": ports[2], "LOCKSTEP_OTLP_HTTP_ENDPOINT": ports[3],
		"LOCKSTEP_PROMETHEUS_ENDPOINT": ports[4], "LOCKSTEP_TIMELINE_ENDPOINT": ports[5], "LOCKSTEP_JAEGER_ENDPOINT": ports[6],
		"LOCKSTEP_FINDINGS": w.findings, "LOCKSTEP_EVENTS": w.events,
		"LOCKSTEP_STATE": filepath.Join(dir, "gateway"), "SINK": w.sink.url,
	}, "--config", killOverlay)
	w.agent = newKillable(t, "otelcol-lockstep-agent", "agent.yaml", ports[7], ports[8], map[string]string{
		"LOCKSTEP_OTLP_GRPC_ENDPOINT": ports[9], "LOCKSTEP_OTLP_HTTP_ENDPOINT": ports[10],
		"LOCKSTEP_GATEWAY_ENDPOINT": ports[2], "LOCKSTEP_GATEWAY_INSECURE": "true",
		"LOCKSTEP_DIR": rings, "LOCKSTEP_TRACES": t.TempDir(), "LOCKSTEP_DUMPS": t.TempDir(),
		"LOCKSTEP_STATE": filepath.Join(dir, "agent"),
	})
	w.gateway.start(t)
	w.agent.start(t)
	w.gateway.ready(t)
	w.agent.ready(t)
	w.load = startLoad(t, "http://"+w.agent.env["LOCKSTEP_OTLP_HTTP_ENDPOINT"]+"/v1/traces")
	w.workers = startWorkers(t, rings, "host")
	return w
}

// run kills one of the two again and again, and then lets all that is left arrive.
func (w *killWorld) run(t *testing.T, random *rand.Rand, kills int) {
	t.Helper()
	for range kills {
		w.killOne(t, random)
	}
	w.gateway.ready(t)
	w.agent.ready(t)
	eventually(t, answerLimit, func() error {
		info, err := os.Stat(w.findings)
		if err == nil && info.Size() == 0 {
			err = fmt.Errorf("find a finding in %s: none", w.findings)
		}
		return err
	}, w.agent.process, w.gateway.process)
	w.load.stop()
	for _, worker := range w.workers {
		require.NoError(t, worker.cmd.Process.Signal(syscall.SIGINT))
	}
	for _, worker := range w.workers {
		assert.Zero(t, worker.wait(t, stopLimit))
	}
	w.drain(t)
	w.awaitJudged(t)
	assert.Zero(t, w.agent.end(t))
	assert.Zero(t, w.gateway.end(t))
}

// drain waits until all has arrived that was made, or nothing more arrives.
func (w *killWorld) drain(t *testing.T) {
	t.Helper()
	steps := 0
	for _, made := range w.stepsMade(t) {
		steps += made
	}
	left, since := -1, time.Now()
	for time.Since(since) < quietLimit {
		now := w.sink.missing(w.load.acknowledged()) + steps - w.sink.steps()
		if now == 0 {
			return
		}
		if now != left {
			left, since = now, time.Now()
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// awaitJudged waits until all steps are judged, those that lack ranks at their deadline.
func (w *killWorld) awaitJudged(t *testing.T) {
	t.Helper()
	limit, err := time.ParseDuration(stepDeadline)
	require.NoError(t, err)
	made := slices.Min(w.stepsMade(t))
	for until := time.Now().Add(limit + 3*time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		if whole, _ := w.sink.judged(made, liveRanks); whole == made {
			return
		}
	}
}

// killOne waits up to 4 s, in which there is load, and kills one of the two.
func (w *killWorld) killOne(t *testing.T, random *rand.Rand) {
	t.Helper()
	time.Sleep(time.Duration(random.Int64N(int64(4 * time.Second))))
	victim := w.agent
	if random.IntN(2) == 0 {
		victim = w.gateway
	}
	victim.kill(t)
	victim.start(t)
}

// stepsMade returns how many steps each rank says it has made.
func (w *killWorld) stepsMade(t *testing.T) []int {
	t.Helper()
	steps := make([]int, len(w.workers))
	for rank, worker := range w.workers {
		for line := range strings.Lines(worker.output.String()) {
			var done struct{ Steps int }
			if strings.HasPrefix(line, `{"done":true`) {
				decode(t, line, &done)
				steps[rank] = done.Steps
			}
		}
		require.Positive(t, steps[rank], worker.output)
	}
	return steps
}

// killable is a collector that is started again with all that it has kept.
type killable struct {
	*process
	program string
	args    []string
	env     map[string]string
	health  string
	kills   int
	meter   *meter
}

func newKillable(t *testing.T, program, config, health, telemetry string, env map[string]string, args ...string) *killable {
	t.Helper()
	host, port, err := net.SplitHostPort(telemetry)
	require.NoError(t, err)
	env["LOCKSTEP_HEALTH_ENDPOINT"], env["LOCKSTEP_TELEMETRY_HOST"], env["LOCKSTEP_TELEMETRY_PORT"] = health, host, port
	return &killable{
		program: built(t, program), args: append([]string{"--config", configPath(config)}, args...), env: env,
		health: health, meter: startMeter(t, "http://"+telemetry+"/metrics"),
	}
}

func (k *killable) start(t *testing.T) {
	t.Helper()
	k.process = start(t, k.env, k.program, k.args...)
}

func (k *killable) ready(t *testing.T) {
	t.Helper()
	eventually(t, readyLimit, func() error {
		_, err := get("http://" + k.health + "/")
		return err
	}, k.process)
}

func (k *killable) kill(t *testing.T) {
	t.Helper()
	require.True(t, k.running(), "%s ended: %v\n%s", k.name, k.err, tail(k.output.String(), 4000))
	require.NoError(t, k.cmd.Process.Kill())
	<-k.done
	k.meter.next()
	k.kills++
}

// end stops the collector and returns its status. What the stop interrupts counts as failed and stays in
// the queue: the meter ends before.
func (k *killable) end(t *testing.T) int {
	t.Helper()
	k.meter.end()
	return k.terminate(t, stopLimit)
}
