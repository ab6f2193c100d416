// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/offsets"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// Headers of a record that are read; docs/format/kafka.md specifies them.
const (
	headerEncoding = "lockstep.encoding"
	encodingOTLP   = "otlp_proto"
)

// Why a record is left out.
var (
	damaged  = because("damaged")
	deleted  = because("deleted")
	encoding = because("encoding")
	refused  = because("refused")
)

func because(reason string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", reason)))
}

// record is what one record of Kafka has.
type record struct {
	offset    int64
	steps     []offsets.Step
	others    bool     // something without a step
	jobs      []string // of that
	skipped   bool
	concluded int64 // spans of steps that were concluded, which are left out
}

// use gives records to the next component, once they have not been given yet. An error ends the generation:
// what was not taken is read again.
func (m *member) use(ctx context.Context, p *partition, batch []*sarama.ConsumerMessage) error {
	for len(batch) > 0 && p.known(batch[0].Offset) {
		batch = batch[1:]
	}
	if len(batch) == 0 {
		return nil
	}
	var records []record
	var err error
	if p.topic == m.cfg.Traces.Topic {
		records, err = give(ctx, m, p, batch, &traceData{m, p})
	} else {
		records, err = give(ctx, m, p, batch, &logData{m})
	}
	if err != nil {
		return fmt.Errorf("give records of %s/%d from offset %d to the next component: %w", p.topic, p.partition, batch[0].Offset, err)
	}
	now, concluded, used := time.Now(), int64(0), int64(0)
	for i := range records {
		r := &records[i]
		if m.cfg.Read != readAll { // a compacted topic has gaps
			m.missing(ctx, p, r.offset)
		}
		p.used(r, now)
		concluded += r.concluded
		if !r.skipped {
			used++
		}
	}
	m.meter.ReceiverJobKafkaConcludedSpans.Add(ctx, concluded)
	m.meter.ReceiverJobKafkaRecords.Add(ctx, used)
	m.meter.ReceiverJobKafkaStepsReleased.Add(ctx, p.droppedSince())
	return nil
}

// missing counts records that the topic has deleted before they were read.
func (m *member) missing(ctx context.Context, p *partition, offset int64) {
	n := p.gap(offset)
	if n == 0 {
		return
	}
	m.meter.ReceiverJobKafkaRecordsSkipped.Add(ctx, n, deleted)
	m.log.Error("Records were deleted before they were read. Raise the topic's retention, or add collectors to the group.",
		zap.String("topic", p.topic), zap.Int32("partition", p.partition), zap.Int64("records", n), zap.Int64("before_offset", offset))
}

// data is what differs between spans and log records.
type data[T any] interface {
	// read appends what a record has to data, and notes its steps.
	read(value []byte, to T, r *record) error
	empty() T
	count(T) int
	send(ctx context.Context, n int, build func() T) (left int, kept bool, err error)
}

// give gives records to the next component in one call, until it takes them.
func give[T any](ctx context.Context, m *member, p *partition, batch []*sarama.ConsumerMessage, of data[T]) ([]record, error) {
	all, records := decode(ctx, m, p, batch, of)
	n := of.count(all)
	first := true
	_, kept, err := of.send(ctx, n, func() T {
		if first {
			first = false
			return all
		}
		again, _ := decode(ctx, nil, p, batch, of) // the next component owns what it got
		return again
	})
	if err != nil && kept {
		return nil, err
	}
	if err != nil {
		m.meter.ReceiverJobKafkaRecordsSkipped.Add(ctx, int64(len(records)), refused)
		for i := range records {
			records[i].skipped = true
		}
	}
	return records, nil
}

// decode reads records. What cannot be read is left out, and counted unless m is nil.
func decode[T any](ctx context.Context, m *member, p *partition, batch []*sarama.ConsumerMessage, of data[T]) (all T, records []record) {
	all = of.empty()
	for _, message := range batch {
		r := record{offset: message.Offset}
		if got := encodingOf(message); got != encodingOTLP {
			r.skipped = true
			m.skip(ctx, p, message, encoding, fmt.Errorf("read a record: got encoding %.40q; want %s, which this version knows", got, encodingOTLP))
		} else if err := of.read(message.Value, all, &r); err != nil {
			r.skipped = true
			m.skip(ctx, p, message, damaged, fmt.Errorf("read a record as OTLP: %w", err))
		}
		records = append(records, r)
	}
	return all, records
}

// encodingOf returns that of a record; one without the header is that of other exporters.
func encodingOf(message *sarama.ConsumerMessage) string {
	for _, h := range message.Headers {
		if h != nil && string(h.Key) == headerEncoding {
			return string(h.Value)
		}
	}
	return encodingOTLP
}

func (m *member) skip(ctx context.Context, p *partition, message *sarama.ConsumerMessage, reason metric.MeasurementOption, err error) {
	if m == nil {
		return
	}
	m.meter.ReceiverJobKafkaRecordsSkipped.Add(ctx, 1, reason)
	m.log.Warn("A record cannot be used, and is left out.", zap.String("topic", p.topic), zap.Int32("partition", p.partition),
		zap.Int64("offset", message.Offset), zap.Int("bytes", len(message.Value)), zap.Error(err))
}

type traceData struct {
	m *member
	p *partition
}

func (*traceData) empty() ptrace.Traces       { return ptrace.NewTraces() }
func (*traceData) count(td ptrace.Traces) int { return td.SpanCount() }

func (d *traceData) read(value []byte, to ptrace.Traces, r *record) error {
	td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(value)
	if err != nil {
		return err //nolint:wrapcheck // the caller says what it is
	}
	seen := map[offsets.Step]bool{}
	var removed int
	removed, r.others = otelmap.KeepSteps(td, func(job, incarnation string, n int64) bool {
		step := offsets.Step{Job: offsets.Job{ID: job, Incarnation: incarnation}, Step: n}
		if d.p.found.marks.Concluded(step, r.offset) {
			return false
		}
		if !seen[step] {
			seen[step] = true
			r.steps = append(r.steps, step)
		}
		return true
	})
	r.concluded = int64(removed)
	td.ResourceSpans().MoveAndAppendTo(to.ResourceSpans())
	return nil
}

func (d *traceData) send(ctx context.Context, n int, build func() ptrace.Traces) (left int, kept bool, err error) {
	o := d.m.traces.Send(ctx, n, build)
	return o.Left, o.Kept, o.Err
}

type logData struct{ m *member }

func (*logData) empty() plog.Logs       { return plog.NewLogs() }
func (*logData) count(ld plog.Logs) int { return ld.LogRecordCount() }

func (*logData) read(value []byte, to plog.Logs, r *record) error {
	ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(value)
	if err != nil {
		return err //nolint:wrapcheck // the caller says what it is
	}
	r.others = ld.LogRecordCount() > 0
	for _, rl := range ld.ResourceLogs().All() {
		if id := otelmap.JobID(rl.Resource()); !slices.Contains(r.jobs, id) {
			r.jobs = append(r.jobs, id)
		}
	}
	ld.ResourceLogs().MoveAndAppendTo(to.ResourceLogs())
	return nil
}

func (d *logData) send(ctx context.Context, n int, build func() plog.Logs) (left int, kept bool, err error) {
	o := d.m.logs.Send(ctx, n, build)
	return o.Left, o.Kept, o.Err
}
