// SPDX-License-Identifier: Apache-2.0

//go:build linux

package clockskewprocessor

import (
	"encoding/binary"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/bench/skewfloor"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// BenchmarkOverFloor prints what the processor costs, and what pdata itself costs: the
// same attributes and times put on the same spans, knowing them. Both are taken in turn,
// batch by batch, in time of a core: on a machine that others use too, the time that
// passes says little.
func BenchmarkOverFloor(b *testing.B) {
	for _, c := range []struct {
		name string
		make func() *world
	}{{"services", benchServices}, {"services_probed", benchProbed}, {"ranks", benchRanks}} {
		b.Run(c.name, func(b *testing.B) { overFloor(b, c.make()) })
	}
}

func benchServices() *world {
	w := newWorld(1, 6, 10e6, 50)
	for n := range uint64(1000) {
		w.request(n+1, base+int64(n)*2e6)
	}
	return w
}

// benchProbed are services of hosts whose clocks packets have measured: relations
// are right or the clocks' fault, and nothing is undecided.
func benchProbed() *world {
	w := benchServices()
	w.probed = true
	return w
}

// benchRanks are ranks of which each executes 30 kernels between two collectives.
func benchRanks() *world {
	w := newWorld(1, 8, 10e6, 50)
	w.kernels = 30
	at := base
	for n := range uint64(100) {
		at = w.step(n+1, at+1e6)
	}
	return w
}

func overFloor(b *testing.B, w *world) {
	b.Helper()
	cfg := newDefaultConfig()
	sink := new(consumertest.TracesSink)
	p, err := newSkew(cfg, componenttest.NewNopTelemetrySettings(), sink)
	require.NoError(b, err)
	require.NoError(b, p.Start(b.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(b, p.Shutdown(b.Context())) }()
	batches := w.batches(1e9)
	lasts := w.spans[len(w.spans)-1].end - base + 1e9
	round := int64(0)
	var floor, ours time.Duration
	var by skewfloor.Floor
	spans := 0
	for b.Loop() {
		round++
		for _, td := range batches {
			spans += td.SpanCount()
			mine, hand := w.later(td, round, lasts), w.later(td, round, lasts)
			if w.probed {
				w.probe(b, p.clocks, base+round*lasts)
			}
			begin := cpuTime(b)
			p.correct(mine)
			ours += cpuTime(b) - begin
			by.Record(hand, mine)
			begin = cpuTime(b)
			by.Write(hand)
			floor += cpuTime(b) - begin
		}
	}
	b.ReportMetric(float64(floor.Nanoseconds())/float64(spans), "floor-ns/span")
	b.ReportMetric(float64(ours.Nanoseconds())/float64(spans), "clock_skew-ns/span")
	b.ReportMetric(float64(ours)/float64(floor), "x-floor")
}

// later is a copy of td as its host would have sent it at another time, of other
// traces.
func (w *world) later(td ptrace.Traces, round, lasts int64) ptrace.Traces {
	c := ptrace.NewTraces()
	td.CopyTo(c)
	for _, rs := range c.ResourceSpans().All() {
		host, _ := rs.Resource().Attributes().Get(semconv.HostID)
		h := w.hosts[host.Str()[1]-'0']
		by := pcommon.Timestamp(h.shows(base+round*lasts) - h.shows(base))
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			id := s.TraceID()
			binary.BigEndian.PutUint64(id[:], uint64(round))
			s.SetTraceID(id)
			for _, l := range s.Links().All() {
				l.SetTraceID(id)
			}
			s.SetStartTimestamp(s.StartTimestamp() + by)
			s.SetEndTimestamp(s.EndTimestamp() + by)
			if seq, ok := s.Attributes().Get(semconv.CollectiveSeq); ok {
				seq.SetInt(seq.Int() + round<<32)
			}
		}
	}
	return c
}

// cpuTime is what this process has used of all cores.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
