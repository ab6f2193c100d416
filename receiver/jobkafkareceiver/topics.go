// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/kafka"
)

// topic is what a broker says of a topic. One that is deleted and created again under its name has another id.
type topic struct {
	partitions int
	id         sarama.Uuid // zero with a protocol_version below 2.8.0
}

// isNot reports whether another topic has the name now.
func (t topic) isNot(other topic) bool {
	var none sarama.Uuid
	return t.id != other.id && t.id != none && other.id != none
}

// checkTopics returns the topics, and warns where a job's spans and log records may go to two collectors.
func (m *member) checkTopics(client sarama.Client) (map[string]topic, error) {
	for _, name := range m.topics {
		err := client.RefreshMetadata(name)
		if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			return nil, fmt.Errorf("find topic %q: %w", name, kafka.Explain(err))
		}
		if err != nil {
			return nil, fmt.Errorf("connect to the brokers %v: %w", m.cfg.Brokers, kafka.ExplainConnect(err))
		}
	}
	found, err := m.describe(client)
	if err != nil {
		return nil, err
	}
	if t, l := found[m.cfg.Traces.Topic].partitions, found[m.cfg.Logs.Topic].partitions; t != l && t != 0 && l != 0 {
		m.log.Warn("The topics have different numbers of partitions: spans and log records of a job may go to two collectors. Create them alike.",
			zap.Int(m.cfg.Traces.Topic, t), zap.Int(m.cfg.Logs.Topic, l))
	}
	return found, nil
}

// describe asks a broker for the topics.
func (m *member) describe(client sarama.Client) (map[string]topic, error) {
	admin, err := sarama.NewClusterAdminFromClient(client) // is not closed: that would close the client
	if err != nil {
		return nil, fmt.Errorf("ask for the topics: %w", kafka.Explain(err))
	}
	all, err := admin.DescribeTopics(m.topics)
	if err != nil {
		return nil, fmt.Errorf("ask for the topics: %w", kafka.Explain(err))
	}
	found := map[string]topic{}
	for _, of := range all {
		if !errors.Is(of.Err, sarama.ErrNoError) {
			return nil, fmt.Errorf("find topic %q: %w", of.Name, kafka.Explain(of.Err))
		}
		found[of.Name] = topic{len(of.Partitions), of.Uuid}
	}
	return found, nil
}

// notice notes the topics that were created anew since this collector read them. What it has read and committed is not
// of the topics that have these names now.
func (m *member) notice(found map[string]topic) {
	for name, now := range found {
		if before, ok := m.read[name]; ok && now.isNot(before) {
			m.log.Error("A topic was deleted and created anew. It is read from its beginning, and its jobs are dropped first.", zap.String("topic", name))
			m.anew[name] = true
		}
		m.read[name] = now
	}
}

// watch ends a membership when a topic has other partitions than it began with, so that they are shared anew, is missing or
// was created anew. The client leaves the first to the leader of the group, which is none where members keep their names
// over restarts, and reads on by numbers that mean other records in a new topic.
func (m *member) watch(ctx context.Context, end context.CancelCauseFunc, client sarama.Client, began map[string]topic) {
	for deliver.Sleep(ctx, m.cfg.Metadata.RefreshInterval) {
		found, err := m.describe(client)
		if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			end(err)
			return
		}
		if err != nil {
			continue // reading fails as well, or the next time shows more
		}
		for name, now := range found {
			if n := began[name].partitions; now.partitions != n {
				m.log.Info("A topic has another number of partitions: they are shared anew.", zap.String("topic", name), zap.Int("before", n), zap.Int("now", now.partitions))
			} else if !now.isNot(began[name]) {
				continue
			}
			end(nil)
			return
		}
	}
}

// checkPolicy warns where brokers would remove records of a topic that are needed, or keep more than are. A user that
// may not see a topic's settings gets no warning.
func (m *member) checkPolicy(client sarama.Client, topic string) {
	policy := policyOf(client, topic)
	compacts := strings.Contains(policy, "compact")
	switch {
	case policy == "" || compacts == (m.cfg.Read == readAll):
	case compacts:
		m.log.Warn("The topic is compacted: all but the last record of each key are deleted, so that most data are lost. Set its cleanup.policy=delete.",
			zap.String("topic", topic), zap.String(cleanupPolicy, policy))
	default:
		m.log.Warn("The topic is not compacted: all of its records are read at each start, and what was written last of each key may be deleted. Set its cleanup.policy=compact,delete.",
			zap.String("topic", topic), zap.String(cleanupPolicy, policy))
	}
}

const cleanupPolicy = "cleanup.policy"

// policyOf returns how brokers remove records of a topic; empty where this user may not see it.
func policyOf(client sarama.Client, topic string) string {
	admin, err := sarama.NewClusterAdminFromClient(client) // is not closed: that would close the client
	if err != nil {
		return ""
	}
	of := &sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{cleanupPolicy}}
	results, err := admin.DescribeConfigs([]*sarama.ConfigResource{of}, sarama.DescribeConfigsOptions{})
	if err != nil {
		return ""
	}
	for _, r := range results {
		for _, e := range r.Configs {
			if e.Name == cleanupPolicy {
				return e.Value
			}
		}
	}
	return ""
}
