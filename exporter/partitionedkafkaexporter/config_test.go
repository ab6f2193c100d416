// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/lockstep-otel/lockstep/internal/component/kafka"
)

func TestLoadConfig(t *testing.T) {
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	all := newDefaultConfig()
	all.Brokers, all.ClientID, all.ProtocolVersion, all.DialTimeout = []string{"kafka-1:9093", "kafka-2:9093"}, "node-7", "3.6.0", 5*time.Second
	tls := configtls.NewDefaultClientConfig()
	tls.CAFile = "/etc/lockstep/ca.pem"
	all.TLS = configoptional.Some(tls)
	all.Auth.SASL = configoptional.Some(kafka.SASLConfig{Mechanism: "SCRAM-SHA-256", Username: "lockstep", Password: "secret"})
	all.Metadata.RefreshInterval = 30 * time.Second
	all.Traces = TopicConfig{Topic: "operations", PartitionBy: "job"}
	all.Logs.Topic = "events"
	level := 4
	all.Producer = ProducerConfig{MaxMessageBytes: 500_000, Compression: "gzip", CompressionParams: CompressionParams{Level: &level}}
	all.Timeout.Timeout = 30 * time.Second
	storage := component.MustNewID("queue_storage")
	all.Queue.Get().StorageID, all.Queue.Get().QueueSize = &storage, 1_000_000_000
	all.Retry.MaxElapsedTime = time.Hour
	clocks := newDefaultConfig()
	clocks.Logs = TopicConfig{Topic: "lockstep-clocks", PartitionBy: "clock"}
	for name, want := range map[string]*Config{"partitioned_kafka": newDefaultConfig(), "partitioned_kafka/all": all, "partitioned_kafka/clocks": clocks} {
		t.Run(name, func(t *testing.T) {
			sub, err := cm.Sub(name)
			require.NoError(t, err)
			cfg := NewFactory().CreateDefaultConfig()
			require.NoError(t, sub.Unmarshal(cfg))
			assert.Equal(t, want, cfg)
			assert.NoError(t, confmap.Validate(cfg))
		})
	}
}

func TestValidate_EachField_IsNamed(t *testing.T) {
	level := 23
	for want, change := range map[string]func(c *Config){
		`check traces::topic: got "a/b"; want 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'`: func(c *Config) { c.Traces.Topic = "a/b" },
		`check logs::topic: got ""; want 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'`:      func(c *Config) { c.Logs.Topic = "" },
		`check traces::partition_by: got "rank"; want rendezvous, job`:                                    func(c *Config) { c.Traces.PartitionBy = "rank" },
		`check logs::partition_by: got "rendezvous"; want job, clock`:                                     func(c *Config) { c.Logs.PartitionBy = "rendezvous" },
		"check producer::max_message_bytes: got 100; want 10000 to 67108864":                              func(c *Config) { c.Producer.MaxMessageBytes = 100 },
		`check producer::compression: got "br"; want gzip, lz4, none, snappy, zstd`:                       func(c *Config) { c.Producer.Compression = "br" },
		"check producer::compression_params::level: got 23; want 1 to 9 of gzip, 1 to 22 of zstd": func(c *Config) {
			c.Producer.CompressionParams.Level = &level
		},
		`check producer::compression_params::level: got 23 with compression "lz4"; want gzip or zstd`: func(c *Config) {
			c.Producer.Compression, c.Producer.CompressionParams.Level = "lz4", &level
		},
		"check brokers: got none; want one host:port at least":           func(c *Config) { c.Brokers = nil },
		`check traces::topic: got "a" for logs as well; want two topics`: func(c *Config) { c.Traces.Topic, c.Logs.Topic = "a", "a" },
	} {
		c := newDefaultConfig()
		change(c)
		assert.EqualError(t, c.Validate(), want)
	}
}
