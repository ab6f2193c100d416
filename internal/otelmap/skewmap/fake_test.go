// SPDX-License-Identifier: Apache-2.0

package skewmap

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/causality"
	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/model"
)

const base = int64(1_700_000_000_123_456_789)

// fakeClocks stand where a test says.
type fakeClocks struct {
	of    map[string]fakeClock
	hosts map[string]string
}

type fakeClock struct {
	offset    int64
	drift     float64
	bound     int64
	sigma     float64
	unbounded bool
	untrusted bool
	stepped   bool
}

func (f *fakeClocks) Place(id string, reading int64) (clock.Placement, bool) {
	c, ok := f.of[id]
	if !ok {
		return clock.Placement{}, false
	}
	if c.untrusted {
		return clock.Placement{Time: reading, Timeline: "timeline:ref", Untrusted: true}, true
	}
	offset := c.offset + int64(math.Round(c.drift*float64(reading-base)))
	return clock.Placement{
		Time: reading + offset, Offset: offset, Bound: c.bound, Bounded: !c.unbounded, Sigma: c.sigma, Timeline: "timeline:ref", Stepped: c.stepped,
	}, true
}

func (f *fakeClocks) PlaceAll(id string, readings []int64, to []clock.Placement) []clock.Placement {
	for _, r := range readings {
		p, _ := f.Place(id, r)
		to = append(to, p)
	}
	return to
}

func (f *fakeClocks) Between(a string, _ int64, b string, _ int64) (int64, bool) {
	if a == b {
		return 0, true
	}
	return f.of[a].bound + f.of[b].bound, true
}

func (f *fakeClocks) AddEdge(model.ClockEdge) error { return nil }

func (f *fakeClocks) Resolve(host string) (string, bool) {
	id, ok := f.hosts[host]
	return id, ok
}

// run corrects td by the clocks, as the processor does.
func (f *fakeClocks) run(td ptrace.Traces, realign bool) *causality.Engine {
	e := causality.New(causality.Config{
		MaxSpans: 1024, MaxClocks: 64, MaxPairs: 64, MaxJobs: 4, Window: time.Second, HealthWindow: 30 * time.Second, Now: time.Now,
	}, f)
	m := NewMapper(e, f)
	m.Read(td)
	e.Run(m.Batch())
	m.Write(realign)
	m.Forget()
	return e
}

// one is a single span under a resource.
func one(resource map[string]any, attrs map[string]any) (ptrace.Traces, ptrace.Span) {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	must(rs.Resource().Attributes().FromRaw(resource))
	s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetTraceID(pcommon.TraceID{1})
	s.SetSpanID(pcommon.SpanID{2})
	s.SetStartTimestamp(pcommon.Timestamp(base))
	s.SetEndTimestamp(pcommon.Timestamp(base + 1e6 + 1))
	s.Events().AppendEmpty().SetTimestamp(pcommon.Timestamp(base + 500))
	must(s.Attributes().FromRaw(attrs))
	return td, s
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func bytesOf(td ptrace.Traces) string {
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	must(err)
	return string(b)
}

func copyOf(td ptrace.Traces) ptrace.Traces {
	c := ptrace.NewTraces()
	td.CopyTo(c)
	return c
}
