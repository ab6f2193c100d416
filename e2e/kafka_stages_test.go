// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// sinkOverlay adds to concluder-kafka.yaml exporters of all spans and of step traces to a sink. A killed gateway's
// partitions go to another one after 6 s, which is less than a step waits for its last ranks.
const sinkOverlay = `yaml:
receivers: {job_kafka: {session_timeout: 6s}}
exporters:
  otlp_grpc/jaeger: {retry_on_failure: {max_elapsed_time: 0s}} # nothing listens there
  otlp_http/sink: {endpoint: '${env:SINK}', encoding: json, compression: none, sending_queue: {enabled: false}, retry_on_failure: {max_elapsed_time: 0s}}
  otlp_http/story: {endpoint: '${env:SINK}` + storyPath + `', encoding: json, compression: none, sending_queue: {storage: queue_storage}, retry_on_failure: {max_elapsed_time: 0s}}
service:
  pipelines:
    traces: {exporters: [straggler, desync, otlp_http/sink]}
    traces/story: {exporters: [otlp_grpc/jaeger, otlp_http/story]}
`

// stageWorld is a live job, an agent, Kafka, gateways, concluders, and what counts on both sides.
type stageWorld struct {
	kafka       *kafka
	agent       *kafkaAgent
	gateways    []*killable
	concluders  []*killable
	sink        *spanSink
	load        *spanLoad
	workers     []*process
	findings    []string
	rings       string
	prefix      string // of topics and groups
	brokerKills int
	// beforeStart, if any, is called with each collector, its configuration and the directory of its state, "" for none.
	beforeStart func(name, config string, c *killable, state string)
}

// newStageWorld starts all but the job.
func newStageWorld(t *testing.T, k *kafka, prefix string, gateways, concluders int) *stageWorld {
	t.Helper()
	w := &stageWorld{}
	w.prepare(t, k, prefix, gateways, concluders)
	return w
}

func (w *stageWorld) prepare(t *testing.T, k *kafka, prefix string, gateways, concluders int) {
	t.Helper()
	w.kafka, w.prefix, w.sink = k, prefix, newSpanSink(t)
	for _, topic := range []string{operationsTopic, eventsTopic, jobsTopic, jobEventsTopic} {
		k.topic(t, prefix+topic, 4, nil)
	}
	k.topic(t, prefix+clocksTopic, 4, clocksSettings)
	w.agent = newKafkaAgent(t, k.plain)
	maps.Copy(w.agent.env, w.topics())
	w.rings = w.agent.env["LOCKSTEP_DIR"]
	for range gateways {
		w.gateways = append(w.gateways, w.newGateway(t))
	}
	for i := range concluders {
		w.concluders = append(w.concluders, w.newConcluder(t, i))
	}
	if w.beforeStart != nil {
		w.beforeStart("agent", "agent-kafka.yaml", w.agent.killable, w.agent.state)
		for _, c := range w.gateways {
			w.beforeStart("gateway", "gateway-kafka.yaml", c, "")
		}
		for _, c := range w.concluders {
			w.beforeStart("concluder", "concluder-kafka.yaml", c, c.env["LOCKSTEP_STATE"])
		}
	}
	for _, c := range w.all() {
		c.start(t)
	}
	for _, c := range w.all() {
		c.ready(t)
	}
}

// topics are those of the world, as configurations take them.
func (w *stageWorld) topics() map[string]string {
	return map[string]string{
		"LOCKSTEP_KAFKA_OPERATIONS": w.prefix + operationsTopic, "LOCKSTEP_KAFKA_EVENTS": w.prefix + eventsTopic,
		"LOCKSTEP_KAFKA_JOBS": w.prefix + jobsTopic, "LOCKSTEP_KAFKA_JOB_EVENTS": w.prefix + jobEventsTopic,
		"LOCKSTEP_KAFKA_CLOCKS": w.prefix + clocksTopic,
	}
}

func (w *stageWorld) all() []*killable {
	return slices.Concat([]*killable{w.agent.killable}, w.gateways, w.concluders)
}

func (w *stageWorld) newGateway(t *testing.T) *killable {
	t.Helper()
	ports := freePorts(t, 3)
	env := w.topics()
	maps.Copy(env, map[string]string{"LOCKSTEP_KAFKA_BROKERS": w.kafka.plain, "LOCKSTEP_TIMELINE_ENDPOINT": ports[2]})
	return newKillable(t, "otelcol-lockstep", "gateway-kafka.yaml", ports[0], ports[1], env,
		"--config", "yaml:{receivers: {job_kafka: {session_timeout: 6s, group_id: "+w.prefix+"gateways}}}")
}

func (w *stageWorld) newConcluder(t *testing.T, i int) *killable {
	t.Helper()
	ports, dir := freePorts(t, 4), t.TempDir()
	w.findings = append(w.findings, filepath.Join(dir, "findings.jsonl"))
	env := w.topics()
	maps.Copy(env, map[string]string{
		"LOCKSTEP_KAFKA_BROKERS": w.kafka.plain, "LOCKSTEP_KAFKA_INSTANCE": fmt.Sprintf("concluder-%d", i),
		"LOCKSTEP_PROMETHEUS_ENDPOINT": ports[2], "LOCKSTEP_JAEGER_ENDPOINT": ports[3], "SINK": w.sink.url,
		"LOCKSTEP_FINDINGS": w.findings[i], "LOCKSTEP_EVENTS": filepath.Join(dir, "events.jsonl"), "LOCKSTEP_STATE": filepath.Join(dir, "state"),
	})
	return newKillable(t, "otelcol-lockstep", "concluder-kafka.yaml", ports[0], ports[1], env,
		"--config", sinkOverlay, "--config", "yaml:{receivers: {job_kafka: {group_id: "+w.prefix+"concluders}}}")
}

// killOne waits up to 4 s, in which there is load, and kills one process or the broker.
func (w *stageWorld) killOne(t *testing.T, random *rand.Rand) {
	t.Helper()
	time.Sleep(time.Duration(random.Int64N(int64(4 * time.Second))))
	all := w.all()
	n := random.IntN(len(all) + 1)
	if n == len(all) {
		w.brokerKills++
		w.kafka.kill(t)
		time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
		w.kafka.start(t)
		w.kafka.ready(t)
		return
	}
	all[n].kill(t)
	all[n].start(t)
}

// produce runs a live job and a load of other spans, while something happens, and waits until all arrived.
func (w *stageWorld) produce(t *testing.T, happens func()) {
	t.Helper()
	w.load = startLoad(t, w.agent.url)
	w.workers = startWorkers(t, w.rings, "host")
	happens()
	for _, c := range w.all() {
		c.ready(t)
	}
	w.load.stop()
	for _, worker := range w.workers {
		require.NoError(t, worker.cmd.Process.Signal(syscall.SIGINT))
	}
	for _, worker := range w.workers {
		assert.Zero(t, worker.wait(t, stopLimit))
	}
	k := &killWorld{sink: w.sink, load: w.load, workers: w.workers}
	k.drain(t)
	k.awaitJudged(t)
}

// accused returns what the findings of all concluders name, with the ids of each.
func (w *stageWorld) accused(t *testing.T) (accused map[string]int, ids map[string]bool) {
	t.Helper()
	accused, ids = map[string]int{}, map[string]bool{}
	for _, file := range w.findings {
		c := &killCount{accused: accused}
		c.readFindings(t, file)
		for id := range findingIDs(t, file) {
			ids[id] = true
		}
	}
	return accused, ids
}

// An agent, a gateway, the concluder and the broker are killed at random moments, under the load of a live job and
// of other spans. What the agent has acknowledged arrives, each step is concluded whole, and the finding is the one
// that an undisturbed run has. LOCKSTEP_KILLS sets how often, LOCKSTEP_SEED repeats the moments.
func TestKafka_StagesKilled_NothingIsLost(t *testing.T) {
	t.Parallel()
	kills := environmentNumber(t, "LOCKSTEP_KILLS", tier.N(t, 4, 30))
	seed := environmentNumber(t, "LOCKSTEP_SEED", int(time.Now().UnixNano()))
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	w := newStageWorld(t, startKafka(t, false, nil), "", 2, 1)
	w.produce(t, func() {
		for range kills {
			w.killOne(t, random)
		}
	})
	produced := w.load.acknowledged()
	missing := w.sink.missing(produced)
	k := &killWorld{sink: w.sink, workers: w.workers}
	made := k.stepsMade(t)
	steps, arrived := 0, w.sink.steps()
	for _, n := range made {
		steps += n
	}
	whole, part := w.sink.judged(slices.Min(made), liveRanks)
	accused, ids := w.accused(t)
	t.Logf("seed %d; SIGKILLs: agent %d, gateways %d, concluder %d, broker %d\nspans: produced %d, delivered %d, duplicated %d, silently lost %d\nsteps of ranks: produced %d, delivered %d\nsteps: %d, concluded over all ranks %d, over some %d\nfindings: %v, ids %d",
		seed, w.agent.kills, w.gateways[0].kills+w.gateways[1].kills, w.concluders[0].kills, w.brokerKills,
		produced, produced-missing, w.sink.spansTwice(), missing, steps, arrived, slices.Min(made), whole, part, accused, len(ids))
	assert.Positive(t, produced)
	assert.Zero(t, missing, "spans that were acknowledged and did not arrive")
	assert.Equal(t, steps, arrived, "steps of ranks")
	assert.Equal(t, slices.Min(made), whole, "steps that are concluded over all ranks")
	assert.Zero(t, w.sink.unlikeSteps(), "steps that are concluded twice with different ranks")
	assert.Equal(t, []string{fmt.Sprintf("straggler host rank %d", slowRank)}, slices.Sorted(maps.Keys(accused)))
	assert.Len(t, ids, 1, "one finding over all kills")
	for _, c := range w.all() {
		assert.Zero(t, c.end(t), c.name)
	}
}

// findingIDs returns the ids of the findings in a file of lines.
func findingIDs(t *testing.T, file string) map[string]bool {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	ids := map[string]bool{}
	for line := range bytes.Lines(content) {
		var logs logLine
		if json.Unmarshal(line, &logs) != nil {
			continue // cut
		}
		for _, f := range logs.findings() {
			ids[f["lockstep.finding.id"]] = true
		}
	}
	return ids
}

// stageVariant is how a recorded topic is read: by so many gateways, of which one may be killed.
type stageVariant struct {
	name     string
	gateways int
	killed   bool
}

// sameClocks is the number of partitions of the topic of clocks, which each gateway reads in testGateways.
const sameClocks = 8

// One recorded topic gives the same findings, by id, whether one gateway reads it, or four, or four of which one is
// killed in between, and each step is concluded once, over all ranks.
func testGateways(t *testing.T, k *kafka) {
	t.Helper()
	w := &stageWorld{kafka: k, prefix: "same-"}
	k.topic(t, w.prefix+operationsTopic, 8, nil)
	k.topic(t, w.prefix+eventsTopic, 8, nil)
	k.topic(t, w.prefix+clocksTopic, sameClocks, clocksSettings)
	w.agent = newKafkaAgent(t, k.plain)
	maps.Copy(w.agent.env, w.topics())
	w.agent.start(t)
	w.agent.ready(t)
	w.sink = newSpanSink(t)
	workers := startWorkers(t, w.agent.env["LOCKSTEP_DIR"], "host")
	time.Sleep(time.Duration(tier.N(t, 8, 30)) * time.Second)
	for _, worker := range workers {
		require.NoError(t, worker.cmd.Process.Signal(syscall.SIGINT))
	}
	for _, worker := range workers {
		assert.Zero(t, worker.wait(t, stopLimit))
	}
	made := (&killWorld{workers: workers}).stepsMade(t)
	steps := slices.Min(made)
	eventually(t, readyLimit, func() error { return atLeast(stepsIn(t, k, w.prefix+operationsTopic), liveRanks*steps) }, w.agent.process, w.kafka.process)
	assert.Zero(t, w.agent.end(t))

	var want []string
	for _, v := range []stageVariant{{"one", 1, false}, {"four", 4, false}, {"killed", 4, true}} {
		ids, whole := w.read(t, v, steps)
		assert.Equal(t, steps, whole, "%s: steps that were concluded over all ranks", v.name)
		assert.Zero(t, w.sink.unlikeSteps(), "%s: steps that were concluded twice with different ranks", v.name)
		if want == nil {
			want = ids
		}
		assert.Equal(t, want, ids, v.name)
	}
	assert.Len(t, want, 1)
}

// stepsIn returns how many steps of ranks a topic has, each once.
func stepsIn(t *testing.T, k *kafka, topic string) int {
	t.Helper()
	seen := map[string]bool{}
	for _, m := range k.records(t, topic) {
		for _, s := range spansOfRecord(t, m) {
			if s.Name() == "step" {
				id := s.SpanID()
				seen[id.String()] = true
			}
		}
	}
	return len(seen)
}

// read reads the topic of operations in a way, and returns the ids of the findings and how many steps were concluded.
func (w *stageWorld) read(t *testing.T, v stageVariant, steps int) (ids []string, whole int) {
	t.Helper()
	jobs, events := "jobs-"+v.name, "events-"+v.name
	topics := func() {
		w.kafka.topic(t, jobs, 4, nil)
		w.kafka.topic(t, events, 4, nil)
	}
	if !v.killed {
		topics()
	}
	w.sink, w.gateways, w.concluders, w.findings = newSpanSink(t), nil, nil, nil
	for range v.gateways {
		w.gateways = append(w.gateways, w.newGateway(t))
	}
	w.concluders = []*killable{w.newConcluder(t, 0)}
	all := slices.Concat(w.gateways, w.concluders)
	for _, c := range all {
		c.env["LOCKSTEP_KAFKA_JOBS"], c.env["LOCKSTEP_KAFKA_JOB_EVENTS"] = jobs, events
		group := "gateways-" + v.name
		if c == w.concluders[0] {
			group = "concluders-" + v.name
		}
		c.args = append(c.args, "--config", "yaml:{receivers: {job_kafka: {group_id: "+group+", batch_bytes: 20000}}}")
		c.start(t)
	}
	if v.killed {
		// Without the topics that they write, gateways have read their first records, and wait.
		eventually(t, readyLimit, func() error {
			return atLeast(int(w.gateways[0].meter.total("otelcol_receiver_job_kafka_partitions")), sameClocks+1)
		}, w.gateways[0].process)
		time.Sleep(time.Second)
		w.gateways[0].kill(t)
		all = all[1:]
		topics()
	}
	for _, c := range all {
		// A gateway whose partition went to another one before the topics were there has nothing to write: its health
		// keeps the error.
		if !v.killed || c == w.concluders[0] {
			c.ready(t)
		}
	}
	for until := time.Now().Add(2 * readyLimit); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		if whole, _ = w.sink.judged(steps, liveRanks); whole == steps {
			break
		}
	}
	whole, _ = w.sink.judged(steps, liveRanks)
	for _, c := range all {
		assert.Zero(t, c.end(t), c.name)
	}
	_, found := w.accused(t)
	return slices.Sorted(maps.Keys(found)), whole
}

// Gateways and concluders are added and removed under load, so that partitions move in the middle of steps. No step
// is concluded twice with different results, and each is concluded over all ranks.
func testMembersChange(t *testing.T, k *kafka) {
	t.Helper()
	w := newStageWorld(t, k, "moved-", 1, 1)
	w.produce(t, func() {
		time.Sleep(3 * time.Second)
		gateway, concluder := w.newGateway(t), w.newConcluder(t, 1)
		for _, c := range []*killable{gateway, concluder} {
			c.start(t)
			c.ready(t)
		}
		time.Sleep(5 * time.Second)
		for _, c := range []*killable{w.gateways[0], w.concluders[0]} {
			assert.Zero(t, c.end(t), c.name)
		}
		w.gateways, w.concluders = []*killable{gateway}, []*killable{concluder}
		time.Sleep(5 * time.Second)
	})
	made := slices.Min((&killWorld{workers: w.workers}).stepsMade(t))
	whole, part := w.sink.judged(made, liveRanks)
	accused, ids := w.accused(t)
	t.Logf("steps: %d, concluded over all ranks %d, over some %d, twice with different ranks %d; findings: %v, ids %d",
		made, whole, part, w.sink.unlikeSteps(), accused, len(ids))
	assert.Equal(t, made, whole)
	assert.Zero(t, w.sink.unlikeSteps())
	assert.Zero(t, w.sink.missing(w.load.acknowledged()))
	assert.Equal(t, []string{fmt.Sprintf("straggler host rank %d", slowRank)}, slices.Sorted(maps.Keys(accused)))
	for _, c := range w.all() {
		assert.Zero(t, c.end(t), c.name)
	}
}
