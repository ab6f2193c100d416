// SPDX-License-Identifier: Apache-2.0

package skewmap

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/causality"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// scan reads a span's attributes in one pass: what a correction wrote, what the
// span is, and what of a rank's operation a rendezvous depends on.
func scan(s ptrace.Span, n *note, op *model.Op) (is causality.Trait) {
	for name, v := range s.Attributes().All() {
		if strings.HasPrefix(name, "lockstep.") {
			scanOwn(name, v, n, op)
			continue
		}
		is |= scanForeign(name, v)
	}
	return is
}

func scanOwn(name string, v pcommon.Value, n *note, op *model.Op) {
	switch name {
	case semconv.ClockID:
		n.clock = v.Str()
	case semconv.ClockTimeline:
		n.timeline = v.Str()
	case semconv.ClockViaTimeline:
		n.viaTimeline = v.Str()
	case semconv.ClockRawStart:
		integer(v, &n.rawStart, n, hasRawStart)
	case semconv.ClockViaStart:
		integer(v, &n.viaStart, n, hasViaStart)
	case semconv.LaunchTime:
		integer(v, &n.launch, n, hasLaunch)
	case semconv.ClockRawLaunch:
		integer(v, &n.rawLaunch, n, hasRawLaunch)
	case semconv.ClockOffset:
		number(v, &n.offset, n, hasOffset)
	case semconv.ClockBound:
		number(v, &n.bound, n, hasBound)
	case semconv.ClockViaOffset:
		number(v, &n.viaOffset, n, hasViaOffset)
	case semconv.ClockViaBound:
		number(v, &n.viaBound, n, hasViaBound)
	case semconv.ClockSigma:
		number(v, &n.sigma, n, hasSigma)
	case semconv.ClockStep:
		n.has |= hasStep
	case semconv.ClockUntrusted:
		n.has |= hasUntrusted
	case semconv.ClockWithheld:
		n.has |= hasWithheld
	case semconv.CausalityVerdict:
		n.has |= hasVerdict
	default:
		scanOperation(name, v, op)
	}
}

func scanOperation(name string, v pcommon.Value, op *model.Op) {
	switch name {
	case semconv.OpKind:
		op.Kind = model.OpKind(text(v))
	case semconv.Step:
		op.Step = known(v)
	case semconv.OpEndInferred:
		op.EndInferred = v.Type() == pcommon.ValueTypeBool && v.Bool()
	case semconv.CommID:
		op.Comm.ID = text(v)
	case semconv.CommDigest:
		op.Comm.Digest = text(v)
	case semconv.CommRank:
		op.Comm.Rank = known(v)
	case semconv.CollectiveName:
		op.Collective.Name = text(v)
	case semconv.CollectiveSeq:
		op.Collective.Seq = known(v)
	case semconv.CollectiveSeqScope:
		op.Collective.SeqScope = model.SeqScope(text(v))
	case semconv.CollectiveRoot:
		op.Collective.Root = known(v)
	case semconv.CollectiveState:
		op.Collective.State = text(v)
	case semconv.Peer:
		op.Peer = known(v)
	}
}

// text returns a text as a meeting may keep it: as otelmap reads it.
func text(v pcommon.Value) string { return cut.Bytes(v.Str(), cut.MaxName) }

// scanForeign reads OpenTelemetry's attributes.
func scanForeign(name string, v pcommon.Value) causality.Trait {
	switch name {
	case semconv.RPCSystem, semconv.RPCSystemName:
		return causality.Call | oneWay(v.Str())
	case semconv.RPCStatus, semconv.RPCStatusGRPC, semconv.RPCStatusConnect:
		return status(v)
	case semconv.HTTPMethod, semconv.HTTPMethodOld:
		return causality.HTTP
	case semconv.MessagingSystem:
		return causality.Messaging
	case semconv.MessagingOperation, semconv.MessagingOperationOld, semconv.MessagingOperationName:
		return causality.Messaging | operation(v.Str())
	case semconv.ErrorType:
		return causality.Failed
	case semconv.HTTPStatus, semconv.HTTPStatusOld:
		if v.Type() == pcommon.ValueTypeInt && v.Int() == switchingProtocols {
			return causality.Streaming
		}
	case semconv.URLScheme, semconv.HTTPSchemeOld, semconv.NetworkProtocol, semconv.GraphQLOperation:
		switch v.Str() {
		case "ws", "wss", "websocket", "subscription":
			return causality.Streaming
		}
	case semconv.HTTPContentType:
		if mentions(v, "text/event-stream") {
			return causality.Streaming
		}
	}
	return 0
}

// oneWay says that nobody may have waited for an answer: these have calls without one,
// and no attribute that tells them.
func oneWay(system string) causality.Trait {
	switch system {
	case "apache_dubbo", "dubbo", "dotnet_wcf", "jsonrpc", "thrift":
		return causality.Streaming
	}
	return 0
}

// status says whether a call was given up. A server whose client went away has a status,
// and no error: CANCELLED is none to it.
func status(code pcommon.Value) causality.Trait {
	switch code.Type() {
	case pcommon.ValueTypeInt:
		if code.Int() == 0 {
			return 0
		}
	case pcommon.ValueTypeStr:
		switch code.Str() {
		case "0", "OK", "ok", "":
			return 0
		}
	case pcommon.ValueTypeEmpty:
		return 0
	}
	return causality.Failed
}

// mentions reports whether a header, which may have several values, has one with such a part.
func mentions(v pcommon.Value, part string) bool {
	if v.Type() != pcommon.ValueTypeSlice {
		return strings.Contains(v.Str(), part)
	}
	for i := range min(v.Slice().Len(), maxHeaderValues) {
		if strings.Contains(v.Slice().At(i).Str(), part) {
			return true
		}
	}
	return false
}

// maxHeaderValues is how many values of a header are looked at: a content type has one.
const maxHeaderValues = 8

// afterwards says whether the spans of a scope are made afterwards, with times of their
// own: a page's load has the span that rendered the page as its parent, and began before.
func afterwards(scope string) causality.Trait {
	if strings.HasSuffix(scope, "instrumentation-document-load") {
		return causality.Afterwards
	}
	return 0
}

// switchingProtocols is the status of an HTTP request that became something else.
const switchingProtocols = 101

func operation(name string) causality.Trait {
	switch name {
	case "send", "publish", "create":
		return causality.Send
	case "receive", "poll", "consume", "pull":
		return causality.Receive
	case "process", "deliver":
		return causality.Process
	}
	return 0
}

// traits completes what the attributes say by the span's kind, status and events.
func traits(s ptrace.Span, is causality.Trait) causality.Trait {
	switch s.Kind() {
	case ptrace.SpanKindClient:
		is |= causality.Client
	case ptrace.SpanKindServer:
		is |= causality.Server
	case ptrace.SpanKindProducer:
		is |= causality.Producer
	case ptrace.SpanKindConsumer:
		is |= causality.Consumer
	}
	if is&causality.Messaging != 0 && is&(causality.Send|causality.Receive|causality.Process) == 0 && polls(s.Name()) {
		is |= causality.Receive
	}
	// A consumer that does not say what it does may have waited for the message.
	if is&causality.Consumer != 0 && is&causality.Process == 0 {
		is |= causality.Receive
	}
	// One span for both began with the wait.
	if is&causality.Receive != 0 {
		is &^= causality.Process
	}
	if s.Status().Code() == ptrace.StatusCodeError {
		is |= causality.Failed
	}
	if is&causality.Call != 0 { // by way of HTTP
		is &^= causality.HTTP
	}
	if is&causality.Call != 0 {
		is |= told(s.Events())
	}
	return is
}

func polls(name string) bool {
	return strings.HasSuffix(name, " receive") || strings.HasSuffix(name, " poll") ||
		strings.HasPrefix(name, "receive ") || strings.HasPrefix(name, "poll ")
}

// told is what a call's events tell: more than one message in a direction, or that
// somebody gave up.
func told(events ptrace.SpanEventSlice) (is causality.Trait) {
	for i := range events.Len() {
		e := events.At(i)
		switch e.Name() {
		case semconv.EventException:
			is |= causality.Failed
		case semconv.EventMessage, semconv.EventMessageRPC:
			for _, id := range [...]string{semconv.RPCMessageID, semconv.RPCMessageIDOld} {
				if v, ok := e.Attributes().Get(id); ok && v.Type() == pcommon.ValueTypeInt && v.Int() > 1 {
					is |= causality.Streaming
				}
			}
		}
	}
	return is
}
