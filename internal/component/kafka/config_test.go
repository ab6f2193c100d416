// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"
)

func TestClientConfig_Validate_NamesEachField(t *testing.T) {
	for want, change := range map[string]func(*ClientConfig){
		"": func(*ClientConfig) {},
		"check brokers: got none; want one host:port at least":                     func(c *ClientConfig) { c.Brokers = nil },
		`check brokers: got "kafka"; want host:port`:                               func(c *ClientConfig) { c.Brokers = []string{"a:1", "kafka"} },
		`check brokers: got "kafka:"; want host:port`:                              func(c *ClientConfig) { c.Brokers = []string{"kafka:"} },
		`check protocol_version: got 2.2.0; want 2.3.0 or later`:                   func(c *ClientConfig) { c.ProtocolVersion = "2.2.0" },
		`check protocol_version: got "new"; want a version of Kafka such as 2.8.0`: func(c *ClientConfig) { c.ProtocolVersion = "new" },
		"check dial_timeout: got 0s; want more than 0s":                            func(c *ClientConfig) { c.DialTimeout = 0 },
		"check metadata::refresh_interval: got 1ms; want 1s or more":               func(c *ClientConfig) { c.Metadata.RefreshInterval = time.Millisecond },
	} {
		c := NewClientConfig("id")
		change(&c)
		err := c.Validate()
		if want == "" {
			require.NoError(t, err)
			continue
		}
		assert.EqualError(t, err, want)
	}
}

func TestSASLConfig_Validate_NamesEachField(t *testing.T) {
	c := SASLConfig{Mechanism: "GSSAPI"}
	assert.EqualError(t, c.Validate(), `check mechanism: got "GSSAPI"; want PLAIN, SCRAM-SHA-256, SCRAM-SHA-512
check username: got none; want one
check password: got none; want one`)
	c = SASLConfig{Mechanism: "PLAIN", Username: "u", Password: "p"}
	assert.NoError(t, c.Validate())
}

func TestSarama_EverySetting_ReachesTheClient(t *testing.T) {
	c := NewClientConfig("node-7")
	c.ProtocolVersion, c.DialTimeout, c.Metadata.RefreshInterval = "4.0.0", time.Second, 5*time.Second
	c.TLS = configoptional.Some(configtls.NewDefaultClientConfig())
	c.Auth.SASL = configoptional.Some(SASLConfig{Mechanism: "SCRAM-SHA-256", Username: "u", Password: "secret"})
	s, err := c.Sarama(t.Context(), NewDialer(time.Second), &Meters{})
	require.NoError(t, err)
	require.NoError(t, s.Validate())
	assert.Equal(t, "4.0.0", s.Version.String())
	assert.Equal(t, "node-7", s.ClientID)
	assert.Equal(t, 5*time.Second, s.Metadata.RefreshFrequency)
	assert.False(t, s.Metadata.AllowAutoTopicCreation)
	assert.True(t, s.Net.TLS.Enable)
	assert.EqualValues(t, "SCRAM-SHA-256", s.Net.SASL.Mechanism)
	assert.Equal(t, []string{"u", "secret"}, []string{s.Net.SASL.User, s.Net.SASL.Password})

	c.TLS = configoptional.Some(configtls.ClientConfig{Insecure: true})
	s, err = c.Sarama(t.Context(), NewDialer(time.Second), &Meters{})
	require.NoError(t, err)
	assert.False(t, s.Net.TLS.Enable, "insecure: true is without TLS")
	require.NoError(t, s.Validate())

	bad := configtls.NewDefaultClientConfig()
	bad.CAFile = "/does/not/exist"
	c.TLS = configoptional.Some(bad)
	_, err = c.Sarama(t.Context(), NewDialer(time.Second), &Meters{})
	assert.ErrorContains(t, err, "/does/not/exist")
}

func TestLegalName_IsKafkas(t *testing.T) {
	for name, legal := range map[string]bool{
		"lockstep-jobs": true, "A.b_9": true, strings.Repeat("a", 249): true,
		"": false, ".": false, "..": false, "a b": false, "a/b": false, "é": false, strings.Repeat("a", 250): false,
	} {
		assert.Equal(t, legal, LegalName(name), name)
	}
}
