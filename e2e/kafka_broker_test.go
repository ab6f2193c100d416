// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"
	"github.com/stretchr/testify/require"
)

// The client's averages have a goroutine that never ends.
func init() { metrics.UseNilMetrics = true }

const (
	// kafkaUser and kafkaPassword are those of the secure listener, by PLAIN and SCRAM.
	kafkaUser, kafkaPassword = "lockstep", "correct horse"
	// kafkaReadyLimit: a broker takes 5 s to 15 s on two cores.
	kafkaReadyLimit = 90 * time.Second
)

// kafka is a real broker in a directory, which also is the controller. It keeps what it has acknowledged over a
// SIGKILL: the kernel has it.
type kafka struct {
	*process
	dir     string
	plain   string // listener without TLS and passwords
	secure  string // with TLS and passwords; "" unless it was asked for
	expired string // with a certificate that has expired
	ca      string // file of the authority of the certificates
}

// startKafka starts a broker. With secure it has listeners with TLS, too.
func startKafka(t *testing.T, secure bool, settings map[string]string) *kafka {
	t.Helper()
	jars := built(t, "kafka")
	ports := freePorts(t, 4)
	k := &kafka{dir: t.TempDir(), plain: ports[0]}
	properties := map[string]string{
		"process.roles": "broker,controller", "node.id": "1", "controller.quorum.voters": "1@" + ports[1],
		"listeners":                      "PLAINTEXT://" + ports[0] + ",CONTROLLER://" + ports[1],
		"advertised.listeners":           "PLAINTEXT://" + ports[0],
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL,EXPIRED:SSL",
		"controller.listener.names":      "CONTROLLER", "inter.broker.listener.name": "PLAINTEXT",
		"log.dirs": filepath.Join(k.dir, "logs"), "auto.create.topics.enable": "false",
		"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "4",
		"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1",
		"share.coordinator.state.topic.replication.factor": "1", "share.coordinator.state.topic.min.isr": "1",
		"group.initial.rebalance.delay.ms": "0", "num.network.threads": "2", "num.io.threads": "2",
		// The index of an active segment takes that much, for each partition.
		"log.index.size.max.bytes": "65536", "log.segment.bytes": "16777216",
	}
	if secure {
		k.secure, k.expired = ports[2], ports[3]
		k.secureListeners(t, properties)
	}
	maps.Copy(properties, settings)
	k.write(t, properties)
	k.format(t, jars, secure)
	k.start(t)
	k.ready(t)
	return k
}

func (k *kafka) write(t *testing.T, properties map[string]string) {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		fmt.Fprintf(&b, "%s=%s\n", name, properties[name])
	}
	require.NoError(t, os.WriteFile(k.properties(), []byte(b.String()), 0o600))
}

func (k *kafka) properties() string { return filepath.Join(k.dir, "server.properties") }

// secureListeners adds listeners with TLS: one with passwords, one whose certificate has expired.
func (k *kafka) secureListeners(t *testing.T, properties map[string]string) {
	t.Helper()
	authority := newAuthority(t)
	k.ca = authority.file(t, k.dir, "ca.pem")
	properties["listeners"] += ",SECURE://" + k.secure + ",EXPIRED://" + k.expired
	properties["advertised.listeners"] += ",SECURE://" + k.secure + ",EXPIRED://" + k.expired
	for name, until := range map[string]time.Time{"secure": time.Now().Add(time.Hour), "expired": time.Now().Add(-time.Hour)} {
		prefix := "listener.name." + name + "."
		properties[prefix+"ssl.keystore.type"] = "PEM"
		properties[prefix+"ssl.keystore.location"] = authority.issue(t, k.dir, name+".pem", until)
	}
	properties["listener.name.secure.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
	properties["listener.name.secure.plain.sasl.jaas.config"] = fmt.Sprintf(
		`org.apache.kafka.common.security.plain.PlainLoginModule required user_%s=%q;`, kafkaUser, kafkaPassword)
	for _, mechanism := range []string{"scram-sha-256", "scram-sha-512"} {
		properties["listener.name.secure."+mechanism+".sasl.jaas.config"] = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
	}
}

// java returns a command of the broker's programs. The virtual machine optimises little, so that it starts soon.
func java(jars string, args ...string) []string {
	return append([]string{
		"-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ActiveProcessorCount=2",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(jars, "*"),
	}, args...)
}

func (k *kafka) format(t *testing.T, jars string, users bool) {
	t.Helper()
	var id [16]byte
	_, err := rand.Read(id[:])
	require.NoError(t, err)
	id[0] &= 0x7f // a text that begins with a dash is taken for an option
	args := []string{"kafka.tools.StorageTool", "format", "--cluster-id", base64.RawURLEncoding.EncodeToString(id[:]), "-c", k.properties()}
	if users {
		for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, kafkaUser, kafkaPassword))
		}
	}
	out, err := exec.CommandContext(t.Context(), "java", java(jars, args...)...).CombinedOutput()
	require.NoError(t, err, string(out))
}

// start starts the broker again with what it has kept.
func (k *kafka) start(t *testing.T) {
	t.Helper()
	k.process = start(t, nil, "java", java(built(t, "kafka"), "kafka.Kafka", k.properties())...)
}

// ready waits until the broker answers, and has registered with the controller.
func (k *kafka) ready(t *testing.T) {
	t.Helper()
	eventually(t, kafkaReadyLimit, func() error {
		admin, err := sarama.NewClusterAdmin([]string{k.plain}, k.config())
		if err != nil {
			return err //nolint:wrapcheck // shown as it is
		}
		return admin.Close() //nolint:wrapcheck // shown as it is
	}, k.process)
}

// kill ends the broker by SIGKILL.
func (k *kafka) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, k.cmd.Process.Kill())
	<-k.done
}

func (k *kafka) config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.V3_6_0_0
	c.Metadata.Retry.Max = 0
	c.Consumer.Return.Errors = true
	return c
}

// topic creates a topic.
func (k *kafka) topic(t *testing.T, name string, partitions int32, settings map[string]string) {
	t.Helper()
	admin := k.admin(t)
	entries := map[string]*string{}
	for key, value := range settings {
		entries[key] = &value
	}
	// A broker that has just started refuses it for a moment.
	eventually(t, kafkaReadyLimit, func() error {
		err := admin.CreateTopic(name, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: entries}, false)
		if errors.Is(err, sarama.ErrTopicAlreadyExists) {
			return nil
		}
		return err //nolint:wrapcheck // shown as it is
	}, k.process)
}

// topics creates those of the published configurations.
func (k *kafka) topics(t *testing.T, partitions int32) {
	t.Helper()
	for _, name := range []string{operationsTopic, eventsTopic, jobsTopic, jobEventsTopic} {
		k.topic(t, name, partitions, nil)
	}
	k.topic(t, clocksTopic, partitions, clocksSettings)
}

func (k *kafka) admin(t *testing.T) sarama.ClusterAdmin {
	t.Helper()
	admin, err := sarama.NewClusterAdmin([]string{k.plain}, k.config())
	require.NoError(t, err)
	t.Cleanup(func() { _ = admin.Close() }) // the broker may be gone
	return admin
}

// records reads all that a topic has at this moment.
func (k *kafka) records(t *testing.T, topic string) (records []*sarama.ConsumerMessage) {
	t.Helper()
	client, err := sarama.NewClient([]string{k.plain}, k.config())
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	consumer, err := sarama.NewConsumerFromClient(client)
	require.NoError(t, err)
	defer func() { _ = consumer.Close() }()
	partitions, err := client.Partitions(topic)
	require.NoError(t, err)
	for _, p := range partitions {
		var end int64
		eventually(t, kafkaReadyLimit, func() (err error) { // a partition has no leader just after it was made
			end, err = client.GetOffset(topic, p, sarama.OffsetNewest)
			return err //nolint:wrapcheck // shown as it is
		}, k.process)
		records = append(records, partitionTo(t, consumer, topic, p, end)...)
	}
	return records
}

// partitionTo reads a partition up to an offset.
func partitionTo(t *testing.T, consumer sarama.Consumer, topic string, partition int32, end int64) (records []*sarama.ConsumerMessage) {
	t.Helper()
	if end == 0 {
		return nil
	}
	pc, err := consumer.ConsumePartition(topic, partition, sarama.OffsetOldest)
	require.NoError(t, err)
	defer func() { _ = pc.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), readyLimit)
	defer cancel()
	for {
		select {
		case m := <-pc.Messages():
			records = append(records, m)
			if m.Offset+1 >= end {
				return records
			}
		case err := <-pc.Errors():
			require.NoError(t, err)
		case <-ctx.Done():
			require.FailNow(t, "read partition", "got %d records of %s/%d; want up to offset %d", len(records), topic, partition, end)
		}
	}
}
