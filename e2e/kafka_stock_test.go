// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stockReceiver is the example of a gateway that reads the topics, in the exporter's README.
var stockReceiver = regexp.MustCompile("(?s)```yaml\n(receivers:\n  kafka:\n.*?)```")

// A live job with a slow rank is seen by an agent that writes to Kafka. A gateway that reads the topics with
// contrib's receiver, as the exporter's README has it, names that rank.
func TestKafka_StockReceiver_ReadsWhatIsWritten(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join(repoRoot(t), "exporter", "partitionedkafkaexporter", "README.md"))
	require.NoError(t, err)
	example := stockReceiver.FindSubmatch(readme)
	require.NotNil(t, example, "the example of a gateway in the README")

	k := startKafka(t, false, nil)
	settings := map[string]string{"message.timestamp.type": "LogAppendTime", "retention.ms": "86400000"} // as the README has them
	k.topic(t, operationsTopic, 4, settings)
	k.topic(t, eventsTopic, 4, settings)
	ports, dir := freePorts(t, 7), t.TempDir()
	findings := filepath.Join(dir, "findings.jsonl")
	gateway := newKillable(t, "otelcol-lockstep", "gateway.yaml", ports[0], ports[1], map[string]string{
		"LOCKSTEP_OTLP_GRPC_ENDPOINT": ports[2], "LOCKSTEP_OTLP_HTTP_ENDPOINT": ports[3],
		"LOCKSTEP_PROMETHEUS_ENDPOINT": ports[4], "LOCKSTEP_TIMELINE_ENDPOINT": ports[5], "LOCKSTEP_JAEGER_ENDPOINT": ports[6],
		"LOCKSTEP_FINDINGS": findings, "LOCKSTEP_EVENTS": filepath.Join(dir, "events.jsonl"), "LOCKSTEP_STATE": filepath.Join(dir, "gateway"),
		"LOCKSTEP_KAFKA_BROKERS": k.plain,
	}, "--config", "yaml:"+string(example[1]))
	agent := newKafkaAgent(t, k.plain)
	agent.start(t)
	agent.ready(t)
	startWorkers(t, agent.env["LOCKSTEP_DIR"], "host")
	// The gateway comes later, and reads from the start of the topics.
	eventually(t, readyLimit, func() error { return atLeast(len(k.records(t, operationsTopic)), 1) }, agent.process, k.process)
	gateway.start(t)

	var found []finding
	eventually(t, answerLimit, func() (err error) {
		if found, err = findingsIn(findings); err == nil && len(found) == 0 {
			err = fmt.Errorf("find a finding in %s: none", findings)
		}
		return err
	}, gateway.process, agent.process, k.process)
	for _, f := range found {
		assert.Equal(t, "straggler", f["lockstep.finding.kind"])
		assert.Equal(t, "host", f["lockstep.finding.class"])
		assert.Equal(t, strconv.Itoa(slowRank), f["lockstep.finding.rank"])
	}
	used := map[int32]bool{}
	for _, m := range k.records(t, operationsTopic) {
		used[m.Partition] = true
	}
	assert.Len(t, used, 4, "the job's collectives are in all partitions")
	assert.Zero(t, agent.end(t))
	assert.Zero(t, gateway.end(t))
}
