// SPDX-License-Identifier: Apache-2.0

// Package delivertest helps to test components whose next component blocks.
package delivertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Stuck is a next component that takes nothing and does not return, whatever its context
// says, until the test is over.
type Stuck struct {
	// Entered is closed with the first call.
	Entered chan struct{}
	enter   func()
	release chan struct{}
}

// NewStuck returns a next component that blocks.
func NewStuck(tb testing.TB) *Stuck {
	tb.Helper()
	s := &Stuck{Entered: make(chan struct{}), release: make(chan struct{})}
	s.enter = sync.OnceFunc(func() { close(s.Entered) })
	tb.Cleanup(func() { close(s.release) })
	return s
}

func (s *Stuck) block() {
	s.enter()
	<-s.release
}

// Capabilities implements consumer.Traces, consumer.Logs and consumer.Metrics.
func (*Stuck) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: false} }

// ConsumeTraces implements consumer.Traces.
func (s *Stuck) ConsumeTraces(context.Context, ptrace.Traces) error {
	s.block()
	return nil
}

// ConsumeLogs implements consumer.Logs.
func (s *Stuck) ConsumeLogs(context.Context, plog.Logs) error {
	s.block()
	return nil
}

// ConsumeMetrics implements consumer.Metrics.
func (s *Stuck) ConsumeMetrics(context.Context, pmetric.Metrics) error {
	s.block()
	return nil
}

const (
	// deadline is that of the contexts which Shutdown is called with.
	deadline = 300 * time.Millisecond
	// slack is for a machine that stalls.
	slack = 10 * time.Second
)

// Shutdown stops a component, whose next component is stuck, within a deadline, and returns the
// component's error. It fails the test where the component does not stop.
func Shutdown(tb testing.TB, stop func(context.Context) error) error {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- stop(ctx) }()
	select {
	case err := <-stopped:
		return err
	case <-time.After(slack):
		tb.Fatalf("shut down: got nothing within %v with a deadline of %v", slack, deadline)
		return nil
	}
}
