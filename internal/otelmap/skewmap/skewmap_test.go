// SPDX-License-Identifier: Apache-2.0

package skewmap

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/causality"
	"github.com/lockstep-otel/lockstep/internal/model"
	sc "github.com/lockstep-otel/lockstep/internal/semconv"
)

type attrs = map[string]any

func TestWhichClock(t *testing.T) {
	f := &fakeClocks{hosts: map[string]string{"n1": "host:n1/boot/realtime", "byname": "host:n2/boot/realtime"}}
	long := strings.Repeat("x", model.MaxClockName+1)
	for name, c := range map[string]struct {
		resource, span attrs
		want           string
	}{
		"the span's own":          {attrs{sc.ClockID: "host:a/b/raw", sc.HostID: "n1"}, attrs{sc.ClockID: "gpu:u/globaltimer"}, "gpu:u/globaltimer"},
		"the resource's":          {attrs{sc.ClockID: "host:a/b/raw", sc.HostID: "n1"}, nil, "host:a/b/raw"},
		"the host's":              {attrs{sc.HostID: "n1", sc.HostName: "x"}, nil, "host:n1/boot/realtime"},
		"a name that is known":    {attrs{sc.HostID: "unknown", sc.HostName: "byname"}, nil, "host:n2/boot/realtime"},
		"an id that is not":       {attrs{sc.HostID: "h", sc.HostName: "x", sc.K8SNodeName: "y"}, nil, "host:h/?/realtime"},
		"a name that is not":      {attrs{sc.HostName: "x", sc.K8SNodeName: "y"}, nil, "host:x/?/realtime"},
		"a node":                  {attrs{sc.K8SNodeName: "y", sc.ServiceInstanceID: "i"}, nil, "host:y/?/realtime"},
		"an instance":             {attrs{sc.ServiceInstanceID: "i", sc.ServiceName: "s"}, nil, "service:i/realtime"},
		"nobody's":                {attrs{sc.ServiceName: "s"}, nil, ""},
		"where its source put it": {attrs{sc.ClockID: "host:a/b/raw"}, attrs{sc.ClockTimeline: "host:c/d/raw"}, "host:c/d/raw"},
		"too long an id":          {attrs{sc.ClockID: long, sc.HostID: "h"}, nil, ""},
		"too long a host":         {attrs{sc.HostID: long, sc.HostName: "x"}, nil, "host:x/?/realtime"},
		"none but bad hosts":      {attrs{sc.HostID: long, sc.HostName: "x\n"}, nil, ""},
		"a span's, too long":      {attrs{sc.HostID: "n1"}, attrs{sc.ClockID: long}, ""},
		"a timeline, too long":    {attrs{sc.HostID: "n1"}, attrs{sc.ClockTimeline: long}, ""},
		"an instance, too long":   {attrs{sc.ServiceInstanceID: long}, nil, ""},
		"numbers are no names":    {attrs{sc.HostID: 7, sc.ClockID: 8}, attrs{sc.ClockID: 9}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := causality.New(causality.Config{MaxSpans: 8, MaxClocks: 8}, f)
			m := NewMapper(e, f)
			td, _ := one(c.resource, c.span)
			m.Read(td)
			got := ""
			if k := m.Batch().Spans[0].Clock; k != nil {
				got = k.ID
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// TestNamesWithoutALimit: however long and many they are, none is kept, and their spans
// are counted.
func TestNamesWithoutALimit(t *testing.T) {
	f := &fakeClocks{}
	e := causality.New(causality.Config{
		MaxSpans: 1024, MaxClocks: 64, MaxPairs: 64, MaxJobs: 4, Window: time.Second, HealthWindow: 30 * time.Second, Now: time.Now,
	}, f)
	m := NewMapper(e, f)
	for i := range 100 {
		long := strings.Repeat("x", 10_000+i)
		td, _ := one(attrs{sc.HostID: long, sc.HostName: long + "\n"}, attrs{sc.ClockID: long})
		m.Read(td)
		e.Run(m.Batch())
		m.Forget()
	}
	assert.Zero(t, e.Stats().Clocks)
	assert.Zero(t, e.Stats().ClocksOver)
	assert.EqualValues(t, 100, e.Stats().NoClock)
}

func TestTraits(t *testing.T) {
	const client, server, consumer = ptrace.SpanKindClient, ptrace.SpanKindServer, ptrace.SpanKindConsumer
	for name, c := range map[string]struct {
		kind  ptrace.SpanKind
		name  string
		attrs attrs
		want  causality.Trait
	}{
		"rpc":                          {client, "", attrs{"rpc.system": "grpc"}, causality.Client | causality.Call},
		"rpc, new":                     {client, "", attrs{"rpc.system.name": "grpc"}, causality.Client | causality.Call},
		"rpc that was answered":        {client, "", attrs{"rpc.system": "grpc", "rpc.grpc.status_code": 0}, causality.Client | causality.Call},
		"answered, new":                {client, "", attrs{"rpc.system.name": "grpc", "rpc.response.status_code": "OK"}, causality.Client | causality.Call},
		"rpc that was given up":        {server, "", attrs{"rpc.system": "grpc", "rpc.grpc.status_code": 1}, causality.Server | causality.Call | causality.Failed},
		"given up, new":                {server, "", attrs{"rpc.system.name": "grpc", "rpc.response.status_code": "CANCELLED"}, causality.Server | causality.Call | causality.Failed},
		"given up, connect":            {client, "", attrs{"rpc.system": "connect_rpc", "rpc.connect_rpc.error_code": "canceled"}, causality.Client | causality.Call | causality.Failed},
		"rpc that may be one way":      {client, "", attrs{"rpc.system": "apache_dubbo"}, causality.Client | causality.Call | causality.Streaming},
		"http":                         {server, "", attrs{"http.request.method": "GET"}, causality.Server | causality.HTTP},
		"http, old":                    {server, "", attrs{"http.method": "GET"}, causality.Server | causality.HTTP},
		"rpc by http":                  {client, "", attrs{"rpc.system": "connect_rpc", "http.request.method": "POST"}, causality.Client | causality.Call},
		"database":                     {client, "", attrs{"db.system": "x"}, causality.Client},
		"failed":                       {client, "", attrs{"error.type": "timeout"}, causality.Client | causality.Failed},
		"upgraded":                     {server, "", attrs{"http.request.method": "GET", "http.response.status_code": 101}, causality.Server | causality.HTTP | causality.Streaming},
		"not upgraded":                 {server, "", attrs{"http.request.method": "GET", "http.response.status_code": 200}, causality.Server | causality.HTTP},
		"web socket":                   {client, "", attrs{"url.scheme": "wss"}, causality.Client | causality.Streaming},
		"events of a server":           {server, "", attrs{"http.response.header.content-type": []any{"text/event-stream"}}, causality.Server | causality.Streaming},
		"publish":                      {client, "", attrs{"messaging.operation": "publish"}, causality.Client | causality.Messaging | causality.Send},
		"receive":                      {client, "", attrs{"messaging.operation.type": "receive"}, causality.Client | causality.Messaging | causality.Receive},
		"poll by name":                 {client, "orders receive", attrs{"messaging.system": "kafka"}, causality.Client | causality.Messaging | causality.Receive},
		"no poll by name":              {client, "orders receive", nil, causality.Client},
		"process":                      {consumer, "", attrs{"messaging.operation.type": "process"}, causality.Consumer | causality.Messaging | causality.Process},
		"deliver":                      {consumer, "", attrs{"messaging.operation": "deliver"}, causality.Consumer | causality.Messaging | causality.Process},
		"a consumer that does not say": {consumer, "", nil, causality.Consumer | causality.Receive},
		"receive and process":          {consumer, "", attrs{"messaging.operation.type": "receive", "messaging.operation.name": "process"}, causality.Consumer | causality.Messaging | causality.Receive},
		"an operation":                 {consumer, "", attrs{sc.OpKind: "p2p.recv"}, causality.Operation},
	} {
		t.Run(name, func(t *testing.T) {
			td, s := one(nil, c.attrs)
			s.SetKind(c.kind)
			s.SetName(c.name)
			assert.Equal(t, c.want, traitsOf(td))
		})
	}
	t.Run("status", func(t *testing.T) {
		td, s := one(nil, nil)
		s.Status().SetCode(ptrace.StatusCodeError)
		assert.Equal(t, causality.Failed, traitsOf(td))
	})
	t.Run("exception", func(t *testing.T) {
		td, s := one(nil, attrs{"rpc.system": "grpc"})
		s.Events().AppendEmpty().SetName("exception")
		assert.Equal(t, causality.Call|causality.Failed, traitsOf(td))
	})
	t.Run("page", func(t *testing.T) {
		td, _ := one(nil, nil)
		td.ResourceSpans().At(0).ScopeSpans().At(0).Scope().SetName("@opentelemetry/instrumentation-document-load")
		assert.Equal(t, causality.Afterwards, traitsOf(td))
	})
	for id, want := range map[int64]causality.Trait{1: 0, 2: causality.Streaming} {
		td, s := one(nil, attrs{"rpc.system": "grpc"})
		e := s.Events().AppendEmpty()
		e.SetName("message")
		e.Attributes().PutInt("message.id", id)
		assert.Equal(t, causality.Call|want, traitsOf(td))
	}
}

func traitsOf(td ptrace.Traces) causality.Trait {
	f := &fakeClocks{}
	m := NewMapper(causality.New(causality.Config{MaxSpans: 8, MaxClocks: 8}, f), f)
	m.Read(td)
	return m.Batch().Spans[0].Is
}

// fast is a clock that is 1.5 ms ahead, known to 2 µs.
var fast = fakeClock{offset: -1_500_000, bound: 2000}

func TestRealign(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"host:n/?/realtime": fast}}
	td, s := one(attrs{sc.HostID: "n"}, attrs{"kept": "x"})
	f.run(td, true)
	assert.EqualValues(t, base-1_500_000, s.StartTimestamp())
	assert.Equal(t, pcommon.Timestamp(1_000_001), s.EndTimestamp()-s.StartTimestamp(), "the duration stays")
	assert.EqualValues(t, base-1_500_000+500, s.Events().At(0).Timestamp())
	got := s.Attributes().AsRaw()
	assert.InDelta(t, 2e-6, got[sc.ClockBound], 1e-15)
	assert.GreaterOrEqual(t, got[sc.ClockBound], 2e-6)
	delete(got, sc.ClockBound)
	assert.Equal(t, attrs{"kept": "x", sc.ClockOffset: -0.0015, sc.ClockTimeline: "timeline:ref", sc.ClockRawStart: base}, got)
}

func TestAnnotateMovesNothing(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"host:n/?/realtime": fast}}
	td, s := one(attrs{sc.HostID: "n"}, nil)
	f.run(td, false)
	assert.EqualValues(t, base, s.StartTimestamp())
	assert.EqualValues(t, base+1e6+1, s.EndTimestamp())
	assert.EqualValues(t, base+500, s.Events().At(0).Timestamp())
	got := s.Attributes().AsRaw()
	assert.InDelta(t, -0.0015, got[sc.ClockOffset], 1e-12)
	assert.Contains(t, got, sc.ClockBound)
	assert.NotContains(t, got, sc.ClockRawStart, "it says that the span was moved")
}

// ofRank is an operation that rank_events put on the host's clock; the host's
// clock counts from 1000 s after its stamps do.
func ofRank() (ptrace.Traces, ptrace.Span) {
	return one(attrs{sc.ClockID: "host:a/b/raw", sc.ClockEpoch: int64(1e12), sc.Rank: 0, sc.JobID: "j"}, attrs{
		sc.OpKind: "compute", sc.ClockTimeline: "host:a/b/raw", sc.ClockRawStart: int64(7_000_000_123),
		sc.ClockOffset: float64(base-7_000_000_123) * 1e-9, sc.ClockBound: 1e-6, sc.LaunchTime: base - 10_000,
	})
}

// TestWhatItsSourceCorrected is corrected on top: offsets and bounds add up, and
// the stamp of the GPU stays the raw one.
func TestWhatItsSourceCorrected(t *testing.T) {
	// On the timeline, the raw clock's reading is 1000.002 s later.
	f := &fakeClocks{of: map[string]fakeClock{"host:a/b/raw": {offset: 1e12 + 2e6, bound: 3000}}}
	td, s := ofRank()
	f.run(td, true)
	assert.EqualValues(t, base+2e6, s.StartTimestamp())
	got := s.Attributes().AsRaw()
	assert.InDelta(t, float64(base+2e6-7_000_000_123)*1e-9, got[sc.ClockOffset], 1e-6)
	assert.InDelta(t, 4e-6, got[sc.ClockBound], 1e-12)
	assert.Equal(t, "timeline:ref", got[sc.ClockTimeline])
	assert.Equal(t, int64(7_000_000_123), got[sc.ClockRawStart])
	assert.Equal(t, "host:a/b/raw", got[sc.ClockViaTimeline])
	assert.Equal(t, base, got[sc.ClockViaStart])
	assert.Equal(t, base-10_000+2_000_000, got[sc.LaunchTime])
	assert.Equal(t, base-10_000, got[sc.ClockRawLaunch])
}

// TestLaunchesStandOnTheHostsClock: the GPU's clock and the host's are off by
// different amounts.
func TestLaunchesStandOnTheHostsClock(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"host:a/b/raw": {offset: 1e6}, "gpu:u/globaltimer": {offset: 5e6}}}
	td, s := one(attrs{sc.ClockID: "host:a/b/raw"}, attrs{sc.OpKind: "compute", sc.ClockID: "gpu:u/globaltimer", sc.LaunchTime: base})
	f.run(td, true)
	assert.EqualValues(t, base+5e6, s.StartTimestamp())
	launch, _ := s.Attributes().Get(sc.LaunchTime)
	assert.Equal(t, base+1_000_000, launch.Int())
}

// TestTwiceIsOnce: each mode after realign starts from what came.
func TestTwiceIsOnce(t *testing.T) {
	known := &fakeClocks{of: map[string]fakeClock{
		"host:n/?/realtime": {offset: -1_500_000, drift: 3e-5, bound: 2000, sigma: 100, stepped: true}, "host:a/b/raw": {offset: 1e12 + 2e6, bound: 3000, sigma: 7},
	}}
	better := &fakeClocks{of: map[string]fakeClock{"host:n/?/realtime": {offset: -1_600_000, bound: 1}, "host:a/b/raw": {offset: 1e12 + 3e6, bound: 1}}}
	nothing := &fakeClocks{}
	for name, make := range map[string]func() (ptrace.Traces, ptrace.Span){
		"plain":   func() (ptrace.Traces, ptrace.Span) { return one(attrs{sc.HostID: "n"}, attrs{"a": "b"}) },
		"of rank": ofRank,
	} {
		t.Run(name, func(t *testing.T) {
			raw, _ := make()
			once := copyOf(raw)
			known.run(once, true)
			assert.NotEqual(t, bytesOf(raw), bytesOf(once))

			twice := copyOf(once)
			known.run(twice, true)
			assert.Equal(t, bytesOf(once), bytesOf(twice), "twice is once, to the byte")

			noted := copyOf(once)
			known.run(noted, false)
			assert.Equal(t, bytesOf(once), bytesOf(noted), "an annotation changes nothing that was moved")

			fromNoted := copyOf(raw)
			known.run(fromNoted, false)
			known.run(fromNoted, true)
			assert.Equal(t, content(once), content(fromNoted), "an annotation stands in nobody's way")

			direct, later := copyOf(raw), copyOf(once)
			better.run(direct, true)
			better.run(later, true)
			if name == "plain" {
				assert.Equal(t, content(direct), content(later), "what is known later starts from what came")
			}
			assert.Equal(t, direct.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).StartTimestamp(),
				later.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).StartTimestamp())

			nothing.run(later, true)
			if name == "plain" {
				assert.Equal(t, content(raw), content(later), "a clock that is lost gives its spans back")
			} else {
				assert.Equal(t, base, int64(later.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).StartTimestamp()))
			}
		})
	}
}

// content is a span's attributes, in no order, and its times.
func content(td ptrace.Traces) any {
	s := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	return []any{s.StartTimestamp(), s.EndTimestamp(), s.Events().At(0).Timestamp(), s.Attributes().AsRaw()}
}

func TestUntrustedStays(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"host:n/?/realtime": {untrusted: true}}}
	td, s := one(attrs{sc.HostID: "n"}, nil)
	f.run(td, true)
	assert.EqualValues(t, base, s.StartTimestamp())
	assert.Equal(t, attrs{sc.ClockUntrusted: true}, s.Attributes().AsRaw())
	(&fakeClocks{}).run(td, true)
	assert.Empty(t, s.Attributes().AsRaw())
}

func TestUnboundedBearsNoBound(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"host:n/?/realtime": {offset: 5, unbounded: true, sigma: 1000}}}
	td, s := one(attrs{sc.HostID: "n"}, nil)
	f.run(td, true)
	assert.NotContains(t, s.Attributes().AsRaw(), sc.ClockBound)
	assert.InDelta(t, 1e-6, s.Attributes().AsRaw()[sc.ClockSigma], 1e-12)
}

// TestTimesThatAreNone stay: an unset stamp, one beyond 2262, one that would
// become negative.
func TestTimesThatAreNone(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"host:n/?/realtime": fast}}
	for _, at := range [][2]pcommon.Timestamp{{0, 5e18}, {5e18, 0}, {1 << 63, 1<<63 + 1}, {1000, 2000}} {
		td, s := one(attrs{sc.HostID: "n"}, nil)
		s.SetStartTimestamp(at[0])
		s.SetEndTimestamp(at[1])
		f.run(td, true)
		got := [2]pcommon.Timestamp{s.StartTimestamp(), s.EndTimestamp()}
		assert.Equal(t, at, got)
		assert.Empty(t, s.Attributes().AsRaw())
	}
}

// TestNegativeDurationsStay: a span that ends before it begins is nobody's clock's
// fault.
func TestNegativeDurationsStay(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"host:n/?/realtime": fast}}
	td, s := one(attrs{sc.HostID: "n"}, nil)
	s.SetEndTimestamp(s.StartTimestamp() - 77)
	f.run(td, true)
	assert.EqualValues(t, base-1_500_000, s.StartTimestamp())
	assert.EqualValues(t, base-1_500_000-77, s.EndTimestamp())
}

// TestVerdicts stand on both spans, with the other's name; they are taken off
// where they no longer hold.
func TestVerdicts(t *testing.T) {
	td, parent := one(attrs{sc.HostID: "n"}, nil)
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr(sc.HostID, "m")
	child := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	parent.CopyTo(child)
	child.SetSpanID(pcommon.SpanID{3})
	child.SetParentSpanID(parent.SpanID())
	child.SetStartTimestamp(pcommon.Timestamp(base - 1000))

	wrong := &fakeClocks{of: map[string]fakeClock{"host:n/?/realtime": {}, "host:m/?/realtime": {bound: 10}}}
	e := wrong.run(td, true)
	for _, s := range []ptrace.Span{parent, child} {
		got := s.Attributes().AsRaw()
		other := model.SpanRef{Trace: model.TraceID(parent.TraceID()), Span: model.SpanID(child.SpanID())}
		if s == child {
			other.Span = model.SpanID(parent.SpanID())
		}
		assert.Equal(t, sc.VerdictViolation, got[sc.CausalityVerdict])
		assert.InDelta(t, 1e-6, got[sc.CausalityMagnitude], 1e-15)
		assert.Equal(t, other.String(), got[sc.CausalityOther])
		assert.Equal(t, "child_starts_after_parent", got[sc.CausalityRelation])
		assert.NotContains(t, got, sc.CausalityOrder)
	}
	assert.EqualValues(t, 1, e.Job("unknown_service").Counts[causality.Violation])

	unsure := &fakeClocks{of: map[string]fakeClock{"host:n/?/realtime": {}, "host:m/?/realtime": {bound: 5000}}}
	unsure.run(td, true)
	got := child.Attributes().AsRaw()
	assert.Equal(t, []any{sc.VerdictUndecided, sc.OrderConcurrent}, []any{got[sc.CausalityVerdict], got[sc.CausalityOrder]})

	right := &fakeClocks{of: map[string]fakeClock{"host:n/?/realtime": {}, "host:m/?/realtime": {offset: 2000, bound: 10}}}
	right.run(td, true)
	assert.Equal(t, sc.VerdictArtefact, child.Attributes().AsRaw()[sc.CausalityVerdict])

	parent.SetStartTimestamp(pcommon.Timestamp(base - 5000))
	parent.Attributes().PutInt(sc.ClockRawStart, base-5000)
	right.run(td, true)
	for _, s := range []ptrace.Span{parent, child} {
		for name := range s.Attributes().AsRaw() {
			require.NotContains(t, name, "lockstep.causality")
		}
	}
}

// TestCollectives: a rank's operations meet those of others by their rendezvous.
func TestCollectives(t *testing.T) {
	op := attrs{
		sc.OpKind: "collective", sc.CommID: "0xc", sc.CollectiveName: "all_reduce", sc.CollectiveSeq: 7, sc.CollectiveSeqScope: "comm_func", sc.CollectiveState: "completed",
	}
	td := ptrace.NewTraces()
	for rank := range 2 {
		host := string(rune('n' - rank))
		one, s := one(attrs{sc.Rank: rank, sc.JobID: "j", sc.JobIncarnation: "i", sc.ClockID: "host:" + host + "/?/realtime"}, op)
		s.SetSpanID(pcommon.SpanID{byte(rank + 1)})
		if rank == 1 {
			s.SetStartTimestamp(s.StartTimestamp() + 2e6) // begins after the other's end
			s.SetEndTimestamp(s.EndTimestamp() + 2e6)
		}
		one.ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
	}
	f := &fakeClocks{of: map[string]fakeClock{"host:n/?/realtime": {}, "host:m/?/realtime": {offset: -2e6}}}
	e := f.run(td, true)
	assert.EqualValues(t, 2, e.Stats().Relations)
	assert.EqualValues(t, 1, e.Job("j").Counts[causality.Artefact])
	assert.EqualValues(t, 2, e.Stats().Evidence.Samples)
}

// TestEventsWithoutATimeHaveNone afterwards: moved back they would be of the year 2554.
func TestEventsWithoutATimeHaveNone(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"host:n/?/realtime": fast}}
	td, s := one(attrs{sc.HostID: "n"}, nil)
	s.Events().AppendEmpty()
	f.run(td, true)
	assert.EqualValues(t, base-1_500_000, s.StartTimestamp())
	assert.Zero(t, s.Events().At(1).Timestamp())
}

// TestUntrustedOfRanksSaySo, too: a source that put them on another clock says nothing
// of that clock.
func TestUntrustedOfRanksSaySo(t *testing.T) {
	f := &fakeClocks{of: map[string]fakeClock{"host:a/b/raw": {untrusted: true}}}
	for _, realign := range []bool{false, true} {
		td, s := ofRank()
		f.run(td, realign)
		assert.Equal(t, true, s.Attributes().AsRaw()[sc.ClockUntrusted])
		(&fakeClocks{}).run(td, realign)
		assert.NotContains(t, s.Attributes().AsRaw(), sc.ClockUntrusted)
	}
}
