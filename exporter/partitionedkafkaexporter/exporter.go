// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/exporter/partitionedkafkaexporter/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/health"
	"github.com/lockstep-otel/lockstep/internal/component/kafka"
)

// errNoClockEvent is why a record does not go to a topic of clocks.
var errNoClockEvent = errors.New("read log records: got some that are no clock events, or name no clocks; want lockstep.clock.edge and lockstep.clock.model alone with logs::partition_by: clock (see docs/format/clock-events.md)")

// writer writes data of one signal to its topic.
type writer[T any] struct {
	signal   signal[T]
	topic    TopicConfig
	producer *producer
	balance  balance
	status   health.Status
	recheck  *recheck
	meter    *metadata.TelemetryBuilder
	outcomes outcomes
	log      *zap.Logger
	turn     atomic.Uint32   // of data that may go to any partition
	ends     context.Context //nolint:containedctx // done at the end: what waits for brokers returns
	end      context.CancelCauseFunc
}

func newWriter[T any](c *Config, topic TopicConfig, s signal[T], set component.TelemetrySettings) (*writer[T], error) {
	meter, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, fmt.Errorf("make counters: %w", err)
	}
	w := &writer[T]{signal: s, topic: topic, meter: meter, outcomes: outcomesOf(s.name, topic.Topic), log: set.Logger}
	w.ends, w.end = context.WithCancelCause(context.Background())
	w.recheck = newRecheck(w.ask, func(err error) { w.status.Set(topic.Topic, err) })
	w.producer = newProducer(c, topic.Topic, func() { meter.ExporterPartitionedKafkaProducers.Add(context.Background(), 1, w.outcomes.all) })
	return w, errors.Join(
		meter.RegisterExporterPartitionedKafkaPartitionsCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(w.balance.partitions()), w.outcomes.topic)
			return nil
		}),
		meter.RegisterExporterPartitionedKafkaPartitionSkewCallback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(w.balance.skew(), w.outcomes.topic)
			return nil
		}),
		meter.RegisterExporterPartitionedKafkaSentBytesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(w.producer.meters.Sent(), w.outcomes.topic)
			return nil
		}),
	)
}

func (w *writer[T]) start(_ context.Context, host component.Host) error {
	w.status.Start(host)
	return nil
}

func (w *writer[T]) shutdown(ctx context.Context) error {
	w.recheck.end()
	w.producer.end(ctx)
	w.end(errEnded)
	w.meter.Shutdown()
	return nil
}

// write writes data, and returns an error with those of which the brokers have not acknowledged all copies. It
// moves the data, so that the sending queue must not give them to others.
func (w *writer[T]) write(ctx context.Context, data T) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := context.AfterFunc(w.ends, func() { cancel(errEnded) })
	defer ended()
	w.recheck.begin()
	err := w.writeAll(ctx, data)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		w.recheck.nothing() // a caller that gives up shows nothing of the brokers
	} else {
		w.recheck.known(err)
	}
	return err
}

// ask asks the brokers for the topic.
func (w *writer[T]) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.producer.config.Timeout.Timeout)
	defer cancel()
	l, limit, err := w.producer.get(ctx)
	if err != nil {
		return err
	}
	if err = l.look(w.topic.Topic); err != nil {
		w.producer.drop(l, limit)
	}
	return err
}

func (w *writer[T]) writeAll(ctx context.Context, data T) error {
	items := w.signal.count(data)
	l, limit, err := w.producer.get(ctx)
	if err != nil {
		return w.giveBack(data, 0, items, err)
	}
	n, err := l.partitions(w.topic.Topic)
	if err != nil {
		w.producer.drop(l, limit)
		return w.giveBack(data, 0, items, err)
	}
	w.resize(n)
	var records []record
	for _, p := range w.signal.split(data, n) {
		switch p.partition {
		case anyPartition:
			p.partition = int32(w.turn.Add(1) % uint32(n))
		case noPartition:
			w.refuse(ctx, w.signal.count(p.data), errNoClockEvent)
			continue
		}
		records = w.encode(ctx, records, p, limit)
	}
	return w.send(ctx, l, limit, n, records)
}

// encode adds the records of a part, and counts what is too large for one.
func (w *writer[T]) encode(ctx context.Context, to []record, p part[T], limit int) []record {
	to, items, err := w.signal.encode(to, p, limits{several: limit, one: w.producer.config.Producer.MaxMessageBytes})
	if items > 0 {
		w.refuse(ctx, items, err)
	}
	return to
}

func (w *writer[T]) refuse(ctx context.Context, items int, err error) {
	w.log.Error("Data cannot be written to Kafka and are dropped.", zap.String("topic", w.topic.Topic), zap.Int("items", items), zap.Error(err))
	w.meter.ExporterPartitionedKafkaItems.Add(ctx, int64(items), w.outcomes.refused)
	w.meter.ExporterPartitionedKafkaRecords.Add(ctx, 1, w.outcomes.refused)
}

// send sends records. Those that are larger than the topic allows are divided and sent again.
func (w *writer[T]) send(ctx context.Context, l *link, limit int, n int32, records []record) error {
	var failed []record
	var cause error
	for len(records) > 0 {
		a := w.try(ctx, l, n, records)
		failed, cause = append(failed, a.failed...), errors.Join(cause, a.err)
		if !a.some && len(a.large) == 0 && (ctx.Err() == nil || l.load.silent()) {
			w.producer.drop(l, limit)
		}
		if len(a.large) == 0 {
			break
		}
		records = w.smaller(ctx, a.large, &limit)
		w.producer.drop(l, limit)
		var err error
		if l, limit, err = w.producer.get(ctx); err != nil {
			failed, cause = append(failed, records...), errors.Join(cause, err)
			break
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return w.giveBackRecords(failed, fmt.Errorf("write to topic %q: %w", w.topic.Topic, cause))
}

// smaller divides records that the topic refuses, and lowers the limit. What cannot be divided is dropped where it was
// refused alone: as long as the limit is that of the configuration, records go together with others.
func (w *writer[T]) smaller(ctx context.Context, large []record, limit *int) (records []record) {
	alone := *limit < w.producer.config.Producer.MaxMessageBytes
	several := slices.ContainsFunc(large, func(r record) bool { return r.items > 1 })
	if several || !alone {
		*limit /= 2
		w.log.Warn("The topic refuses records as large as these, and they are divided. Lower producer::max_message_bytes, or raise the topic's max.message.bytes.",
			zap.String("topic", w.topic.Topic), zap.Int("bytes", *limit))
	}
	for _, r := range large {
		if r.items == 1 {
			if alone {
				w.refuse(ctx, 1, fmt.Errorf("write a %s of %d bytes: %w", w.signal.item, len(r.value), kafka.Explain(sarama.ErrMessageSizeTooLarge)))
				continue
			}
			records = append(records, r)
			continue
		}
		data, err := w.signal.unmarshal(r.value)
		if err != nil { // what was marshaled here
			w.refuse(ctx, r.items, err)
			continue
		}
		records = w.encode(ctx, records, part[T]{partition: r.partition, key: r.key, data: data}, *limit)
	}
	return records
}

func (w *writer[T]) messages(records []record, n int32) []*sarama.ProducerMessage {
	headers := w.signal.headers(w.topic.PartitionBy, n)
	messages := make([]*sarama.ProducerMessage, len(records))
	for i, r := range records {
		m := &sarama.ProducerMessage{Topic: w.topic.Topic, Partition: r.partition, Headers: headers, Value: sarama.ByteEncoder(r.value)}
		if r.key != nil {
			m.Key = sarama.ByteEncoder(r.key)
		}
		messages[i] = m
	}
	return messages
}

// answered is what brokers made of records.
type answered struct {
	some          bool // at least one was acknowledged
	failed, large []record
	err           error // the first of failed
}

// try sends records once.
func (w *writer[T]) try(ctx context.Context, l *link, n int32, records []record) (a answered) {
	errs := l.send(ctx, w.messages(records, n))
	now := time.Now()
	var count, items, bytes int
	for i, r := range records {
		switch err := errs[i]; {
		case err == nil:
			a.some = true
			count, items, bytes = count+1, items+r.items, bytes+len(r.value)
			w.balance.add(r.partition, len(r.value), now)
		case errors.As(err, new(sarama.ConfigurationError)):
			// The client does not take it, and never will.
			w.refuse(ctx, r.items, fmt.Errorf("write %d %ss: %w", r.items, w.signal.item, err))
		case errors.Is(err, sarama.ErrMessageSizeTooLarge):
			a.large = append(a.large, r)
		default:
			a.failed = append(a.failed, r)
			if a.err == nil {
				a.err = kafka.Explain(err)
			}
		}
	}
	w.meter.ExporterPartitionedKafkaRecords.Add(ctx, int64(count), w.outcomes.acknowledged)
	w.meter.ExporterPartitionedKafkaItems.Add(ctx, int64(items), w.outcomes.acknowledged)
	w.meter.ExporterPartitionedKafkaRecordBytes.Add(ctx, int64(bytes), w.outcomes.all)
	return a
}

// giveBackRecords returns an error with the data of records, which the sending queue sends again.
func (w *writer[T]) giveBackRecords(failed []record, cause error) error {
	data, items := w.signal.empty(), 0
	for _, r := range failed {
		one, err := w.signal.unmarshal(r.value)
		if err != nil {
			w.refuse(context.Background(), r.items, err)
			continue
		}
		items += r.items
		w.signal.join(one, data)
	}
	return w.giveBack(data, len(failed), items, cause)
}

func (w *writer[T]) giveBack(data T, records, items int, cause error) error {
	ctx := context.Background()
	w.meter.ExporterPartitionedKafkaRecords.Add(ctx, int64(records), w.outcomes.returned)
	w.meter.ExporterPartitionedKafkaItems.Add(ctx, int64(items), w.outcomes.returned)
	return w.signal.part(cause, data)
}

// resize warns where the topic has another number of partitions than before.
func (w *writer[T]) resize(n int32) {
	if former := w.balance.resize(n, time.Now()); former != 0 && former != int(n) {
		w.log.Warn("The topic has another number of partitions. Until all writers know it, parts of one collective, or of one key, go to two partitions.",
			zap.String("topic", w.topic.Topic), zap.Int("before", former), zap.Int32("now", n))
	}
}
