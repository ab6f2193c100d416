// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"fmt"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// scramClient returns what makes conversations of a mechanism of SCRAM (RFC 5802).
func scramClient(mechanism string) func() sarama.SCRAMClient {
	hash := scram.SHA512
	if mechanism == sarama.SASLTypeSCRAMSHA256 {
		hash = scram.SHA256
	}
	return func() sarama.SCRAMClient { return &conversation{hash: hash} }
}

// conversation shows a password without sending it.
type conversation struct {
	*scram.ClientConversation
	hash scram.HashGeneratorFcn
}

// Begin begins a conversation of a user.
func (c *conversation) Begin(user, password, authzID string) error {
	client, err := c.hash.NewClient(user, password, authzID)
	if err != nil {
		return fmt.Errorf("prepare user and password for SCRAM: %w", err)
	}
	c.ClientConversation = client.NewConversation()
	return nil
}
