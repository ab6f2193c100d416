// SPDX-License-Identifier: Apache-2.0

package owdprobereceiver

import (
	"bytes"
	"fmt"
	"os"

	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// minKeyBytes is the shortest key that package stamp takes.
const minKeyBytes = 16

// key returns the key of the configuration; nil where there is none.
func (c *Config) key() (*stamp.Key, error) {
	secret := []byte(c.Auth.Key)
	if c.Auth.KeyFile != "" {
		b, err := os.ReadFile(c.Auth.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read key: %w", err)
		}
		secret = bytes.TrimRight(b, "\r\n")
	} else if len(secret) == 0 {
		return nil, nil
	}
	k, err := stamp.NewKey(secret)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	return k, nil
}
