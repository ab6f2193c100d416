// SPDX-License-Identifier: Apache-2.0

package fuzzcomponents

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/processor/clockskewprocessor"
)

// observed is a processor and what follows it. It compares what came with what was passed
// on, less what the processor may write.
type observed struct {
	t     *testing.T
	name  string
	strip func(in, out ptrace.Span) // takes off both what the processor may write
	// stripResource does so of resources; nil: the processor writes nothing there.
	stripResource func(in, out pcommon.Resource)
	late          bool // spans are held, and passed on in another order
	processor     processor.Traces

	came, went map[string]int // of one that holds: spans, by all that they have
	last       ptrace.Traces
	passed     int
}

func (*observed) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

func (o *observed) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	o.passed++
	o.last = ptrace.NewTraces()
	td.CopyTo(o.last)
	if o.late {
		o.count(o.went, o.last)
	}
	return nil
}

func (o *observed) send(td ptrace.Traces) {
	o.t.Helper()
	given, before := ptrace.NewTraces(), ptrace.NewTraces()
	td.CopyTo(given)
	td.CopyTo(before)
	if o.late {
		o.count(o.came, before)
		require.NoError(o.t, o.processor.ConsumeTraces(o.t.Context(), given), o.name)
		return
	}
	passed := o.passed
	require.NoError(o.t, o.processor.ConsumeTraces(o.t.Context(), given), o.name)
	require.Equal(o.t, passed+1, o.passed, "%s passes on a batch in the same call", o.name)
	if o.stripResource != nil {
		require.Equal(o.t, before.ResourceSpans().Len(), o.last.ResourceSpans().Len(), o.name)
		for i, rs := range before.ResourceSpans().All() {
			o.stripResource(rs.Resource(), o.last.ResourceSpans().At(i).Resource())
		}
	}
	both(o.t, o.name, before, o.last, o.strip)
	assert.Equal(o.t, marshalTraces(before), marshalTraces(o.last), "%s changes nothing else", o.name)
}

// both strips spans that are in the same places.
func both(t *testing.T, name string, in, out ptrace.Traces, strip func(in, out ptrace.Span)) {
	t.Helper()
	require.Equal(t, in.ResourceSpans().Len(), out.ResourceSpans().Len(), name)
	for i, rs := range in.ResourceSpans().All() {
		require.Equal(t, rs.ScopeSpans().Len(), out.ResourceSpans().At(i).ScopeSpans().Len(), name)
		for k, ss := range rs.ScopeSpans().All() {
			passed := out.ResourceSpans().At(i).ScopeSpans().At(k).Spans()
			require.Equal(t, ss.Spans().Len(), passed.Len(), "%s loses and adds no span", name)
			for n, s := range ss.Spans().All() {
				strip(s, passed.At(n))
			}
		}
	}
}

// count adds the spans of td, which it changes, without links and what the processor writes.
func (o *observed) count(to map[string]int, td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				s.Links().RemoveIf(func(ptrace.SpanLink) bool { return true })
				o.strip(s, s)
				one := ptrace.NewTraces()
				r := one.ResourceSpans().AppendEmpty()
				rs.Resource().CopyTo(r.Resource())
				scope := r.ScopeSpans().AppendEmpty()
				ss.Scope().CopyTo(scope.Scope())
				s.CopyTo(scope.Spans().AppendEmpty())
				to[string(marshalTraces(one))]++
			}
		}
	}
}

// finish checks that a processor that holds spans has passed all of them on.
func (o *observed) finish() {
	o.t.Helper()
	if o.late {
		assert.Equal(o.t, o.came, o.went, "%s passes on each span once", o.name)
	}
}

// removeWritten takes attributes off.
func removeWritten(s ptrace.Span, written func(name string) bool) {
	removeFrom(s.Attributes(), written)
}

func removeFrom(attributes pcommon.Map, written func(name string) bool) {
	for name := range attributes.AsRaw() {
		if written(name) {
			for attributes.Remove(name) { // a name may be there twice
			}
		}
	}
}

// sequenceWrites takes off what the sequence processor writes on spans.
func sequenceWrites(in, out ptrace.Span) {
	written := func(name string) bool { return name == semconv.SequenceNumber }
	removeWritten(in, written)
	removeWritten(out, written)
}

// sequenceWritesResource takes off what the sequence processor writes on resources.
func sequenceWritesResource(in, out pcommon.Resource) {
	written := func(name string) bool {
		return name == semconv.SequenceSource || name == semconv.SequenceVoid
	}
	removeFrom(in.Attributes(), written)
	removeFrom(out.Attributes(), written)
}

// skewWrites are what each mode of clock_skew may change.
var skewWrites = map[string]func(in, out ptrace.Span){
	clockskewprocessor.ModeOff: func(ptrace.Span, ptrace.Span) {},
	clockskewprocessor.ModeAnnotate: func(in, out ptrace.Span) {
		removeWritten(in, skewAttribute)
		removeWritten(out, skewAttribute)
	},
	clockskewprocessor.ModeRealign: func(in, out ptrace.Span) {
		by := out.StartTimestamp() - in.StartTimestamp()
		in.SetStartTimestamp(in.StartTimestamp() + by)
		in.SetEndTimestamp(in.EndTimestamp() + by)
		for i := range min(in.Events().Len(), out.Events().Len()) {
			if e := in.Events().At(i); e.Timestamp() != 0 {
				e.SetTimestamp(e.Timestamp() + by)
			}
		}
		written := func(name string) bool { return skewAttribute(name) || name == "lockstep.launch.time_unix_nano" }
		removeWritten(in, written)
		removeWritten(out, written)
	},
}

func skewAttribute(name string) bool {
	switch name {
	case "lockstep.clock.id", "lockstep.clock.epoch_unix_nano":
		return false
	}
	return strings.HasPrefix(name, "lockstep.clock.") || strings.HasPrefix(name, "lockstep.causality.")
}

// stragglerWrites takes off what the straggler processor may write: attributes, and links
// behind those that were there.
func stragglerWrites(in, out ptrace.Span) {
	n := 0
	had := in.Links().Len()
	out.Links().RemoveIf(func(ptrace.SpanLink) bool { n++; return n > had })
	for _, s := range []ptrace.Span{in, out} {
		removeWritten(s, func(name string) bool {
			return strings.HasPrefix(name, "lockstep.straggler.") || strings.HasPrefix(name, "lockstep.summary.") ||
				slices.Contains([]string{"lockstep.wait.owed_to", "lockstep.wait.suffered.seconds", "lockstep.finding.id"}, name)
		})
	}
}

func marshalTraces(td ptrace.Traces) []byte {
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		panic(err)
	}
	return b
}

func marshalLogs(ld plog.Logs) []byte {
	b, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	if err != nil {
		panic(err)
	}
	return b
}
