// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/IBM/sarama"
)

// advices are what an operator can do about errors of brokers. The first that an error is or wraps counts.
var advices = []struct {
	is error
	do string
}{
	{sarama.ErrUnknownTopicOrPartition, "the topic does not exist or this user may not see it: create it with its partitions first, or grant Describe"},
	{sarama.ErrSASLAuthenticationFailed, "the broker refuses the user or the password: check auth::sasl, and that the user exists for this mechanism"},
	{sarama.ErrUnsupportedSASLMechanism, "the broker's listener does not have this mechanism: set auth::sasl::mechanism to one of its sasl.enabled.mechanisms"},
	{sarama.ErrTopicAuthorizationFailed, "grant this user the rights Describe and Write on the topic, or Read where it is read"},
	{sarama.ErrGroupAuthorizationFailed, "grant this user the right Read on the consumer group"},
	{sarama.ErrFencedInstancedId, "another collector joined the group under the same group_instance_id: give each a name of its own"},
	{sarama.ErrClusterAuthorizationFailed, "grant this user the right IdempotentWrite on the cluster"},
	{sarama.ErrInvalidTimestamp, "the clocks of this host and the broker are further apart than the topic's message.timestamp.before.max.ms or after.max.ms: correct the clock, or set the topic's message.timestamp.type=LogAppendTime"},
	{sarama.ErrMessageSizeTooLarge, "lower producer::max_message_bytes, or raise the topic's max.message.bytes"},
	{sarama.ErrInvalidRecord, "a topic with cleanup.policy=compact refuses records without a key, and deletes all but the last of each key: set the topic's cleanup.policy=delete"},
	{sarama.ErrOffsetMetadataTooLarge, "the text beside an offset is larger than the broker's offset.metadata.max.bytes: set it to 4096, its default, or more"},
	{sarama.ErrNotEnoughReplicas, "fewer replicas than the topic's min.insync.replicas are in sync: look at the brokers"},
	{sarama.ErrNotEnoughReplicasAfterAppend, "fewer replicas than the topic's min.insync.replicas are in sync: look at the brokers"},
	{sarama.ErrKafkaStorageError, "the broker cannot write to its disk: look at its free space and its log"},
}

// Explain returns the error with what to do about it, where that is known.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	err = oneLineError{err}
	if do := adviceFor(err); do != "" {
		return fmt.Errorf("%w (%s)", err, do)
	}
	return err
}

// oneLineError is an error in one line, which has the cause of each broker once.
type oneLineError struct{ error }

// Error returns the text.
func (e oneLineError) Error() string {
	var causes []string
	// That no broker is left says nothing beside the cause at each.
	text := strings.ReplaceAll(e.error.Error(), sarama.ErrOutOfBrokers.Error()+": ", "")
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !slices.Contains(causes, line) {
			causes = append(causes, line)
		}
	}
	return strings.Join(causes, "; ")
}

// Unwrap returns the error.
func (e oneLineError) Unwrap() error { return e.error }

// ExplainConnect is [Explain] for the first answers of brokers: those that take a connection and end it expect
// something else on that port.
func ExplainConnect(err error) error {
	if err == nil || adviceFor(err) != "" || !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "EOF") {
		return Explain(err)
	}
	return fmt.Errorf("%w (the broker closes the connection: check that the port is the listener which tls and auth::sasl are for, and the user and the password)", oneLineError{err})
}

func adviceFor(err error) string {
	for _, a := range advices {
		if errors.Is(err, a.is) {
			return a.do
		}
	}
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the broker's certificate is valid from %s to %s: renew it, or correct this host's clock",
			invalid.Cert.NotBefore.Format("2006-01-02 15:04"), invalid.Cert.NotAfter.Format("2006-01-02 15:04 MST"))
	case errors.As(err, &unknown):
		return "set tls::ca_file to the authority of the broker's certificate"
	case errors.As(err, &name):
		return "the broker's certificate is for another name: use that name in brokers and advertised.listeners, or set tls::server_name_override"
	case errors.As(err, &plain):
		return "the broker's listener has no TLS: remove tls, or use its port with TLS"
	case err.Error() == sarama.ErrOutOfBrokers.Error():
		return "no broker gives a reason: check that the port is the listener which tls and auth::sasl are for, and the broker's log"
	}
	return ""
}
