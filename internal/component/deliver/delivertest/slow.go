// SPDX-License-Identifier: Apache-2.0

package delivertest

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Slow is a next component that takes a time for each call, and gives up when its context is done.
type Slow struct {
	// Entered is closed with the first call.
	Entered chan struct{}
	enter   func()
	takes   time.Duration
}

// NewSlow returns a next component whose calls take so long.
func NewSlow(takes time.Duration) *Slow {
	s := &Slow{Entered: make(chan struct{}), takes: takes}
	s.enter = sync.OnceFunc(func() { close(s.Entered) })
	return s
}

func (s *Slow) work(ctx context.Context) error {
	s.enter()
	select {
	case <-time.After(s.takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Capabilities implements consumer.Traces and consumer.Logs.
func (*Slow) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: false} }

// ConsumeTraces implements consumer.Traces.
func (s *Slow) ConsumeTraces(ctx context.Context, _ ptrace.Traces) error { return s.work(ctx) }

// ConsumeLogs implements consumer.Logs.
func (s *Slow) ConsumeLogs(ctx context.Context, _ plog.Logs) error { return s.work(ctx) }
