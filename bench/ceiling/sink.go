// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/lockstep-otel/lockstep/bench/internal/recording"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// handed keeps what the processor passes on, so that what follows is measured apart.
type handed struct{ td ptrace.Traces }

// Capabilities implements consumer.Traces.
func (*handed) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeTraces implements consumer.Traces.
func (h *handed) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	h.td = td
	return nil
}

// sink takes what the connectors emit. Step traces are marshaled and compressed as the exporter to
// Jaeger does.
type sink struct {
	mu     sync.Mutex // guards what follows
	buf    bytes.Buffer
	gzip   *gzip.Writer
	took   time.Duration // for step traces, CPU
	traces int
	found  bool            // a finding names the slow rank
	wrong  map[string]bool // other findings
}

func newSink() *sink {
	s := &sink{wrong: map[string]bool{}}
	s.gzip = gzip.NewWriter(&s.buf)
	return s
}

// Capabilities implements all three consumers.
func (*sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeTraces implements consumer.Traces.
func (s *sink) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	begin := processorTime()
	defer func() { s.took += processorTime() - begin }()
	s.traces++
	data, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	if err != nil {
		return fmt.Errorf("marshal step trace: %w", err)
	}
	s.buf.Reset()
	s.gzip.Reset(&s.buf)
	if _, err := s.gzip.Write(data); err != nil {
		return fmt.Errorf("compress step trace: %w", err)
	}
	return s.gzip.Close()
}

// ConsumeLogs implements consumer.Logs.
func (s *sink) ConsumeLogs(_ context.Context, ld plog.Logs) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				s.judge(lr)
			}
		}
	}
	return nil
}

// judge holds a finding against the fault that the job has. Amounts of work differ, too, and that is no
// rank's fault.
func (s *sink) judge(lr plog.LogRecord) {
	f, ok := otelmap.LogToFinding(lr, nil)
	what := fmt.Sprintf("%s of class %s, rank %v, host %q", f.Kind, f.Class, f.Rank, f.Host)
	switch {
	case !ok:
		s.wrong["a record that is no finding"] = true
	case f.Kind == model.FindingStraggler && f.Class == model.ClassCompute && f.Rank == model.Some(int64(recording.SlowRank)):
		s.found = true
	case f.Kind != model.FindingStraggler || f.Class != model.ClassWorkImbalance:
		s.wrong[what] = true
	}
}

// ConsumeMetrics implements consumer.Metrics.
func (*sink) ConsumeMetrics(context.Context, pmetric.Metrics) error { return nil }
