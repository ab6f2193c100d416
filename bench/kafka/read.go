// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/IBM/sarama"
)

// pollBytes is how much of a partition one poll returns: the default of max.partition.fetch.bytes of Kafka's
// Java consumer and of contrib's receiver.
const pollBytes = 1 << 20

// polls reads a partition from an offset to its end, and calls a function with the values of each poll: what the
// broker returns of the partition to one request of at most pollBytes, whole batches that is, or one that is larger.
func polls(client sarama.Client, topic string, partition int32, from int64, call func(values [][]byte) error) error {
	leader, err := client.Leader(topic, partition)
	if err != nil {
		return fmt.Errorf("find the leader of %s/%d: %w", topic, partition, err)
	}
	for {
		req := &sarama.FetchRequest{Version: 11, MinBytes: 1, MaxBytes: 64 << 20, MaxWaitTime: 100, SessionEpoch: -1}
		req.AddBlock(topic, partition, from, pollBytes, -1)
		resp, err := leader.Fetch(req)
		if err != nil {
			return fmt.Errorf("read %s/%d from %d: %w", topic, partition, from, err)
		}
		block := resp.GetBlock(topic, partition)
		if block == nil || block.Err != sarama.ErrNoError {
			return fmt.Errorf("read %s/%d from %d: got %+v", topic, partition, from, block)
		}
		values, next := valuesFrom(block, from)
		if len(values) > 0 {
			if err := call(values); err != nil {
				return err
			}
		}
		switch {
		case next >= block.HighWaterMarkOffset:
			return nil
		case next == from:
			return fmt.Errorf("read %s/%d from %d: got nothing before the end, %d", topic, partition, from, block.HighWaterMarkOffset)
		}
		from = next
	}
}

// valuesFrom returns the values of the records from an offset on, and the offset after them.
func valuesFrom(block *sarama.FetchResponseBlock, from int64) (values [][]byte, next int64) {
	next = from
	for _, set := range block.RecordsSet {
		if set.RecordBatch == nil || set.RecordBatch.PartialTrailingRecord {
			continue
		}
		for _, r := range set.RecordBatch.Records {
			if offset := set.RecordBatch.FirstOffset + r.OffsetDelta; offset >= from {
				values, next = append(values, r.Value), offset+1
			}
		}
	}
	return values, next
}
