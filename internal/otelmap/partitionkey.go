// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// keyFields are the fields of an operation that its partition depends on.
var keyFields = newTable(
	str(semconv.OpKind, func(o *model.Op) *model.OpKind { return &o.Kind }),
	optInt(semconv.Step, func(o *model.Op) *optionalInt { return &o.Step }),
	str(semconv.CommID, func(o *model.Op) *string { return &o.Comm.ID }),
	str(semconv.CollectiveName, func(o *model.Op) *string { return &o.Collective.Name }),
	optInt(semconv.CollectiveSeq, func(o *model.Op) *optionalInt { return &o.Collective.Seq }),
	str(semconv.CollectiveSeqScope, func(o *model.Op) *model.SeqScope { return &o.Collective.SeqScope }),
	optInt(semconv.Peer, func(o *model.Op) *optionalInt { return &o.Peer }),
)

// PartitionKeys reads the keys by which spans go to partitions. The zero value reads spans of no rank. It is
// not safe for concurrent use.
type PartitionKeys struct {
	rank  model.Rank
	known bool // the resource names a rank
	op    model.Op
	key   []byte
}

// Resource sets the resource of the spans that follow.
func (k *PartitionKeys) Resource(res pcommon.Resource) {
	k.rank, k.known = ResourceToRank(res, nil)
}

// Span returns the key of a span, until the next call: that of [model.AppendPartitionKey] for an operation of a
// rank, else the trace id, so that a trace of others stays together.
func (k *PartitionKeys) Span(s ptrace.Span) []byte {
	if k.known && IsOp(s) {
		k.op = model.Op{}
		keyFields.read(&k.op, s.Attributes(), notes{})
		k.key = model.AppendPartitionKey(k.key[:0], &k.rank, &k.op)
		return k.key
	}
	id := s.TraceID()
	k.key = append(k.key[:0], id[:]...)
	return k.key
}

// JobKey returns the job of a resource, by which it goes to a partition: its id, else the name of the service;
// empty where the resource has neither. A long name is cut as ranks have it cut.
func JobKey(res pcommon.Resource) string {
	if id := JobID(res); id != "" {
		return id
	}
	return nameOf(res, semconv.ServiceName)
}

// JobID returns the id of the job of a resource, as ranks and findings have it; empty where it has none.
func JobID(res pcommon.Resource) string { return nameOf(res, semconv.JobID) }

func nameOf(res pcommon.Resource, attribute string) string {
	v, ok := res.Attributes().Get(attribute)
	if !ok || v.Type() != pcommon.ValueTypeStr {
		return ""
	}
	return cut.Bytes(v.Str(), cut.MaxName)
}
