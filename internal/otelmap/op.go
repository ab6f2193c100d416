// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

type (
	optionalInt   = model.Optional[int64]
	optionalFloat = model.Optional[float64]
)

var opFields = newTable(
	str(semconv.OpKind, func(o *model.Op) *model.OpKind { return &o.Kind }),
	opKeyField(),
	num(semconv.OpSeq, func(o *model.Op) *int64 { return &o.Seq }),
	str(semconv.ClockID, func(o *model.Op) *string { return &o.ClockID }),
	optInt(semconv.Step, func(o *model.Op) *optionalInt { return &o.Step }),
	str(semconv.Phase, func(o *model.Op) *string { return &o.Phase }),
	optInt(semconv.OpGroup, func(o *model.Op) *optionalInt { return &o.Group }),
	flag(semconv.OpEndInferred, func(o *model.Op) *bool { return &o.EndInferred }),
	flag(semconv.GraphCaptured, func(o *model.Op) *bool { return &o.GraphCaptured }),
	optInt(semconv.WorkBytes, func(o *model.Op) *optionalInt { return &o.WorkBytes }),
	optInt(semconv.WorkTokens, func(o *model.Op) *optionalInt { return &o.WorkTokens }),
	str(semconv.WorkGrid, func(o *model.Op) *string { return &o.WorkGrid }),
	optInt(semconv.StreamID, func(o *model.Op) *optionalInt { return &o.Stream }),
	optInt(semconv.ThreadID, func(o *model.Op) *optionalInt { return &o.ThreadID }),
	optInt(semconv.CorrelationID, func(o *model.Op) *optionalInt { return &o.Correlation }),
	optInt(semconv.LaunchTime, func(o *model.Op) *optionalInt { return &o.Launch }),
	optInt(semconv.Microbatch, func(o *model.Op) *optionalInt { return &o.Microbatch }),
	optInt(semconv.ModelChunk, func(o *model.Op) *optionalInt { return &o.ModelChunk }),

	str(semconv.CommID, func(o *model.Op) *string { return &o.Comm.ID }),
	str(semconv.CommName, func(o *model.Op) *string { return &o.Comm.Name }),
	str(semconv.CommDigest, func(o *model.Op) *string { return &o.Comm.Digest }),
	optInt(semconv.CommSize, func(o *model.Op) *optionalInt { return &o.Comm.Size }),
	optInt(semconv.CommRank, func(o *model.Op) *optionalInt { return &o.Comm.Rank }),

	str(semconv.CollectiveName, func(o *model.Op) *string { return &o.Collective.Name }),
	optInt(semconv.CollectiveSeq, func(o *model.Op) *optionalInt { return &o.Collective.Seq }),
	str(semconv.CollectiveSeqScope, func(o *model.Op) *model.SeqScope { return &o.Collective.SeqScope }),
	optInt(semconv.CollectiveBytes, func(o *model.Op) *optionalInt { return &o.Collective.Bytes }),
	str(semconv.CollectiveDType, func(o *model.Op) *string { return &o.Collective.DType }),
	optInt(semconv.CollectiveRoot, func(o *model.Op) *optionalInt { return &o.Collective.Root }),
	str(semconv.CollectiveAlgo, func(o *model.Op) *string { return &o.Collective.Algo }),
	str(semconv.CollectiveProto, func(o *model.Op) *string { return &o.Collective.Proto }),
	optInt(semconv.CollectiveChannels, func(o *model.Op) *optionalInt { return &o.Collective.Channels }),
	str(semconv.CollectiveState, func(o *model.Op) *string { return &o.Collective.State }),

	optInt(semconv.Peer, func(o *model.Op) *optionalInt { return &o.Peer }),
	optInt(semconv.PeerLocal, func(o *model.Op) *optionalInt { return &o.PeerLocal }),
	optFloat(semconv.WaitGPU, func(o *model.Op) *optionalFloat { return &o.Waits.GPU }),
	optFloat(semconv.WaitPeer, func(o *model.Op) *optionalFloat { return &o.Waits.Peer }),
	optFloat(semconv.WaitWire, func(o *model.Op) *optionalFloat { return &o.Waits.Wire }),
	optInt(semconv.WaitWireSteps, func(o *model.Op) *optionalInt { return &o.Waits.WireSteps }),
	optFloat(semconv.WaitFlush, func(o *model.Op) *optionalFloat { return &o.Waits.Flush }),
	long(semconv.CodeStack, func(o *model.Op) *string { return &o.Stack }),

	optFloat(semconv.ClockOffset, func(o *model.Op) *optionalFloat { return &o.Clock.Offset }),
	optFloat(semconv.ClockBound, func(o *model.Op) *optionalFloat { return &o.Clock.Bound }),
	optFloat(semconv.ClockSigma, func(o *model.Op) *optionalFloat { return &o.Clock.Sigma }),
	str(semconv.ClockTimeline, func(o *model.Op) *string { return &o.Clock.Timeline }),
	optInt(semconv.ClockRawStart, func(o *model.Op) *optionalInt { return &o.Clock.RawStart }),
	flag(semconv.ClockStep, func(o *model.Op) *bool { return &o.Clock.Stepped }),
	str(semconv.CausalityVerdict, func(o *model.Op) *string { return &o.Clock.Verdict }),
	optFloat(semconv.CausalityMagnitude, func(o *model.Op) *optionalFloat { return &o.Clock.Magnitude }),

	optInt(semconv.StepOps, func(o *model.Op) *optionalInt { return &o.StepOps }),

	str(semconv.StragglerClass, func(o *model.Op) *string { return &o.Straggler.Class }),
	optFloat(semconv.StragglerExcess, func(o *model.Op) *optionalFloat { return &o.Straggler.Excess }),
	optInt(semconv.WaitOwedTo, func(o *model.Op) *optionalInt { return &o.Straggler.OwedTo }),
	optFloat(semconv.WaitSuffered, func(o *model.Op) *optionalFloat { return &o.Straggler.Suffered }),
)

// opKeyField leaves the key out where it equals the span's name.
func opKeyField() field[model.Op] {
	f := str(semconv.OpKey, func(o *model.Op) *string { return &o.Key })
	put := f.put
	f.put = func(o *model.Op, m pcommon.Map) {
		if o.Key != o.Name {
			put(o, m)
		}
	}
	return f
}

// The attributes of a span are given room at once: growing costs as much as all
// of them.
const (
	typicalAttributes = 24
	kernelAttributes  = 12
	commAttributes    = 22 // without the following; with a group and a root
	waitAttributes    = 4
	clockAttributes   = 5
)

func roomFor(op *model.Op) int {
	n := kernelAttributes
	if op.Kind.IsComm() {
		n = commAttributes
	}
	if op.Waits.GPU.OK {
		n += waitAttributes
	}
	if op.Clock.Offset.OK {
		n += clockAttributes
	}
	return n
}

func opToSpan(r *model.Rank, op *model.Op, steps *stepIDs, s ptrace.Span) {
	span, parent := steps.of(r, op)
	s.SetTraceID(pcommon.TraceID(steps.trace))
	s.SetSpanID(span)
	s.SetParentSpanID(parent)
	s.SetName(cut.Bytes(op.Name, cut.MaxName))
	s.SetKind(spanKind(op.Kind))
	s.SetStartTimestamp(pcommon.Timestamp(op.Start))
	s.SetEndTimestamp(pcommon.Timestamp(op.End))
	m := s.Attributes()
	m.EnsureCapacity(roomFor(op))
	opFields.write(op, m)
	writeLinks(op, s)
}
