// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"fmt"
	"strconv"

	"github.com/IBM/sarama"
)

// Headers of a record; docs/format/kafka.md specifies them.
const (
	headerSignal      = "otelcol.signal" // as contrib's exporter writes it with signal_header
	headerEncoding    = "lockstep.encoding"
	headerPartitionBy = "lockstep.partition_by"
	headerPartitions  = "lockstep.partitions"
	encodingOTLP      = "otlp_proto"
)

// record is one record of Kafka.
type record struct {
	partition int32
	key       []byte
	value     []byte
	items     int // spans or log records
}

// limits are of the value of a record, bytes. Records are divided by the first: it falls where the topic takes less.
// One item alone may have up to the second, since how much the topic takes is not known exactly.
type limits struct{ several, one int }

// encode adds the records of a part, and returns how many items are larger than one may be.
func (s *signal[T]) encode(to []record, p part[T], limit limits) (records []record, refused int, err error) {
	items := s.count(p.data)
	if items == 0 {
		return to, 0, nil
	}
	value, err := s.marshal(p.data)
	if err != nil {
		return to, items, fmt.Errorf("encode %d %ss: %w", items, s.item, err)
	}
	if len(value) <= limit.several {
		return append(to, record{p.partition, p.key, value, items}), 0, nil
	}
	return s.divide(to, p, len(value), limit)
}

// divide is encode for data of a known size that is above the limit: by halves, until they are not.
func (s *signal[T]) divide(to []record, p part[T], size int, limit limits) (records []record, refused int, err error) {
	items := s.count(p.data)
	switch {
	case size <= limit.several, items == 1 && size <= limit.one:
		value, err := s.marshal(p.data)
		if err != nil {
			return to, items, fmt.Errorf("encode %d %ss: %w", items, s.item, err)
		}
		return append(to, record{p.partition, p.key, value, items}), 0, nil
	case items == 1:
		return to, 1, fmt.Errorf("encode a %s: got %d bytes; want at most %d (producer::max_message_bytes)", s.item, size, limit.one)
	}
	rest := p
	rest.data = s.halve(p.data)
	for _, half := range []part[T]{p, rest} {
		var n int
		var e error
		to, n, e = s.divide(to, half, s.size(half.data), limit)
		if refused += n; err == nil {
			err = e
		}
	}
	return to, refused, err
}

// headers returns those of all records of a topic with n partitions.
func (s *signal[T]) headers(partitionBy string, n int32) []sarama.RecordHeader {
	pair := func(key, value string) sarama.RecordHeader {
		return sarama.RecordHeader{Key: []byte(key), Value: []byte(value)}
	}
	return []sarama.RecordHeader{
		pair(headerSignal, s.name), pair(headerEncoding, encodingOTLP),
		pair(headerPartitionBy, partitionBy), pair(headerPartitions, strconv.Itoa(int(n))),
	}
}
