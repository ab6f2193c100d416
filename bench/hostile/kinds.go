// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/resumemap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// kind is what one hostile sender sends.
type kind struct {
	name   string
	config string // whose collector takes it
	// message makes the n-th message. Texts are put into it as attributes: what writes our own
	// telemetry may shorten them.
	message func(t *texts, n int64, now time.Time) message
	// neighbours are jobs beside it that behave.
	neighbours []neighbour
}

const (
	gateway    = "gateway.yaml"
	standalone = "standalone.yaml"
	fleet      = "fleet.yaml" // it has the epoch connector, and receives OTLP
)

var kinds = []kind{
	{"operations", gateway, operation, []neighbour{straggling, hanging}},
	{"findings", gateway, finding, []neighbour{straggling, hanging}},
	{"edges", gateway, edge, []neighbour{straggling, hanging}},
	{"spans", gateway, span, []neighbour{straggling, hanging}},
	{"jobs", gateway, job, []neighbour{straggling, hanging}},
	{"resumes", fleet, resume, []neighbour{resuming}},
	{"epochs", fleet, epoch, []neighbour{resuming}},
}

func kindNames() (names []string) {
	for i := range kinds {
		names = append(names, kinds[i].name)
	}
	return names
}

// name gives attributes new names.
func name(t *texts, m pcommon.Map, names ...string) {
	for _, name := range names {
		m.PutStr(name, t.name())
	}
}

// put gives attributes new names, and one of them in turn a long text.
func put(t *texts, n int64, m pcommon.Map, names ...string) {
	name(t, m, names...)
	m.PutStr(names[n%int64(len(names))], t.long())
}

func hostileRank(n int64) model.Rank {
	return model.Rank{JobName: "hostile", JobID: "hostile", Incarnation: "hostile", Rank: n % 8, WorldSize: model.Some(int64(8)), HostName: "hostile"}
}

// operation is one operation of a new name, in steps that go on.
func operation(t *texts, n int64, now time.Time) message {
	r := hostileRank(n)
	op := model.Op{
		Kind: []model.OpKind{model.KindCompute, model.KindHost, model.KindScope, model.KindCollective, model.KindCopy}[n%5], Name: "x",
		Start: now.UnixNano(), End: now.Add(time.Millisecond).UnixNano(), Step: model.Some(n / 512), Stream: model.Some(n % 4),
	}
	td := otelmap.OpsToTraces(&r, []model.Op{op})
	s := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	s.SetName(t.name())
	s.SetSpanID(spanID(n))
	if n%2 == 0 {
		s.SetName(t.long())
		return ofTraces(td)
	}
	put(t, n/10, s.Attributes(), semconv.OpKey, semconv.CommID, semconv.CommName, semconv.CollectiveName, semconv.CollectiveDType, semconv.Phase, semconv.CodeStack)
	return ofTraces(td)
}

func spanID(n int64) (id pcommon.SpanID) {
	for i := range id {
		id[i] = byte(n >> (8 * i))
	}
	id[7] |= 0x80
	return id
}

// finding is a finding of its own.
func finding(t *texts, n int64, now time.Time) message {
	f := model.Finding{
		Time: now.UnixNano(), Start: now.UnixNano(), Severity: model.SeverityWarn, Kind: model.FindingStraggler, Revision: 1, Status: model.StatusOpen,
		Rank: model.Some(n % 8), StepFirst: model.Some(n), StepLast: model.Some(n), Confidence: 1,
	}
	ld := otelmap.FindingsToLogs([]model.Finding{f})
	m := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes()
	put(t, n, m, semconv.FindingID, semconv.JobID, semconv.JobIncarnation, semconv.ServiceName, semconv.FindingClass, semconv.FindingCause,
		semconv.FindingHost, semconv.FindingOp, semconv.FindingCommName, semconv.FindingLink, semconv.FindingStack, semconv.FindingEvidence, semconv.FindingAction)
	return ofLogs(ld)
}

// edge is about two new clocks, with names of a length that is allowed, or not.
func edge(t *texts, n int64, now time.Time) message {
	e := model.ClockEdge{At: now.UnixNano(), Span: 1e9, Lower: -1000, Upper: 1000, Samples: 10, Source: model.EdgeProbe, Stamps: model.StampKernel}
	ld := plog.NewLogs()
	lr := appendRecord(ld)
	clockmap.EdgeToLog(&e, lr)
	lr.SetTimestamp(pcommon.NewTimestampFromTime(now))
	src, dst := t.sized(model.MaxClockName), t.sized(model.MaxClockName)
	if n%4 == 0 {
		src = t.long()
	} else {
		lr.Body().SetStr(t.long())
	}
	lr.Attributes().PutStr(semconv.EdgeSrc, src)
	lr.Attributes().PutStr(semconv.EdgeDst, dst)
	return ofLogs(ld)
}

func appendRecord(ld plog.Logs) plog.LogRecord {
	return ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
}

// span is a call of one new service, or what answers it.
func span(t *texts, n int64, now time.Time) message {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	put(t, n/2, rs.Resource().Attributes(), semconv.ServiceName, semconv.HostName, semconv.HostID)
	s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	call := n / 2
	id := spanID(call)
	s.SetTraceID([16]byte(append(id[:], id[:]...)))
	s.SetKind(ptrace.SpanKindClient)
	s.SetSpanID(id)
	if n%2 == 1 {
		s.SetKind(ptrace.SpanKindServer)
		s.SetParentSpanID(id)
		s.SetSpanID(spanID(-n))
	}
	s.SetName(t.name())
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(now))
	s.SetEndTimestamp(pcommon.NewTimestampFromTime(now.Add(time.Millisecond)))
	return ofTraces(td)
}

// job is the first step of a new job, or an operation of one that does not end.
func job(t *texts, n int64, now time.Time) message {
	r := hostileRank(n)
	op := model.Op{Kind: model.KindStep, Name: "step", Start: now.UnixNano(), End: now.Add(time.Millisecond).UnixNano(), Step: model.Some(int64(0))}
	if n%2 == 0 {
		td := otelmap.OpsToTraces(&r, []model.Op{op})
		put(t, n/2, td.ResourceSpans().At(0).Resource().Attributes(), semconv.JobID, semconv.JobIncarnation, semconv.ServiceName, semconv.HostName)
		return ofTraces(td)
	}
	op.Kind, op.Name, op.Collective = model.KindCollective, model.AllReduce, model.Collective{Name: model.AllReduce, Seq: model.Some(n), SeqScope: model.ScopeCommFunc}
	ld := plog.NewLogs()
	otelmap.AppendOpen(ld, &r, []model.OpenOp{{Op: op, Time: now.UnixNano(), Status: model.StatusOpen, Age: 5, InFlight: 1}})
	rl := ld.ResourceLogs().At(0)
	put(t, n/2, rl.Resource().Attributes(), semconv.JobID, semconv.JobIncarnation, semconv.ServiceName, semconv.HostName)
	name(t, rl.ScopeLogs().At(0).LogRecords().At(0).Attributes(), semconv.CommID, semconv.CommName, semconv.OpOpenScope)
	return ofLogs(ld)
}

// resume is what a rank of a new life of a job has loaded.
func resume(t *texts, n int64, now time.Time) message {
	v := model.Resume{Rank: hostileRank(n), Time: now.UnixNano(), Life: t.name(), Number: 1, Step: n, Replica: "dp"}
	ld := plog.NewLogs()
	resumemap.Append(ld, &v)
	rl := ld.ResourceLogs().At(0)
	of := []string{semconv.ServiceName, semconv.HostName, semconv.HWID, semconv.JobID, semconv.JobIncarnation}
	if n%2 == 0 {
		put(t, n/2, rl.Resource().Attributes(), of...)
	} else {
		name(t, rl.Resource().Attributes(), of...)
		rl.ScopeLogs().At(0).LogRecords().At(0).Body().SetStr(t.long())
	}
	return ofLogs(ld)
}

// epoch is what a new observer says of a new save, of a job that is new every time or not.
func epoch(t *texts, n int64, now time.Time) message {
	o := model.EpochObservation{
		Time: now.UnixNano(), JobID: "hostile", Generation: t.name(), Save: n, Domain: model.Domain{Kind: model.DomainModel, ID: t.name()}, Of: 8,
		State: model.DomainCommitted, Epoch: model.Some(n - n%3), Witness: "metadata", Observer: t.name(), Revision: 1, Confidence: 1,
	}
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	epochmap.JobToResource("hostile", "hostile", rl.Resource())
	lr := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	epochmap.ObservationToLog(&o, lr)
	switch n % 4 {
	case 0: // almost the longest names that are read
		lr.Attributes().PutStr(semconv.EpochDomainID, t.sized(longName))
		lr.Attributes().PutStr(semconv.EpochObserver, t.sized(longName))
	case 1:
		rl.Resource().Attributes().PutStr(semconv.JobID, t.sized(longName))
	case 2:
		rl.Resource().Attributes().PutStr(semconv.ServiceName, t.long())
		lr.Attributes().PutStr(semconv.EpochGeneration, t.sized(longName))
	case 3:
		lr.Attributes().PutStr(semconv.EpochWitness, t.long())
	}
	return ofLogs(ld)
}
