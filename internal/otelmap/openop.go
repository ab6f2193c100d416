// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

var openFields = newTable(
	str(semconv.OpOpenStatus, func(o *model.OpenOp) *string { return &o.Status }),
	float(semconv.OpOpenAge, func(o *model.OpenOp) *float64 { return &o.Age }),
	flag(semconv.OpOpenEnqueueing, func(o *model.OpenOp) *bool { return &o.Enqueueing }),
	flag(semconv.OpOpenDied, func(o *model.OpenOp) *bool { return &o.ProcessDied }),
	num(semconv.OpOpenBehind, func(o *model.OpenOp) *int64 { return &o.Behind }),
	num(semconv.OpOpenInFlight, func(o *model.OpenOp) *int64 { return &o.InFlight }),
	str(semconv.OpOpenProxyState, func(o *model.OpenOp) *string { return &o.ProxyState }),
	optFloat(semconv.OpOpenProxyFor, func(o *model.OpenOp) *optionalFloat { return &o.ProxyFor }),
	str(semconv.OpOpenSendState, func(o *model.OpenOp) *string { return &o.Send.State }),
	optFloat(semconv.OpOpenSendFor, func(o *model.OpenOp) *optionalFloat { return &o.Send.For }),
	optInt(semconv.OpOpenSendPeer, func(o *model.OpenOp) *optionalInt { return &o.Send.Peer }),
	str(semconv.OpOpenReceiveState, func(o *model.OpenOp) *string { return &o.Receive.State }),
	optFloat(semconv.OpOpenReceiveFor, func(o *model.OpenOp) *optionalFloat { return &o.Receive.For }),
	optInt(semconv.OpOpenReceivePeer, func(o *model.OpenOp) *optionalInt { return &o.Receive.Peer }),
	optFloat(semconv.OpOpenSilent, func(o *model.OpenOp) *optionalFloat { return &o.Silent }),
	str(semconv.OpOpenScope, func(o *model.OpenOp) *string { return &o.Scope }),
	optFloat(semconv.OpOpenScopeFor, func(o *model.OpenOp) *optionalFloat { return &o.ScopeFor }),
	optInt(semconv.OpOpenEnqueued, func(o *model.OpenOp) *optionalInt { return &o.Enqueued }),
	optInt(semconv.OpOpenStarted, func(o *model.OpenOp) *optionalInt { return &o.Started }),
	optInt(semconv.OpOpenCompleted, func(o *model.OpenOp) *optionalInt { return &o.Completed }),
)

// AppendOpen adds what a rank has open to ld, as log events under a resource of
// its own.
func AppendOpen(ld plog.Logs, r *model.Rank, open []model.OpenOp) {
	rl := ld.ResourceLogs().AppendEmpty()
	RankToResource(r, rl.Resource())
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(ScopeName)
	for i := range open {
		openToLog(r, &open[i], sl.LogRecords().AppendEmpty())
	}
}

func openToLog(r *model.Rank, o *model.OpenOp, lr plog.LogRecord) {
	lr.SetEventName(semconv.EventOpOpen)
	lr.SetTimestamp(pcommon.Timestamp(o.Time))
	lr.SetObservedTimestamp(pcommon.Timestamp(o.Time))
	level := model.SeverityWarn
	switch {
	case o.ProcessDied:
		level = model.SeverityError
	case o.Status == model.StatusClosed:
		level = model.SeverityInfo
	}
	number, text := severity(level)
	lr.SetSeverityNumber(number)
	lr.SetSeverityText(text)
	lr.Body().SetStr(openSentence(r, o))
	if o.Op.Step.OK {
		trace := model.StepTraceID(r.Incarnation, o.Op.Step.V)
		lr.SetTraceID(pcommon.TraceID(trace))
		lr.SetSpanID(pcommon.SpanID(model.StepSpanID(trace, r.Rank)))
	}
	lr.Attributes().EnsureCapacity(typicalAttributes)
	openFields.write(o, lr.Attributes())
	opFields.write(&o.Op, lr.Attributes())
}

// LogToOpen reads an open operation; false where the record is another event.
func LogToOpen(lr plog.LogRecord, p *Problems) (model.OpenOp, bool) {
	if lr.EventName() != semconv.EventOpOpen {
		return model.OpenOp{}, false
	}
	o := model.OpenOp{Time: int64(lr.Timestamp())}
	openFields.read(&o, lr.Attributes(), p.notes(nil))
	opFields.read(&o.Op, lr.Attributes(), p.notes(nil))
	return o, true
}

// openSentence says it for people.
func openSentence(r *model.Rank, o *model.OpenOp) string {
	var b strings.Builder
	what := fmt.Sprintf("%s %d on communicator %s", o.Op.Name, o.Op.Collective.Seq.V, firstOf(o.Op.Comm.Name, o.Op.Comm.ID))
	age := spoken(o.Age)
	switch {
	case o.ProcessDied:
		fmt.Fprintf(&b, "rank %d: process died; at its last sign of life %s %s, enqueued %v before that", r.Rank, openCount(o.InFlight), what, age)
	case o.Status == model.StatusClosed:
		fmt.Fprintf(&b, "rank %d: %s ended after %v", r.Rank, what, age)
		return b.String()
	default:
		fmt.Fprintf(&b, "rank %d: %s has not ended for %v (%s)", r.Rank, what, age, o.Op.Collective.State)
	}
	if waits := waitWords(o); waits != "" {
		fmt.Fprintf(&b, "; its proxy waits: %s", waits)
	}
	if o.Scope != "" {
		fmt.Fprintf(&b, "; %s %s for %v", hostIs(o), o.Scope, spoken(o.ScopeFor.V))
	}
	if o.Silent.OK && o.Silent.V >= model.SilentAfter.Seconds() {
		fmt.Fprintf(&b, "; no sign of life of its process for %v", spoken(o.Silent.V))
	}
	if o.Behind > 0 {
		fmt.Fprintf(&b, "; %d behind it", o.Behind)
	}
	return b.String()
}

func hostIs(o *model.OpenOp) string {
	if o.ProcessDied {
		return "its host was in"
	}
	return "the host is in"
}

func openCount(n int64) string {
	if n == 1 {
		return "1 operation was open:"
	}
	return fmt.Sprintf("%d operations were open; the first is", n)
}

// spoken rounds a duration to what people read.
func spoken(s float64) time.Duration {
	d := time.Duration(s * float64(time.Second))
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

// waitPhrases say what is waited for; %s is the peer.
var waitPhrases = map[string]string{
	"send_gpu":          "for its own GPU to fill the buffer",
	"send_peer":         "for %s to be ready",
	"send_wire":         "for the wire to %s",
	"recv_peer_or_wire": "for %s or the wire",
	"recv_flush":        "for the flush to GPU memory",
	"recv_gpu":          "for its own GPU to take the data",
}

func waitWords(o *model.OpenOp) string {
	var parts []string
	for _, way := range []struct {
		name string
		wait *model.ProxyWait
	}{{"sending", &o.Send}, {"receiving", &o.Receive}} {
		if w := way.wait; w.State != "" {
			parts = append(parts, fmt.Sprintf("%s, %s (%v)", way.name, waitPhrase(w), spoken(w.For.V)))
		}
	}
	return strings.Join(parts, "; ")
}

func waitPhrase(w *model.ProxyWait) string {
	phrase := waitPhrases[w.State]
	switch {
	case phrase == "":
		return w.State
	case w.Peer.OK:
		return strings.Replace(phrase, "%s", fmt.Sprintf("rank %d", w.Peer.V), 1)
	}
	return strings.Replace(phrase, "%s", "its peer", 1)
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// OwnSummary is what only a rank's own events say of its step, beside Summary.
type OwnSummary struct {
	Lost, Bytes, Inferred                  int64
	WaitGPU, WaitPeer, WaitWire, WaitFlush float64 // s, summed over operations
	Links                                  string  // JSON; empty where none
}

var ownFields = newTable(
	num(semconv.SummaryBytes, func(s *OwnSummary) *int64 { return &s.Bytes }),
	num(semconv.SummaryLost, func(s *OwnSummary) *int64 { return &s.Lost }),
	num(semconv.SummaryInferred, func(s *OwnSummary) *int64 { return &s.Inferred }),
	float(semconv.SummaryWaitGPU, func(s *OwnSummary) *float64 { return &s.WaitGPU }),
	float(semconv.SummaryWaitPeer, func(s *OwnSummary) *float64 { return &s.WaitPeer }),
	float(semconv.SummaryWaitWire, func(s *OwnSummary) *float64 { return &s.WaitWire }),
	float(semconv.SummaryWaitFlush, func(s *OwnSummary) *float64 { return &s.WaitFlush }),
	text(semconv.SummaryLinks, MaxDocument, func(s *OwnSummary) *string { return &s.Links }),
)

// WriteOwnSummary writes it on a step's span.
func WriteOwnSummary(sum *OwnSummary, m pcommon.Map) { ownFields.write(sum, m) }
