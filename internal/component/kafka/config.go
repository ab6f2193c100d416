// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"
)

// ClientConfig configures how brokers are reached. Its keys are those of contrib's Kafka components.
type ClientConfig struct {
	// Brokers are host:port of brokers that are asked first; they name the others.
	Brokers []string `mapstructure:"brokers"`
	// ClientID names this client in logs and quotas of the brokers.
	ClientID string `mapstructure:"client_id"`
	// ProtocolVersion is the newest version of Kafka whose requests are sent.
	ProtocolVersion string `mapstructure:"protocol_version"`
	// DialTimeout bounds how long a connection may take to be made.
	DialTimeout time.Duration `mapstructure:"dial_timeout"`
	// TLS encrypts the connections; none: they are not encrypted.
	TLS configoptional.Optional[configtls.ClientConfig] `mapstructure:"tls"`
	// Auth is how the client authenticates.
	Auth AuthConfig `mapstructure:"auth"`
	// Metadata is how the client keeps its view of the cluster.
	Metadata MetadataConfig `mapstructure:"metadata"`

	_ struct{}
}

// AuthConfig configures how a client authenticates beside TLS.
type AuthConfig struct {
	// SASL is a user and a password; none: the client shows none.
	SASL configoptional.Optional[SASLConfig] `mapstructure:"sasl"`

	_ struct{}
}

// SASLConfig is a user with a password.
type SASLConfig struct {
	// Mechanism is how they are shown: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
	Mechanism string              `mapstructure:"mechanism"`
	Username  string              `mapstructure:"username"`
	Password  configopaque.String `mapstructure:"password"`

	_ struct{}
}

// MetadataConfig configures the view of the cluster.
type MetadataConfig struct {
	// RefreshInterval is how often the view is read again, which shows partitions that were added.
	RefreshInterval time.Duration `mapstructure:"refresh_interval"`

	_ struct{}
}

// Defaults. Kafka 2.8 and later, which is also what Kafka 4 accepts, know everything that is sent.
const (
	DefaultBroker          = "localhost:9092"
	DefaultVersion         = "2.8.0"
	DefaultDialTimeout     = 10 * time.Second
	DefaultRefreshInterval = time.Minute
)

// leastVersion knows zstd, names of members that outlast a restart, and the leader in commits.
var leastVersion = sarama.V2_3_0_0

const maxName = 249

// LegalNames says what [LegalName] wants.
const LegalNames = "1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'"

// LegalName reports whether Kafka takes the name of a topic, or of a member of a group
// (org.apache.kafka.common.internals.Topic).
func LegalName(name string) bool {
	legal := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
	}
	return name != "" && name != "." && name != ".." && len(name) <= maxName &&
		strings.IndexFunc(name, func(r rune) bool { return !legal(r) }) < 0
}

var mechanisms = []string{sarama.SASLTypePlaintext, sarama.SASLTypeSCRAMSHA256, sarama.SASLTypeSCRAMSHA512}

// NewClientConfig returns the defaults: one broker on this host, without TLS and password.
func NewClientConfig(clientID string) ClientConfig {
	return ClientConfig{
		Brokers: []string{DefaultBroker}, ClientID: clientID, ProtocolVersion: DefaultVersion, DialTimeout: DefaultDialTimeout,
		Metadata: MetadataConfig{RefreshInterval: DefaultRefreshInterval},
		TLS:      configoptional.Default(configtls.NewDefaultClientConfig()),
		Auth:     AuthConfig{SASL: configoptional.Default(SASLConfig{Mechanism: sarama.SASLTypeSCRAMSHA512})},
	}
}

// Validate reports every field that cannot work.
func (c *ClientConfig) Validate() error {
	var errs []error
	if len(c.Brokers) == 0 {
		errs = append(errs, errors.New("check brokers: got none; want one host:port at least"))
	}
	for _, b := range c.Brokers {
		if _, port, err := net.SplitHostPort(b); err != nil || port == "" {
			errs = append(errs, fmt.Errorf("check brokers: got %q; want host:port", b))
		}
	}
	if v, err := sarama.ParseKafkaVersion(c.ProtocolVersion); err != nil {
		errs = append(errs, fmt.Errorf("check protocol_version: got %q; want a version of Kafka such as %s", c.ProtocolVersion, DefaultVersion))
	} else if !v.IsAtLeast(leastVersion) {
		errs = append(errs, fmt.Errorf("check protocol_version: got %s; want %s or later", v, leastVersion))
	}
	if c.DialTimeout <= 0 {
		errs = append(errs, fmt.Errorf("check dial_timeout: got %v; want more than 0s", c.DialTimeout))
	}
	if c.Metadata.RefreshInterval < time.Second {
		errs = append(errs, fmt.Errorf("check metadata::refresh_interval: got %v; want 1s or more", c.Metadata.RefreshInterval))
	}
	return errors.Join(errs...)
}

// Validate reports every field that cannot work.
func (c *SASLConfig) Validate() error {
	var errs []error
	if !slices.Contains(mechanisms, c.Mechanism) {
		errs = append(errs, fmt.Errorf("check mechanism: got %q; want %s", c.Mechanism, strings.Join(mechanisms, ", ")))
	}
	if c.Username == "" {
		errs = append(errs, errors.New("check username: got none; want one"))
	}
	if c.Password == "" {
		errs = append(errs, errors.New("check password: got none; want one"))
	}
	return errors.Join(errs...)
}
