// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/lockstep-otel/lockstep/internal/component/kafka"
)

// Config configures the partitioned Kafka exporter.
type Config struct {
	kafka.ClientConfig `mapstructure:",squash"`
	// Traces is where spans go.
	Traces TopicConfig `mapstructure:"traces"`
	// Logs is where log records go.
	Logs TopicConfig `mapstructure:"logs"`
	// Producer is how records are made.
	Producer ProducerConfig `mapstructure:"producer"`
	// Timeout bounds one attempt to send a request.
	Timeout exporterhelper.TimeoutConfig `mapstructure:",squash"`
	// Queue holds requests while brokers cannot be reached. With a storage it survives a restart.
	Queue configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
	// Retry is how often a request is sent again, of which brokers have not acknowledged everything.
	Retry configretry.BackOffConfig `mapstructure:"retry_on_failure"`

	_ struct{}
}

// TopicConfig is a topic, and how data are spread over its partitions.
type TopicConfig struct {
	Topic string `mapstructure:"topic"`
	// PartitionBy is what is kept together in one partition: the parts of one collective (rendezvous, spans
	// alone), all of a job, or what is known of a clock or of two (clock, log records alone).
	PartitionBy string `mapstructure:"partition_by"`

	_ struct{}
}

// ProducerConfig configures how records are made. Records are idempotent, and all replicas acknowledge them.
type ProducerConfig struct {
	// MaxMessageBytes is the largest value of a record before compression. Requests are divided by it.
	MaxMessageBytes int `mapstructure:"max_message_bytes"`
	// Compression is none, gzip, snappy, lz4 or zstd.
	Compression string `mapstructure:"compression"`
	// CompressionParams has the level.
	CompressionParams CompressionParams `mapstructure:"compression_params"`

	_ struct{}
}

// CompressionParams has the level of a compression.
type CompressionParams struct {
	// Level is that of gzip or zstd; nil: the default of the library.
	Level *int `mapstructure:"level"`

	_ struct{}
}

// Values of settings.
const (
	byRendezvous, byJob, byClock = "rendezvous", "job", "clock"
	defaultTraceTopic            = "lockstep-operations"
	defaultLogTopic              = "lockstep-events"
)

var compressions = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

const (
	// defaultMaxMessageBytes is below the broker's default limit, 1,048,588 bytes (message.max.bytes).
	defaultMaxMessageBytes = 1_000_000
	// minMaxMessageBytes leaves room for a span with long texts.
	minMaxMessageBytes = 10_000
	// maxMaxMessageBytes is far beyond what Kafka is made for.
	maxMaxMessageBytes = 64 << 20
	// defaultTimeout is longer than a broker takes to come back, or to elect another leader.
	defaultTimeout = time.Minute
	// defaultQueueBytes of each signal.
	defaultQueueBytes = 128 << 20
	// Requests are joined to at least and divided at about so many bytes: each has a record for each partition,
	// and records of some ten kilobytes compress well.
	defaultBatchMinBytes, defaultBatchMaxBytes = 1_000_000, 4_000_000
)

// defaultRetry never gives up: the queue fills, and refuses what finds no room.
var defaultRetry = configretry.BackOffConfig{
	Enabled: true, InitialInterval: time.Second, Multiplier: 1.5, RandomizationFactor: 0.5, MaxInterval: 15 * time.Second,
}

func newDefaultConfig() *Config {
	queue := exporterhelper.NewDefaultQueueConfig()
	queue.Sizer, queue.QueueSize = exporterhelper.RequestSizerTypeBytes, defaultQueueBytes
	// One request at a time: where more are under way, a request that is tried again is overtaken, and its steps
	// come too late to be judged.
	queue.NumConsumers = 1
	batch := queue.Batch.GetOrInsertDefault()
	batch.FlushTimeout, batch.Sizer = time.Second, exporterhelper.RequestSizerTypeBytes
	batch.MinSize, batch.MaxSize = defaultBatchMinBytes, defaultBatchMaxBytes
	return &Config{
		ClientConfig: kafka.NewClientConfig("lockstep"),
		Traces:       TopicConfig{Topic: defaultTraceTopic, PartitionBy: byRendezvous},
		Logs:         TopicConfig{Topic: defaultLogTopic, PartitionBy: byJob},
		Producer:     ProducerConfig{MaxMessageBytes: defaultMaxMessageBytes, Compression: "zstd"},
		Timeout:      exporterhelper.TimeoutConfig{Timeout: defaultTimeout},
		Queue:        configoptional.Some(queue),
		Retry:        defaultRetry,
	}
}

// Validate reports every field that cannot work.
func (c *Config) Validate() error {
	var same error
	if c.Traces.Topic == c.Logs.Topic {
		same = fmt.Errorf("check traces::topic: got %q for logs as well; want two topics", c.Traces.Topic)
	}
	return errors.Join(
		same, c.ClientConfig.Validate(), c.Traces.validate("traces", byRendezvous, byJob), c.Logs.validate("logs", byJob, byClock), c.Producer.validate(),
	)
}

func (c *TopicConfig) validate(signal string, by ...string) error {
	var errs []error
	if !kafka.LegalName(c.Topic) {
		errs = append(errs, fmt.Errorf("check %s::topic: got %q; want %s", signal, c.Topic, kafka.LegalNames))
	}
	if !slices.Contains(by, c.PartitionBy) {
		errs = append(errs, fmt.Errorf("check %s::partition_by: got %q; want %s", signal, c.PartitionBy, strings.Join(by, ", ")))
	}
	return errors.Join(errs...)
}

func (c *ProducerConfig) validate() error {
	var errs []error
	if c.MaxMessageBytes < minMaxMessageBytes || c.MaxMessageBytes > maxMaxMessageBytes {
		errs = append(errs, fmt.Errorf("check producer::max_message_bytes: got %d; want %d to %d", c.MaxMessageBytes, minMaxMessageBytes, maxMaxMessageBytes))
	}
	if _, ok := compressions[c.Compression]; !ok {
		errs = append(errs, fmt.Errorf("check producer::compression: got %q; want %s", c.Compression, strings.Join(slices.Sorted(maps.Keys(compressions)), ", ")))
	}
	level := c.CompressionParams.Level
	switch {
	case level == nil:
	case c.Compression == "gzip" && (*level < 1 || *level > 9), c.Compression == "zstd" && (*level < 1 || *level > 22):
		errs = append(errs, fmt.Errorf("check producer::compression_params::level: got %d; want 1 to 9 of gzip, 1 to 22 of zstd", *level))
	case c.Compression != "gzip" && c.Compression != "zstd":
		errs = append(errs, fmt.Errorf("check producer::compression_params::level: got %d with compression %q; want gzip or zstd", *level, c.Compression))
	}
	return errors.Join(errs...)
}

// sarama fills in how a producer works. With apart, each record is a request of its own: then the topic's limit, which
// holds for all that goes to a partition in one request, is met by the limit of a record.
func (c *ProducerConfig) sarama(s *sarama.Config, apart bool, backoff func(retries, most int) time.Duration) {
	p := &s.Producer
	p.RequiredAcks, p.Idempotent, s.Net.MaxOpenRequests = sarama.WaitForAll, true, 1
	p.Return.Successes, p.Return.Errors = true, true
	p.Partitioner = sarama.NewManualPartitioner
	p.Compression = compressions[c.Compression]
	if c.CompressionParams.Level != nil {
		p.CompressionLevel = *c.CompressionParams.Level
	}
	p.MaxMessageBytes = c.MaxMessageBytes + recordOverhead
	if apart {
		p.Flush.MaxMessages = 1
	}
	p.Retry.Max, p.Retry.BackoffFunc = producerRetries, backoff
}

const (
	// recordOverhead is more than the key, the headers and the frame of a record have: a job's name is cut at 1 KiB.
	recordOverhead = 8 << 10
	// producerRetries, with backoff, last for some seconds: longer than another leader takes to be elected. What
	// lasts longer is for the sending queue.
	producerRetries = 8
)
