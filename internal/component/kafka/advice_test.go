// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"crypto/x509"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
)

// What a client returns wraps the cause several times, and joins those of several brokers.
func TestExplain_WrappedCauses_AreFound(t *testing.T) {
	wrap := func(err error) error { return sarama.Wrap(sarama.ErrOutOfBrokers, fmt.Errorf("dial: %w", err)) }
	day := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	for want, err := range map[string]error{
		"create it with its partitions":          wrap(sarama.ErrUnknownTopicOrPartition),
		"refuses the user or the password":       wrap(sarama.ErrSASLAuthenticationFailed),
		"valid from 2026-01-02 03:04 to":         wrap(x509.CertificateInvalidError{Cert: &x509.Certificate{NotBefore: day, NotAfter: day}, Reason: x509.Expired}),
		"set tls::ca_file":                       wrap(x509.UnknownAuthorityError{}),
		"message.timestamp.type=LogAppendTime":   errors.Join(errors.New("other"), sarama.ErrInvalidTimestamp),
		"raise the topic's max.message.bytes":    &sarama.ProducerError{Err: sarama.ErrMessageSizeTooLarge},
		"no broker gives a reason":               sarama.Wrap(sarama.ErrOutOfBrokers),
		"the same group_instance_id":             sarama.ErrFencedInstancedId,
		"rights Describe and Write on the topic": sarama.ErrTopicAuthorizationFailed,
		"the topic's cleanup.policy=delete":      &sarama.ProducerError{Err: sarama.ErrInvalidRecord},
		"the broker's offset.metadata.max.bytes": errors.Join(errors.New("other"), sarama.ErrOffsetMetadataTooLarge),
	} {
		got := Explain(err)
		assert.ErrorContains(t, got, want)
		assert.ErrorIs(t, got, err)
	}
	eof := wrap(errors.New("read: unexpected EOF"))
	assert.ErrorContains(t, ExplainConnect(eof), "the broker closes the connection")
	assert.NotContains(t, Explain(eof).Error(), "the broker closes the connection", "a broker that ends does so, too")
	assert.ErrorContains(t, ExplainConnect(wrap(sarama.ErrSASLAuthenticationFailed)), "refuses the user")
	other := errors.New("dial tcp 127.0.0.1:9: connect: connection refused")
	assert.EqualError(t, Explain(other), other.Error())
	assert.EqualError(t, Explain(sarama.Wrap(sarama.ErrOutOfBrokers, other, other)), other.Error())
	assert.EqualError(t, ExplainConnect(other), other.Error())
	assert.NoError(t, Explain(nil))
	assert.NoError(t, ExplainConnect(nil))
}
