// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v7"
	"go.opentelemetry.io/collector/config/configretry"
)

// Backoff has the waits between the attempts of something that fails for now, as a configuration has them: longer
// and longer ones, with a random part. It is not safe for concurrent use.
type Backoff struct{ waits backoff.ExponentialBackOff }

// NewBackoff returns the waits of a configuration. Whether it is enabled, and when it ends, is for the caller.
func NewBackoff(c *configretry.BackOffConfig) *Backoff {
	return &Backoff{backoff.ExponentialBackOff{
		InitialInterval: c.InitialInterval, RandomizationFactor: c.RandomizationFactor, Multiplier: c.Multiplier, MaxInterval: c.MaxInterval,
	}}
}

// Next returns how long to wait before the next attempt.
func (b *Backoff) Next() time.Duration { return b.waits.NextBackOff() }

// Reset begins with the first wait again.
func (b *Backoff) Reset() { b.waits.Reset() }

// Sleep waits, and returns false where ctx is done before.
func Sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
