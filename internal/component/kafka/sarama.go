// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"
)

const (
	// RequestTimeout bounds how long a broker may take to answer: longer than it waits for its replicas.
	RequestTimeout = 15 * time.Second
	// Asking all brokers for metadata is tried so often, since a broker that starts needs some seconds.
	metadataTries, metadataBackoff = 3, 250 * time.Millisecond
)

// maxBatchBytes bounds what a batch of records that was compressed may become: far above what brokers take, and what
// some kilobytes of zeros do not exceed unseen.
const maxBatchBytes = 256 << 20

// The client has settings of the process. It makes some meters in the library's default registry, whatever its
// configuration says; none of them is read.
func init() {
	metrics.UseNilMetrics = true
	sarama.MaxDecompressedBatchSize = maxBatchBytes
}

// Sarama returns the configuration of a client whose connections are made by dialer, and that counts in meters.
// Topics are never created by asking for them: their partitions would be those of the broker's default.
func (c *ClientConfig) Sarama(ctx context.Context, dialer *Dialer, meters *Meters) (*sarama.Config, error) {
	s := sarama.NewConfig()
	version, err := sarama.ParseKafkaVersion(c.ProtocolVersion)
	if err != nil {
		return nil, fmt.Errorf("read protocol_version %q: %w", c.ProtocolVersion, err)
	}
	s.Version, s.ClientID, s.MetricRegistry = version, c.ClientID, meters
	s.Net.DialTimeout, s.Net.ReadTimeout, s.Net.WriteTimeout = c.DialTimeout, RequestTimeout, RequestTimeout
	s.Net.Proxy.Enable, s.Net.Proxy.Dialer = true, dialer
	s.Metadata.RefreshFrequency, s.Metadata.Full = c.Metadata.RefreshInterval, false
	s.Metadata.Retry.Max = metadataTries
	s.Metadata.Retry.BackoffFunc = func(int, int) time.Duration {
		if dialer.Ended() {
			return 0
		}
		return metadataBackoff
	}
	s.Metadata.AllowAutoTopicCreation = false
	if t := c.TLS.Get(); t != nil {
		s.Net.TLS.Enable = true
		if s.Net.TLS.Config, err = t.LoadTLSConfig(ctx); err != nil {
			return nil, fmt.Errorf("load tls: %w", err)
		}
		s.Net.TLS.Enable = s.Net.TLS.Config != nil // insecure: true
	}
	if sasl := c.Auth.SASL.Get(); sasl != nil {
		s.Net.SASL.Enable, s.Net.SASL.Mechanism = true, sarama.SASLMechanism(sasl.Mechanism)
		s.Net.SASL.User, s.Net.SASL.Password = sasl.Username, string(sasl.Password)
		s.Net.SASL.SCRAMClientGeneratorFunc = scramClient(sasl.Mechanism)
	}
	return s, nil
}
