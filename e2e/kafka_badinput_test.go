// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kafkaFault is something that keeps an agent from writing to a topic.
type kafkaFault struct {
	name    string
	broker  func(k *kafka) string // the listener that the agent uses
	overlay func(k *kafka) string // of the agent's configuration; nil: none
	missing bool                  // the topic is not there at first
	// settings are those of the topic.
	settings map[string]string
	// text is in the agent's log, and in the answer of its health.
	text string
	// repair ends the fault at the broker; nil: the agent's configuration has it.
	repair func(t *testing.T, k *kafka, topic string)
}

func plainListener(k *kafka) string { return k.plain }

func secureOverlay(mechanism, user, password string) func(k *kafka) string {
	return func(k *kafka) string {
		return fmt.Sprintf(`{exporters: {partitioned_kafka: {tls: {ca_file: %s}, auth: {sasl: {mechanism: %s, username: %s, password: %s}}}}}`,
			k.ca, mechanism, user, password)
	}
}

var kafkaFaults = []kafkaFault{
	{
		name: "topic missing", broker: plainListener, missing: true, text: "create it with its partitions first",
		repair: func(t *testing.T, k *kafka, topic string) {
			t.Helper()
			k.topic(t, topic, 2, nil)
		},
	},
	{
		name: "wrong password", broker: func(k *kafka) string { return k.secure }, overlay: secureOverlay("SCRAM-SHA-512", "other", "secret"),
		text: "the broker refuses the user or the password",
		repair: func(t *testing.T, k *kafka, _ string) {
			t.Helper()
			results, err := k.admin(t).UpsertUserScramCredentials([]sarama.AlterUserScramCredentialsUpsert{{
				Name: "other", Mechanism: sarama.SCRAM_MECHANISM_SHA_512, Iterations: 4096, Salt: []byte("salt of the test"), Password: []byte("secret"),
			}})
			require.NoError(t, err)
			require.Equal(t, sarama.ErrNoError, results[0].ErrorCode)
		},
	},
	{
		name: "mechanism that the broker has not", broker: func(k *kafka) string { return k.plain }, overlay: func(*kafka) string {
			return `{exporters: {partitioned_kafka: {auth: {sasl: {mechanism: PLAIN, username: u, password: p}}}}}`
		},
		text: "check that the port is the listener which tls and auth::sasl are for",
	},
	{
		name: "certificate expired", broker: func(k *kafka) string { return k.expired }, overlay: func(k *kafka) string {
			return fmt.Sprintf(`{exporters: {partitioned_kafka: {tls: {ca_file: %s}}}}`, k.ca)
		},
		text: "renew it, or correct this host's clock",
	},
	{
		name: "authority unknown", broker: func(k *kafka) string { return k.secure }, overlay: func(*kafka) string {
			return `{exporters: {partitioned_kafka: {tls: {}}}}`
		},
		text: "set tls::ca_file to the authority of the broker's certificate",
	},
	{
		name: "TLS to a listener without", broker: plainListener, overlay: func(k *kafka) string {
			return fmt.Sprintf(`{exporters: {partitioned_kafka: {tls: {ca_file: %s}}}}`, k.ca)
		},
		text: "the broker closes the connection",
	},
	{
		name: "no TLS to a listener with", broker: func(k *kafka) string { return k.secure },
		text: "the broker closes the connection",
	},
	{
		name: "clock of the broker", broker: plainListener,
		// A record is older than 0 ms when it arrives: as where the broker's clock is ahead by more than it allows.
		settings: map[string]string{"message.timestamp.before.max.ms": "0"},
		text:     "message.timestamp.type=LogAppendTime",
		repair: func(t *testing.T, k *kafka, topic string) {
			t.Helper()
			k.set(t, topic, "message.timestamp.type", "LogAppendTime")
		},
	},
}

// set changes a setting of a topic.
func (k *kafka) set(t *testing.T, topic, name, value string) {
	t.Helper()
	require.NoError(t, k.admin(t).IncrementalAlterConfig(sarama.TopicResource, topic, map[string]sarama.IncrementalAlterConfigsEntry{
		name: {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value},
	}, false))
}

// quickRetries makes an agent try again every second.
const quickRetries = `{exporters: {partitioned_kafka: {metadata: {refresh_interval: 1s}, retry_on_failure: {max_interval: 1s}}}}`

// A fault is named in the log and by the health check, costs nothing, and is over without a restart.
func testFaults(t *testing.T, k *kafka) {
	t.Helper()
	for i, f := range kafkaFaults {
		t.Run(f.name, func(t *testing.T) {
			topic := fmt.Sprintf("faulty-%d", i)
			if !f.missing {
				k.topic(t, topic, 2, f.settings)
			}
			overlays := []string{quickRetries}
			if f.overlay != nil {
				overlays = append(overlays, f.overlay(k))
			}
			agent := newKafkaAgent(t, f.broker(k), overlays...)
			agent.env["LOCKSTEP_KAFKA_OPERATIONS"] = topic
			agent.start(t)
			agent.ready(t)
			sendOne(t, agent, 0)
			eventually(t, readyLimit, func() error {
				status, body, err := answerOf("http://" + agent.health + "/")
				if err == nil && (status == http.StatusOK || !strings.Contains(body, f.text)) {
					err = fmt.Errorf("ask for health: got %d, %s; want 500 with %q", status, body, f.text)
				}
				return err
			}, agent.process)
			assert.Contains(t, agent.output.String(), f.text)
			if f.repair != nil {
				f.repair(t, k, topic)
				eventually(t, readyLimit, func() error { return atLeast(len(spansIn(t, k, topic)), loadSpans) }, agent.process, k.process)
				agent.ready(t)
			}
			assert.Zero(t, agent.end(t))
		})
	}
}

// answerOf returns what an address answers.
func answerOf(url string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err //nolint:wrapcheck // shown as it is
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err //nolint:wrapcheck // shown as it is
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err //nolint:wrapcheck // shown as it is
}

// With passwords and TLS, spans arrive by each mechanism.
func testPasswords(t *testing.T, k *kafka) {
	t.Helper()
	for i, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		topic := fmt.Sprintf("secure-%d", i)
		k.topic(t, topic, 2, nil)
		agent := newKafkaAgent(t, k.secure, secureOverlay(mechanism, kafkaUser, kafkaPassword)(k))
		agent.env["LOCKSTEP_KAFKA_OPERATIONS"] = topic
		agent.start(t)
		agent.ready(t)
		sendOne(t, agent, 0)
		eventually(t, readyLimit, func() error { return atLeast(len(spansIn(t, k, topic)), loadSpans) }, agent.process, k.process)
		assert.Zero(t, agent.end(t), mechanism)
	}
}

// Partitions that are added while an agent writes are used, and the agent reports it.
func testPartitionsAreAdded(t *testing.T, k *kafka) {
	t.Helper()
	const topic = "grows"
	k.topic(t, topic, 2, nil)
	agent := newKafkaAgent(t, k.plain, quickRetries)
	agent.env["LOCKSTEP_KAFKA_OPERATIONS"] = topic
	agent.start(t)
	agent.ready(t)
	load := startLoad(t, agent.url)
	eventually(t, readyLimit, func() error { return atLeast(len(spansIn(t, k, topic)), 100) }, agent.process, k.process)
	require.NoError(t, k.admin(t).CreatePartitions(topic, 5, nil, false))
	eventually(t, readyLimit, func() error {
		used := map[int32]bool{}
		for _, m := range k.records(t, topic) {
			used[m.Partition] = true
		}
		return atLeast(len(used), 5)
	}, agent.process, k.process)
	load.stop()
	drained(t, k, topic, load, agent.process, k.process)
	assert.Contains(t, agent.output.String(), "The topic has another number of partitions")
	assert.Zero(t, agent.end(t))
}
